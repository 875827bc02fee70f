"""A client of a simulated cluster that reads the same from its start to its end, again and again."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Sequence
from random import Random
from typing import Final, TypeVar

from .clients import CLIENT_FAILURES, patiently
from .loop import SimulatedLoop
from .process import Process

T = TypeVar("T")

_PATIENCE_S: Final = 20.0
_PAUSE_S: Final = 0.5
_FAILURES: Final = (*CLIENT_FAILURES, AssertionError, TimeoutError)


class RepeatedReader(ABC):
    """One reading after the other, until `is_stopping`."""

    def __init__(
        self, name: str, host: str, bootstrap: Sequence[str], errors: Counter[str], *, loop: SimulatedLoop,
        random: Random,
    ) -> None:  # fmt: skip
        """`errors` counts, by their types, those that ended a reading."""
        self.process = Process(name, host)
        self.is_stopping = False
        self.is_done = False
        self._name = name
        self._bootstrap = list(bootstrap)
        self._errors = errors
        self._loop = loop
        self._random = random

    def start(self) -> None:
        self.process.run(lambda: self._loop.create_task(self._run()))

    async def _run(self) -> None:
        while not self.is_stopping:
            try:
                await self._read()
            except _FAILURES as error:
                self._errors[type(error).__name__] += 1
            await asyncio.sleep(self._random.expovariate(1 / _PAUSE_S))
        self.is_done = True

    @abstractmethod
    async def _read(self) -> None:
        """One reading, `_within_patience`."""

    async def _within_patience(self, reading: Awaitable[T]) -> T:
        return await patiently(reading, _PATIENCE_S)
