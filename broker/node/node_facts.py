"""What a node knows of how it is, for its health: disks, logs, coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...protocol.errors import ErrorCode
from ...storage.directories.log_directory import LogDirectory
from ..admin.rules.node_facts import DirectoryFacts, NodeFacts
from .server import Node


async def node_facts(node: Node, loop: asyncio.AbstractEventLoop, *, started_ms: int | None) -> NodeFacts:
    """Look at the disks in the executor: one that hangs is not to hold up the loop."""
    directories = await loop.run_in_executor(None, _directories, list(node.directories))
    failure = node.failure.result() if node.failure.done() and not node.failure.cancelled() else None
    if not node.has_parts:
        return NodeFacts(failure=failure, started_ms=started_ms, directories=directories)
    parts = node.parts
    coordinators = (*parts.groups.coordinators, *parts.transactions.coordinators)
    return NodeFacts(
        failure=failure,
        started_ms=started_ms,
        directories=directories,
        offline_replicas=tuple(
            (partition.topic, partition.index)
            for partition in parts.partitions.hosted
            if partition.error is not ErrorCode.NONE
        ),
        loading_coordinators=sum(not one.is_active for one in coordinators),
    )


def _directories(directories: Sequence[LogDirectory]) -> tuple[DirectoryFacts, ...]:
    return tuple(
        DirectoryFacts(path=one.path, is_online=one.is_online, has_room=not one.is_online or _has_room(one))
        for one in directories
    )


def _has_room(directory: LogDirectory) -> bool:
    try:
        return directory.room is None or directory.room.has_free_bytes()
    except OSError:
        # The logs' own errors decide whether the directory stays online.
        return True
