"""Collector of a response's parts, which arrive one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class ResponseCollector(Generic[T]):
    """Calls `respond` once, with all answers in the order of their slots; at once if `count` is 0."""

    def __init__(self, count: int, respond: Callable[[tuple[T, ...]], None]) -> None:
        self._answers: list[T | None] = [None] * count
        self._open_count = count
        self._respond = respond
        if not count:
            respond(())

    def slot(self, number: int) -> Callable[[T], None]:
        """Returns the callback for one answer; the caller calls it once."""
        return partial(self._settle, number)

    def _settle(self, number: int, answer: T) -> None:
        self._answers[number] = answer
        self._open_count -= 1
        if not self._open_count:
            self._respond(cast("tuple[T, ...]", tuple(self._answers)))
