"""A client that commits offsets in transactions and beside them knows which of them counts, and which may."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.chaos.checkers.transactions import Place
from penstock.chaos.simulation.cluster.consumer_members import Leadership
from penstock.chaos.simulation.cluster.loop import new_loop
from penstock.chaos.simulation.cluster.machine import BROKER_PORT, host_of
from penstock.chaos.simulation.cluster.offset_mixer import NOTHING, OffsetMixer
from penstock.chaos.simulation.cluster.profiles import PROFILES
from penstock.chaos.simulation.cluster.transactional_clients import TransactionHistory
from penstock.chaos.simulation.cluster.zombies import Zombies
from penstock.chaos.workloads.first_version_producer import FirstVersionProducer

PLACE = Place("t", 0)


class Coordinator(FirstVersionProducer):
    """What its requests make of the committed offset, without a network; `loses` every so many commits, which count."""

    def __init__(self, *, pending_wins: bool, loses: int | None) -> None:
        super().__init__(
            [f"{host_of(1)}:{BROKER_PORT}"], "mixer", client_id="mixer", request_timeout_ms=1_000,
            transaction_timeout_ms=1_000, leader=lambda _: (host_of(1), BROKER_PORT), now_ms=lambda: 0,
            random=Random(1), patience_s=0,
        )  # fmt: skip
        self.pending_wins = pending_wins
        self.loses = loses
        self.committed = NOTHING
        self.pending: int | None = None
        self.is_pending_last = False
        self.commit_count = 0

    async def start(self) -> None:
        self.pending = None

    async def stop(self) -> None:
        pass

    async def find_group(self, _group: str) -> tuple[str, int]:
        return host_of(1), BROKER_PORT

    async def add_group(self, _group: str) -> None:
        pass

    def _maybe_lose(self) -> None:
        self.commit_count += 1
        if self.loses is not None and self.commit_count % self.loses == 0:
            raise ConnectionError

    async def commit_offset(self, _coordinator: Any, _group: str, _place: Place, offset: int) -> None:
        self.committed, self.is_pending_last = offset, False
        self._maybe_lose()

    async def commit_offset_in_transaction(self, _coordinator: Any, _group: str, _place: Place, offset: int) -> None:
        self.pending, self.is_pending_last = offset, True
        self._maybe_lose()

    async def _end(self, *, is_commit: bool) -> None:
        if is_commit and self.pending is not None and (self.is_pending_last or self.pending_wins):
            self.committed = self.pending
        self.pending = None

    async def fetch_offset(self, _coordinator: Any, _group: str, _place: Place) -> int:
        return self.committed


def mixed(coordinator: Coordinator) -> tuple[OffsetMixer, TransactionHistory]:
    class Mixer(OffsetMixer):
        def _new_producer(self) -> FirstVersionProducer:
            return coordinator

    loop = new_loop(Random(1))
    history = TransactionHistory((PLACE,), ())
    zombies = Zombies(
        [f"{host_of(1)}:{BROKER_PORT}"], leader=lambda _: 1, random=Random(2), profile=PROFILES["quiet"],
        now_ms=lambda: 0, trace=lambda _: None,
    )  # fmt: skip
    mixer = Mixer(
        "mixer1", "10.0.10.1", "mixer", [], history,
        leader=lambda _: 1, zombies=zombies, loop=loop, random=Random(3), request_timeout_ms=1_000,
        trace=lambda _: None, group_coordinator=lambda: Leadership(1, 0),
    )  # fmt: skip
    mixer.start()
    loop.run_for(60)
    mixer.is_stopping = True
    loop.run_for(10)
    assert mixer.is_done
    return mixer, history


@pytest.mark.parametrize("loses", [None, 7])
def test_what_was_written_later_is_committed(loses: int | None) -> None:
    mixer, history = mixed(Coordinator(pending_wins=False, loses=loses))
    assert history.operations["mixed commits"] > 30
    assert mixer.violations == []


def test_offset_of_a_transaction_that_takes_the_place_of_a_later_one_is_found() -> None:
    mixer, _ = mixed(Coordinator(pending_wins=True, loses=None))
    assert mixer.violations
    assert mixer.violations[0].startswith("OFFSET: mixers has ")
