"""A running cluster that grows and shrinks: brokers join, take over replicas, give them back and leave."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from ..client import clock
from ..client.connection import Connection, connect
from ..client.membership import Assignment, move_replicas, moving_partitions, replicas_of, unregister_broker
from .cluster import LocalCluster
from .errors import ClusterError

_MOVE_TIMEOUT_S: Final = 300.0
_POLL_S: Final = 0.05
_STOP_TIMEOUT_S: Final = 60.0


def moved_over(assignment: Assignment, newcomers: Sequence[int]) -> Assignment:
    """Every third partition goes over to the newcomers, which take the places of its first replicas, led by them."""
    return {
        index: tuple(newcomers[(index + place) % len(newcomers)] for place in range(len(newcomers)))[: len(replicas)]
        + replicas[len(newcomers) :]
        for index, replicas in sorted(assignment.items())[::3]
    }


def moved_off(assignment: Assignment, leaving: Collection[int], staying: Collection[int]) -> Assignment:
    """What has replicas on those that leave gets others on those that stay, evenly. Raises ClusterError."""
    load = Counter(replica for replicas in assignment.values() for replica in replicas if replica in staying)
    moves = {}
    for index, replicas in sorted(assignment.items()):
        kept = [replica for replica in replicas if replica not in leaving]
        while len(kept) < len(replicas):
            free = [broker_id for broker_id in sorted(staying) if broker_id not in kept]
            if not free:
                raise ClusterError(
                    f"partition {index} has {len(replicas)} replicas, and only {len(staying)} brokers stay"
                )
            chosen = min(free, key=lambda broker_id: load[broker_id])
            load[chosen] += 1
            kept.append(chosen)
        if tuple(kept) != replicas:
            moves[index] = tuple(kept)
    return moves


def assignment_of(cluster: LocalCluster, topic: str) -> Assignment:
    """As the first node tells."""

    async def ask() -> Assignment:
        async with await _connect(cluster) as connection:
            return await replicas_of(connection, topic)

    return asyncio.run(ask())


def move(cluster: LocalCluster, topic: str, moves: Assignment) -> None:
    """Returns when all are moved. Raises KafkaError for a refused move, ClusterError when they are not done in time."""

    async def run() -> None:
        deadline_s = clock.monotonic_s() + _MOVE_TIMEOUT_S
        async with await _connect(cluster) as connection:
            await move_replicas(connection, topic, moves)
            while moving := await moving_partitions(connection):
                if clock.monotonic_s() > deadline_s:
                    raise ClusterError(f"{len(moving)} partitions are still being moved after {_MOVE_TIMEOUT_S:g} s")
                await asyncio.sleep(_POLL_S)

    asyncio.run(run())


def decommission(cluster: LocalCluster, topic: str, leaving: Collection[int]) -> None:
    """Brokers that are no controllers give away what they have of the only topic, leave, and are stopped."""
    move(cluster, topic, moved_off(assignment_of(cluster, topic), leaving, cluster.nodes.keys() - set(leaving)))
    for broker_id in leaving:
        asyncio.run(_unregister(cluster, broker_id))
        cluster.stop_node(broker_id, timeout_s=_STOP_TIMEOUT_S)
        cluster.forget_node(broker_id)


async def _unregister(cluster: LocalCluster, broker_id: int) -> None:
    async with await _connect(cluster) as connection:
        await unregister_broker(connection, broker_id)


async def _connect(cluster: LocalCluster) -> Connection:
    first = next(iter(cluster.nodes.values()))
    return await connect(first.host, first.port)
