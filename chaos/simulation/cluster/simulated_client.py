"""A client of a simulated cluster: a process of its own, and what it does until it is to stop."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from random import Random
from typing import ClassVar, Final

from .loop import SimulatedLoop
from .process import Process

_RETRY_S: Final = 0.2


class SimulatedClient(ABC):
    def __init__(self, name: str, host: str, *, loop: SimulatedLoop, random: Random) -> None:
        self.process = Process(name, host)
        self.is_stopping = False
        self.is_done = False
        self._name = name
        self._loop = loop
        self._random = random

    def start(self) -> None:
        self.process.run(lambda: self._loop.create_task(self._run()))

    @abstractmethod
    async def _run(self) -> None:
        """All that it does; `is_done` at the end."""


class RevivingClient(SimulatedClient):
    """One life after the other, until `is_stopping`: a failure ends one, and the next begins a moment later."""

    failures: ClassVar[tuple[type[BaseException], ...]]
    """Those that end a life."""

    def __init__(self, name: str, host: str, errors: Counter[str], *, loop: SimulatedLoop, random: Random) -> None:
        """`errors` counts, by their types, those that ended a life."""
        super().__init__(name, host, loop=loop, random=random)
        self._errors = errors

    async def _run(self) -> None:
        life = 0
        while not self.is_stopping:
            life += 1
            try:
                await self._live(f"{self._name}.{life}")
            except self.failures as error:
                self._errors[type(error).__name__] += 1
                await asyncio.sleep(_RETRY_S)
        self.is_done = True

    @abstractmethod
    async def _live(self, name: str) -> None:
        """One life, which has this name."""
