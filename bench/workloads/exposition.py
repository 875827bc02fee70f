"""Metrics of a node with many partitions, each with series of its own: what an exposition takes, and its pauses.

The node runs in this process, on a disk in memory. A callback of the event loop that calls itself again and again
measures the longest turn, first while nothing else happens, then during each exposition.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Mapping
from random import Random
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Final

from ...broker.configuration.node_config import load
from ...broker.node.garbage import freeze, set_thresholds
from ...broker.node.main import SWITCH_INTERVAL_S, new_event_loop, wall_clock_ms
from ...broker.node.server import Node
from ...client.connection import connect
from ...storage.disk.memory_files import MemoryFiles
from ..target import Target

TOPIC: Final = "exposed"
EXPOSITIONS: Final = 10
_QUIET_S: Final = 1.0
_NS_PER_MS: Final = 1e6


class _Turns:
    """Lengths of turns while it runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last_ns = perf_counter_ns()
        self._handle: asyncio.Handle | None = None
        self.longest_ns = 0

    def start(self) -> None:
        self.longest_ns = 0
        self._last_ns = perf_counter_ns()
        self._handle = self._loop.call_soon(self._turn)

    def stop(self) -> float:
        """Milliseconds of the longest turn since `start`."""
        assert self._handle is not None, "started"
        self._handle.cancel()
        return self.longest_ns / _NS_PER_MS

    def _turn(self) -> None:
        now_ns = perf_counter_ns()
        self.longest_ns = max(self.longest_ns, now_ns - self._last_ns)
        self._last_ns = now_ns
        self._handle = self._loop.call_soon(self._turn)


def exposition(_target: Target, *, partitions: int) -> Mapping[str, float | None]:
    """The first exposition, which loads the library, is not counted."""
    loop = new_event_loop()
    try:
        return loop.run_until_complete(_measure(loop, partitions))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _measure(loop: asyncio.AbstractEventLoop, partitions: int) -> Mapping[str, float | None]:
    switch_interval_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    set_thresholds()
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": "/data",
        "num.partitions": str(partitions),
        "metrics.per.partition": "true",
    }
    node = Node(load(properties), MemoryFiles(), loop=loop, wall_clock_ms=wall_clock_ms, random=Random(1))
    await node.start()
    try:
        await _create_topic(node)
        freeze()
        await node.metrics.exposition(None)
        turns = _Turns(loop)
        turns.start()
        await asyncio.sleep(_QUIET_S)
        quiet_ms = turns.stop()
        begun_ns, busy_ns = perf_counter_ns(), process_time_ns()
        size = 0
        longest_ms: list[float] = []
        for _ in range(EXPOSITIONS):
            turns.start()
            size = len((await node.metrics.exposition(None))[0])
            longest_ms.append(turns.stop())
        return {
            "exposition_ms": (perf_counter_ns() - begun_ns) / EXPOSITIONS / _NS_PER_MS,
            "exposition_cpu_ms": (process_time_ns() - busy_ns) / EXPOSITIONS / _NS_PER_MS,
            "exposition_mib": size / 1024**2,
            "turn_ms_median": median(longest_ms),
            "turn_ms_max": max(longest_ms),
            "turn_ms_max_without": quiet_ms,
        }
    finally:
        await node.stop()
        sys.setswitchinterval(switch_interval_s)
        gc.unfreeze()


async def _create_topic(node: Node) -> None:
    from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
    from kio.schema.types import TopicName
    from kio.static.primitive import i16, i32

    topic = CreatableTopic(
        name=TopicName(TOPIC), num_partitions=i32(-1), replication_factor=i16(-1), assignments=(), configs=()
    )
    async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
        await connection.call(CreateTopicsRequest(topics=(topic,)))
    await node.parts.partitions.settled()
