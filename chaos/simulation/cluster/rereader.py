"""A client of a simulated cluster that reads a topic, partition by partition, from where its log starts.

Where the topic is in the tier, most of what it reads is no more on any disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ...checkers.records import Stored
from .clients import History, read_all
from .loop import SimulatedLoop
from .repeated_reader import RepeatedReader


class Rereader(RepeatedReader):
    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *,
        log_start: Callable[[int], int], loop: SimulatedLoop, random: Random,
    ) -> None:  # fmt: skip
        """`log_start` tells where the log of any replica of a partition ever began at the latest."""
        super().__init__(name, "10.0.2.8", bootstrap, history.errors, loop=loop, random=random)
        self._history = history
        self._log_start = log_start

    async def _read(self) -> None:
        history = self._history
        partition = self._random.randrange(history.partition_count)
        records = await self._within_patience(read_all(self._bootstrap, history.topic, partition))
        self._take(partition, records)

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
