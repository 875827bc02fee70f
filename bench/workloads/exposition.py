"""Metrics of a node with many partitions, each with series of its own: what an exposition takes, and its pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Final

from ...broker.node.server import Node
from ..node_here import Turns, create_topic, with_node_here
from ..target import Target

EXPOSITIONS: Final = 10
_QUIET_S: Final = 1.0
_NS_PER_MS: Final = 1e6


def exposition(_target: Target, *, partitions: int) -> Mapping[str, float | None]:
    """The first exposition, which loads the library, is not counted."""

    async def expose(node: Node) -> Mapping[str, float | None]:
        await create_topic(node, "exposed", partitions)
        await node.metrics.exposition(None)
        turns = Turns()
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

    return with_node_here({"metrics.per.partition": "true"}, expose)
