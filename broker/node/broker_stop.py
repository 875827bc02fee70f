"""The end of a node's broker, in order: what has begun is answered, and nothing acknowledged is only in memory.

Kafka: `BrokerServer.shutdown`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ...quorum.metadata.publishers import Publishers
from ...storage.directories.log_manager import LogManager
from ..cluster.suspected_peers import SuspectedPeers
from .wiring import BrokerParts

DRAIN_TIMEOUT_MS: Final = 10_000
"""For clients that do not read their answers; whatever else requests wait for is ended at once, or for a controller
soon."""


async def stop_broker(
    parts: BrokerParts,
    logs: LogManager,
    publishers: Publishers,
    suspected: SuspectedPeers,
    loop: asyncio.AbstractEventLoop,
) -> None:
    """The logs are closed, and the mark of a clean stop written, when this returns."""
    await parts.lifecycle.shut_down()
    await parts.partitions.settled()
    parts.listeners.close()
    await suspected.stop()
    parts.groups.close()
    await parts.transactions.close()
    parts.data_path.produces.expire_all()
    parts.data_path.fetches.expire_all()
    parts.data_path.deletes.expire_all()
    # Where no controller answers, what clients asked it for would keep this node for as long as they wait.
    parts.controller.limit_wait()
    await parts.listeners.drain(DRAIN_TIMEOUT_MS)
    await parts.dispatcher.stop()
    parts.data_path.verifier.close()
    if parts.tier is not None:
        await parts.tier.close()
    for channel in parts.peer_channels:
        await channel.close()
    # What the cluster changes from now on, the next start carries out.
    publishers.close()
    await parts.partitions.settled()
    await parts.alter_partitions.stop()
    await parts.partitions.stop()
    await parts.flusher.drain()
    # The directories stay locked until the quorum is left: its journal, or its observer log, may be in one of them.
    await logs.close(
        loop, broker_epoch=parts.lifecycle.broker_epoch, high_watermarks=parts.partitions.high_watermarks()
    )
