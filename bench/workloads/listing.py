"""A node with many partitions, listed over HTTP: how long each list takes, and its pauses.

The lists are read as they come and not looked into, so that the turns that are measured are the node's.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from time import perf_counter_ns
from typing import Final

import click
import msgspec

from ...broker.node.server import Node
from ..node_here import Turns, create_topic, with_node_here
from ..target import Target

TOPIC: Final = "listed"
ROUNDS: Final = 5
_READ_BYTES: Final = 1 << 16
_NS_PER_MS: Final = 1e6
_OK: Final = b"HTTP/1.1 200 "


def listing(_target: Target, *, partitions: int) -> Mapping[str, float | None]:
    """The longest list, and the longest turn of each. The first round, which loads the library, is not counted."""

    async def read_lists(node: Node) -> Mapping[str, float | None]:
        await create_topic(node, TOPIC, partitions)
        (listener,) = node.config.admin_listeners
        answer = await _get(listener.host, listener.port, "/v3/clusters")
        cluster_id = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])["data"][0]["cluster_id"]
        turns = Turns()
        lists: defaultdict[str, list[float]] = defaultdict(list)
        longest_turns: defaultdict[str, list[float]] = defaultdict(list)
        for number in range(ROUNDS + 1):
            for name, path in _lists(cluster_id, node.config.node_id).items():
                begun_ns = perf_counter_ns()
                turns.start()
                await _get(listener.host, listener.port, path)
                turn_ms = turns.stop()
                if number:
                    lists[name].append((perf_counter_ns() - begun_ns) / _NS_PER_MS)
                    longest_turns[name].append(turn_ms)
        return {
            "list_ms": max(map(median, lists.values())),
            "turn_ms_median": max(map(median, longest_turns.values())),
            "turn_ms_max": max(map(max, longest_turns.values())),
            **{f"{name}_ms": median(times) for name, times in lists.items()},
            **{f"{name}_turn_ms": median(times) for name, times in longest_turns.items()},
        }

    return with_node_here({}, read_lists)


def _lists(cluster_id: str, broker_id: int) -> Mapping[str, str]:
    return {
        "partitions": f"/v3/clusters/{cluster_id}/topics/{TOPIC}/partitions",
        "partition_replicas": f"/v3/clusters/{cluster_id}/brokers/{broker_id}/partition-replicas",
        "topic_overview": f"/v1/topics?topic={TOPIC}&page_size=1000",
        "partition_map": "/v1/partition-map",
        "nodes": "/v1/nodes",
        "health": "/health",
    }


async def _get(host: str, port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = bytearray()
        while part := await reader.read(_READ_BYTES):
            answer += part
    finally:
        writer.close()
    if not answer.startswith(_OK):
        raise click.ClickException(f"{path} was answered with {bytes(answer[:200])!r}")
    return bytes(answer)
