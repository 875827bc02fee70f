"""What many partitions cost one node: making them, the memory of idle ones, stopping, starting again.

While the topic is made, a second client asks for ApiVersions again and again: its slowest answer is the longest time
that the node was away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from kio.schema.api_versions.v4 import ApiVersionsRequest

from ... import __version__
from ...client import clock
from ...local.local_node import LocalNode
from ..all_partitions import AllPartitions
from ..node_client import DEADLINE_S, NodeClient
from ..target import Target, node_pids
from ..usage import cpu_s, open_files, resident_mib
from .startup import SETTLE_S

WRITTEN: Final = 10
"""Partitions that hold records when the node ends."""
_TOPIC: Final = "many"
_ASK_PAUSE_S: Final = 0.001


def partitions(target: Target, *, count: int, is_written: bool = False) -> Mapping[str, float | None]:
    """Fill a fresh node with partitions, stop it and start it again, kill it and start it again.

    With `is_written` all of them hold a record, and take another one after each start.
    """
    assert target.fresh_node is not None, "only asked of targets that can be started"
    with target.fresh_node() as node:
        node.start()
        values, topic_id = asyncio.run(_fill(node, count))
        if is_written:
            asyncio.run(_write_all(node, count))
            values["loaded_mib"] = resident_mib(node_pids(node))
            values["open_files"] = open_files(node_pids(node))
        start_s = clock.monotonic_s()
        node.stop(timeout_s=DEADLINE_S)
        values["clean_stop_s"] = clock.monotonic_s() - start_s
        for name in ("restart", "kill_restart"):
            start_s = clock.monotonic_s()
            values[f"{name}_s"] = _restart(node, topic_id)
            values[f"{name}_cpu_s"] = cpu_s(node_pids(node))
            if is_written:
                asyncio.run(_write_all(node, count))
                values[f"{name}_written_s"] = clock.monotonic_s() - start_s
            node.kill()
        return values


async def _fill(node: LocalNode, count: int) -> tuple[dict[str, float | None], UUID]:
    async with await NodeClient.connect(node) as client, await NodeClient.connect(node) as other:
        await client.produce(await client.create("few", 1), 0)
        await asyncio.sleep(SETTLE_S)
        empty_mib = resident_mib(node_pids(node))
        is_made = asyncio.Event()
        asking = asyncio.create_task(_slowest_answer_s(other, is_made))
        topic_id = await client.create(_TOPIC, count)
        for partition in {*range(WRITTEN), count - 1}:
            await client.produce(topic_id, partition)
        is_made.set()
        slowest_s = await asking
        await asyncio.sleep(SETTLE_S)
        added_mib = resident_mib(node_pids(node)) - empty_mib
    return {"create_slowest_ms": 1000 * slowest_s, "kib_per_partition": 1024 * added_mib / count}, topic_id


async def _slowest_answer_s(other: NodeClient, is_over: asyncio.Event) -> float:
    question = ApiVersionsRequest(client_software_name="bench", client_software_version=__version__)
    slowest_s = 0.0
    while not is_over.is_set():
        asked_s = clock.monotonic_s()
        await other.connection.call(question)
        slowest_s = max(slowest_s, clock.monotonic_s() - asked_s)
        await asyncio.sleep(_ASK_PAUSE_S)
    return slowest_s


async def _write_all(node: LocalNode, count: int) -> None:
    async with AllPartitions([node], _TOPIC, count) as partitions:
        await partitions.write()


def _restart(node: LocalNode, topic_id: UUID) -> float:
    """Seconds from process start to the first acknowledged record; records are added for the next time."""
    start_s = clock.monotonic_s()
    node.start()
    return asyncio.run(_write_again(node, topic_id, start_s))


async def _write_again(node: LocalNode, topic_id: UUID, start_s: float) -> float:
    async with await NodeClient.connect(node) as client:
        await client.produce(topic_id, 0)
        first_s = clock.monotonic_s() - start_s
        for partition in range(WRITTEN):
            await client.produce(topic_id, partition)
        return first_s
