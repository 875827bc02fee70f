"""A client of a simulated cluster that reads the same from its start to its end, again and again."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Sequence
from random import Random
from typing import Final, TypeVar

from .clients import CLIENT_FAILURES, patiently
from .loop import SimulatedLoop
from .simulated_client import SimulatedClient

T = TypeVar("T")

_PATIENCE_S: Final = 20.0
_PAUSE_S: Final = 0.5
_FAILURES: Final = (*CLIENT_FAILURES, AssertionError, TimeoutError)


class RepeatedReader(SimulatedClient):
    """One reading after the other, until `is_stopping`."""

    def __init__(
        self, name: str, host: str, bootstrap: Sequence[str], errors: Counter[str], *, loop: SimulatedLoop,
        random: Random,
    ) -> None:  # fmt: skip
        """`errors` counts, by their types, those that ended a reading."""
        super().__init__(name, host, loop=loop, random=random)
        self._bootstrap = list(bootstrap)
        self._errors = errors

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
