"""A node from its process start to the first acknowledged record, and the memory it holds when nothing is asked of it.

The node starts with default properties in an empty folder. Apache Kafka's folder is formatted before the clock starts,
by a program of its own; Penstock formats inside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from ...client import clock
from ...local.local_node import LocalNode
from ..node_client import NodeClient
from ..target import Target, node_pids
from ..usage import cpu_s, resident_mib

SETTLE_S: Final = 2.0
"""Before idle memory is read: whatever a node does once after its start is over by then."""


def startup(target: Target) -> Mapping[str, float | None]:
    """Start a fresh node, measure, and stop it."""
    assert target.fresh_node is not None, "only asked of targets that can be started"
    with target.fresh_node() as node:
        start_s = clock.monotonic_s()
        node.start()
        listening_s, acknowledged_s = asyncio.run(_first_record(node, start_s))
        pids = node_pids(node)
        start_cpu_s = cpu_s(pids)
        clock.pause(SETTLE_S)
        return {
            "startup_s": acknowledged_s,
            "listening_s": listening_s,
            "startup_cpu_s": start_cpu_s,
            "idle_mib": resident_mib(pids),
        }


async def _first_record(node: LocalNode, start_s: float) -> tuple[float, float]:
    """Seconds since then until a client was answered, and until its record was acknowledged."""
    async with await NodeClient.connect(node) as client:
        listening_s = clock.monotonic_s() - start_s
        await client.produce(await client.create("first", 1), 0)
        return listening_s, clock.monotonic_s() - start_s
