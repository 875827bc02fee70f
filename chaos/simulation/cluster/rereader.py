"""A client of a simulated cluster that reads a topic from its start to its end, again and again.

Where the topic is in the tier, most of what it reads is no more on any disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from ...checkers.records import Stored
from .clients import CLIENT_FAILURES, History, patiently, read_all
from .loop import SimulatedLoop
from .process import Process

_PATIENCE_S: Final = 20.0
_FAILURES: Final = (*CLIENT_FAILURES, AssertionError, TimeoutError)


class Rereader:
    """Until `is_stopping`."""

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *,
        log_start: Callable[[int], int], loop: SimulatedLoop, random: Random,
    ) -> None:  # fmt: skip
        """`log_start` tells where the log of any replica of a partition ever began at the latest."""
        self.process = Process(name, "10.0.2.8")
        self.is_stopping = False
        self.is_done = False
        self.read_count = 0
        self._name = name
        self._bootstrap = list(bootstrap)
        self._history = history
        self._log_start = log_start
        self._loop = loop
        self._random = random

    def start(self) -> None:
        self.process.run(lambda: self._loop.create_task(self._run()))

    async def _run(self) -> None:
        while not self.is_stopping:
            partition = self._random.randrange(self._history.partition_count)
            try:
                reading = read_all(self._bootstrap, self._history.topic, partition)
                self._take(partition, await patiently(reading, _PATIENCE_S))
            except _FAILURES as error:
                self._history.errors[type(error).__name__] += 1
            await asyncio.sleep(self._random.expovariate(1 / 0.5))
        self.is_done = True

    def _take(self, partition: int, records: list[Stored]) -> None:
        history = self._history
        expected = 0
        for record in records:
            # What was deleted meanwhile is passed over.
            if record.offset != expected and record.offset > self._log_start(partition):
                history.violations.append(
                    f"{self._name} read offset {record.offset} of partition {partition} behind {expected - 1}"
                )
            history.on_read(self._name, partition, record.offset, record.value)
            expected = record.offset + 1
        self.read_count += len(records)
