"""Requests to a coordinator that is loading: how long they wait, and in which order they go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock.broker.coordinators.held_requests import HOLD_S, TURN_REQUESTS, HeldRequests


class ManualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test moves."""

    now_s = 1_000.0

    def time(self) -> float:
        return self.now_s

    def turn(self, by_s: float = 0.0) -> None:
        self.now_s += by_s
        self.call_soon(self.stop)
        self.run_forever()


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.close()


def test_requests_go_on_in_their_order_and_in_turns(loop: ManualLoop) -> None:
    held = HeldRequests(loop)
    begun: list[int] = []
    for number in range(TURN_REQUESTS + 1):
        held.wait(lambda number=number: begun.append(number))  # type: ignore[misc]
    held.release()
    assert not held.is_open
    assert begun == [], "the caller goes on first"
    loop.turn()
    assert begun == [*range(TURN_REQUESTS)]
    loop.turn()
    assert begun == [*range(TURN_REQUESTS + 1)]
    held.release()
    loop.turn()
    assert len(begun) == TURN_REQUESTS + 1


def test_no_request_waits_longer_than_a_moment(loop: ManualLoop) -> None:
    held = HeldRequests(loop)
    begun: list[int] = []
    held.wait(lambda: begun.append(1))
    loop.turn(HOLD_S - 0.01)
    assert held.is_open
    assert begun == []
    loop.turn(0.02)
    loop.turn()
    assert begun == [1]


def test_without_requests_nothing_is_left(loop: ManualLoop) -> None:
    held = HeldRequests(loop)
    held.release()
    loop.turn(2 * HOLD_S)
    assert not held.is_open
