"""Waiting for a condition with a deadline: the one way in which tests wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from penstock.client import clock

T = TypeVar("T")

DEADLINE_S: Final = 90.0
"""Far more than anything takes on a busy machine, and below pytest's own limit, which names no condition."""


def wait_for(
    condition: Callable[[], T],
    what: str | Callable[[], str] = "the condition",
    *,
    timeout_s: float = DEADLINE_S,
    interval_s: float = 0.02,
) -> T:
    """Return the first true value of `condition`. AssertionError, with `what`, after `timeout_s` seconds."""
    value = condition()

    def is_true() -> bool:
        nonlocal value
        value = condition()
        return bool(value)

    if not value and not clock.wait_until(is_true, timeout_s=timeout_s, interval_s=interval_s):
        raise AssertionError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
    return value


async def loop_until(
    condition: Callable[[], object],
    what: str | Callable[[], str] = "the condition",
    *,
    timeout_s: float = 20.0,
    interval_s: float = 0.005,
) -> None:
    """Run the loop, real or virtual, until `condition` is true. AssertionError after `timeout_s` seconds."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not condition():
        if loop.time() >= deadline_s:
            raise AssertionError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        await asyncio.sleep(interval_s)


async def ask_until(
    ask: Callable[[], Awaitable[T]],
    is_wanted: Callable[[T], object],
    what: str = "the answer",
    *,
    timeout_s: float = 20.0,
    interval_s: float = 0.005,
) -> T:
    """Ask again until `is_wanted` takes the answer; return that. AssertionError, with the last, after `timeout_s` s."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not is_wanted(answer := await ask()):
        assert loop.time() < deadline_s, f"not within {timeout_s:g} s: {what}; the last answer: {answer}"
        await asyncio.sleep(interval_s)
    return answer
