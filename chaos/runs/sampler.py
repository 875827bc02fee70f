"""Looks at a cluster every half second while it is broken, and writes down what it saw."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from pathlib import Path
from typing import Final

import msgspec

from ...client import clock
from ...local.background_work import BackgroundWork
from ..histories.cluster_sample import ClusterSample

INTERVAL_S: Final = 0.5
ANSWER_S: Final = 0.4
"""For what one node is asked: what comes later is left out of the sample."""
_ENCODER: Final = msgspec.json.Encoder()


class Sampler(BackgroundWork):
    """Appends a `ClusterSample` a line to a file from `__enter__` to `__exit__`."""

    def __init__(self, path: Path, *, start_ns: int) -> None:
        """Nothing is asked yet. Times are since `start_ns` of the monotonic clock."""
        super().__init__("samples")
        self._path = path
        self._start_ns = start_ns

    @abstractmethod
    async def sample(self, time_ns: int) -> ClusterSample:
        """What the cluster looks like now."""

    @abstractmethod
    async def close(self) -> None:
        """After the last sample, on the loop on which it was taken."""

    def _work(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        try:
            with self._path.open("ab", buffering=0) as file:
                while not self._is_ended.is_set():
                    begun_s = clock.monotonic_s()
                    sample = await self.sample(clock.monotonic_ns() - self._start_ns)
                    file.write(_ENCODER.encode(sample) + b"\n")
                    await asyncio.sleep(max(0.0, begun_s + INTERVAL_S - clock.monotonic_s()))
        finally:
            await self.close()
