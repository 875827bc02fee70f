"""Requests to a coordinator that is loading: how long they wait, and in which order they go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from wire import ManualLoop

from penstock.broker.coordinators.held_requests import HOLD_S, TURN_REQUESTS, HeldRequests

HOLD_MS = round(1000 * HOLD_S)


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
    loop.turn(HOLD_MS - 10)
    assert held.is_open
    assert begun == []
    loop.turn(20)
    loop.turn()
    assert begun == [1]


def test_without_requests_nothing_is_left(loop: ManualLoop) -> None:
    held = HeldRequests(loop)
    held.release()
    loop.turn(2 * HOLD_MS)
    assert not held.is_open
