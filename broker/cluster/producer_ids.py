"""Producer ids of this node, from blocks that the controller gives (KIP-730): none is ever given twice.

Kafka: `RPCProducerIdManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.types import BrokerId
from kio.static.primitive import i64

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ...quorum.decisions.producer_ids import ALLOCATE_PRODUCER_IDS
from .controller_channel import ControllerChannel

logger = logging.getLogger(__name__)


class ProducerIds:
    """Takes a new block when the last one is used up; requests that come meanwhile wait for the same block."""

    def __init__(self, allocate_block: Callable[[], Awaitable[range]]) -> None:
        """`allocate_block` returns after the block is committed; raises KafkaError."""
        self._allocate_block = allocate_block
        self._block = range(0)
        self._allocation: asyncio.Future[None] | None = None
        self._is_failing = False

    async def next_id(self) -> int:
        """Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS) when no block can be allocated now, whatever the reason: as
        in Apache Kafka, because all clients retry at that, with a transactional id or without. To some of them
        REQUEST_TIMED_OUT is fatal, and at COORDINATOR_NOT_AVAILABLE they look for the coordinator of an id.
        """
        while not self._block:
            if self._allocation is None:
                self._allocation = asyncio.ensure_future(self._allocate())
            # A client that goes away must not take the block with it.
            await asyncio.shield(self._allocation)
        producer_id = self._block[0]
        self._block = self._block[1:]
        return producer_id

    async def _allocate(self) -> None:
        # Set before the task ends, not in its callback: a request between the two would find neither a block nor an
        # allocation to wait for.
        try:
            self._block = await self._allocate_block()
            self._is_failing = False
        except KafkaError as error:
            if not self._is_failing:
                # Clients come back as soon as they like, the line does not.
                self._is_failing = True
                logger.warning("Failed to allocate producer ids: reason=%s", error)
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error
        finally:
            self._allocation = None


async def allocate_producer_ids(controller: ControllerChannel, *, node_id: NodeId, broker_epoch: BrokerEpoch) -> range:
    """A block that no other node has. Raises KafkaError."""
    request = AllocateProducerIdsRequest(broker_id=BrokerId(node_id), broker_epoch=i64(broker_epoch))
    response = await controller.submit(ALLOCATE_PRODUCER_IDS, request)
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
