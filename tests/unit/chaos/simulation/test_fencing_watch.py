"""A broker that is fenced though it was well for a session is counted; one that was not well is none of that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.fencing_watch import FencingWatch

SESSION_MS = 9_000
BROKER = 4


class Cluster:
    """Three voters and a broker, looked at ten times a second."""

    def __init__(self, session_ms: int = SESSION_MS) -> None:
        self.now_s = 0.0
        self.broker = SimpleNamespace(epoch=1, is_fenced=False, in_controlled_shutdown=False)
        self.machines: list[Any] = [
            SimpleNamespace(
                node_id=node_id, host=f"host{node_id}", is_voter=node_id < BROKER, is_ready=True, is_stopping=False,
                is_paused=False, clock_offset_ms=0,
            )
            for node_id in range(1, BROKER + 1)
        ]  # fmt: skip
        network: Any = SimpleNamespace(cuts=[], slow={})
        self.network = network
        image: Any = SimpleNamespace(brokers={BROKER: self.broker})
        self.watch = FencingWatch(
            self.machines, network=self.network, session_ms=session_ms, image=lambda: image,
            now_s=lambda: self.now_s, is_held_up=lambda: False,
        )  # fmt: skip

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.now_s += 0.1
            self.watch.look()

    def fence(self) -> int:
        self.broker.is_fenced = True
        self.run(1)
        return self.watch.count


def test_a_broker_that_was_well_for_longer_than_a_session_is_not_fenced() -> None:
    cluster = Cluster()
    # One controller of three is stopped all the time.
    cluster.machines[0].is_paused = True
    cluster.run(20)
    assert cluster.fence() == 1
    assert cluster.watch.violations[0].startswith("FENCED: broker 4")


def test_where_sessions_are_short_it_is_only_counted() -> None:
    cluster = Cluster(session_ms=1_500)
    cluster.run(20)
    assert (cluster.fence(), cluster.watch.violations) == (1, [])


@pytest.mark.parametrize("what", ["paused", "cut", "slow", "stopping", "no majority", "shutdown", "registered again"])
def test_what_explains_a_fenced_broker_is_not_counted(what: str) -> None:
    cluster = Cluster()
    cluster.run(20)
    broker = cluster.machines[-1]
    if what == "paused":
        broker.is_paused = True
    elif what == "cut":
        cluster.network.cuts.append(("host4", "host1"))
    elif what == "slow":
        cluster.network.slow["host1", "host4"] = 0.5
    elif what == "stopping":
        broker.is_stopping = True
    elif what == "no majority":
        cluster.machines[0].is_paused = cluster.machines[1].is_ready = False
        cluster.machines[2].is_paused = True
    elif what == "shutdown":
        cluster.broker.in_controlled_shutdown = True
    else:
        cluster.broker.epoch = 2
    cluster.run(3)
    if what == "registered again":
        cluster.broker.epoch = 3
    assert cluster.fence() == 0
