"""One address that sends without end holds up itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.broker.admin import fair_pace
from penstock.broker.admin.fair_pace import FairPace
from penstock.broker.admin.operation import HttpError
from penstock.broker.admin.rules.pace import Pace

FAST = 10_000.0


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(within())


def crowd(pace: FairPace, peer: str, count: int, order: list[str]) -> list[asyncio.Task[None]]:
    async def one() -> None:
        await pace.wait(peer)
        order.append(peer)

    return [asyncio.create_task(one()) for _ in range(count)]


def test_a_burst_begins_at_once() -> None:
    async def test() -> None:
        pace = FairPace(Pace(units_per_s=0.001, burst=3))
        for _ in range(3):
            await pace.wait("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await pace.wait("a")

    run(test)


def test_beyond_the_pace_addresses_take_turns() -> None:
    async def test() -> None:
        pace, order = FairPace(Pace(units_per_s=FAST, burst=1)), list[str]()
        await pace.wait("a")
        hostile = crowd(pace, "a", 100, order)
        await asyncio.sleep(0)
        others = crowd(pace, "b", 2, order) + crowd(pace, "c", 1, order)
        await asyncio.gather(*hostile, *others)
        # Some of the first one's may have begun before the others came.
        first = order.index("b")
        assert sorted(order[first : first + 2] + order[first - 1 : first]) in (["a", "b", "c"], ["a", "a", "b"])
        assert max(index for index, peer in enumerate(order) if peer != "a") < first + 4
        assert order.count("a") == 100

    run(test)


def test_a_client_that_is_gone_takes_no_turn() -> None:
    async def test() -> None:
        pace, order = FairPace(Pace(units_per_s=50, burst=1)), list[str]()
        await pace.wait("a")
        gone = crowd(pace, "a", 5, order)
        await asyncio.sleep(0)
        for one in gone:
            one.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        assert len(pace._waiting) == 0
        await asyncio.gather(*crowd(pace, "b", 1, order))
        assert order == ["b"]

    run(test)


def test_few_wait_and_those_of_others_stay(monkeypatch: Any) -> None:
    async def test() -> None:
        monkeypatch.setattr(fair_pace, "WAITING_MAX", 4)
        pace, order = FairPace(Pace(units_per_s=FAST, burst=1)), list[str]()
        with pytest.MonkeyPatch.context() as clock:
            # No turn comes before all are there, however slow this machine is.
            loop = asyncio.get_running_loop()
            now_s = loop.time()
            clock.setattr(loop, "time", lambda: now_s)
            await pace.wait("a")
            hostile, other = crowd(pace, "a", 8, order), crowd(pace, "b", 1, order)
            await asyncio.sleep(0)
        ends = await asyncio.gather(*hostile, *other, return_exceptions=True)
        refused = [one for one in ends if isinstance(one, HttpError)]
        assert {one.status for one in refused} == {503}
        assert (len(refused), order.count("b"), ends[-1]) == (5, 1, None)

    run(test)
