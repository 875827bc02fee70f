"""Producer ids of this node, from blocks that the controller gives (KIP-730): none is ever given twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    """Takes a new block when the last one is used up; requests that come meanwhile wait for the same block."""

    def __init__(self, allocate_block: Callable[[], Awaitable[range]]) -> None:
        """`allocate_block` returns after the block is committed; raises KafkaError."""
        self._allocate_block = allocate_block
        self._block = range(0)
        self._allocation: asyncio.Future[range] | None = None

    async def next_id(self) -> int:
        """Raises KafkaError when there is no controller to ask."""
        while not self._block:
            if self._allocation is None:
                self._allocation = asyncio.ensure_future(self._allocate_block())
                self._allocation.add_done_callback(self._on_allocation)
            # A client that goes away must not take the block with it.
            await asyncio.shield(self._allocation)
        producer_id = self._block[0]
        self._block = self._block[1:]
        return producer_id

    def _on_allocation(self, allocation: asyncio.Future[range]) -> None:
        self._allocation = None
        if not allocation.cancelled() and allocation.exception() is None:
            self._block = allocation.result()
