"""The current metadata image, for handlers: the first of the publishers.

Kafka: `MetadataCache`, `KRaftMetadataCache`.
"""

from __future__ import annotations

import asyncio

from ...protocol.ids import NO_NODE, NodeId
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import EMPTY_IMAGE, MetadataImage


class MetadataCache:
    """Holds the newest image. A handler reads `image` once and keeps to it, so that its answer is of one moment."""

    def __init__(self, node_id: NodeId = NO_NODE) -> None:
        """`node_id` is this node's."""
        self.node_id = node_id
        self.image: MetadataImage = EMPTY_IMAGE
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        if self._waiting:
            for offset, future in self._waiting:
                if offset <= image.offset and not future.done():
                    future.set_result(None)
            self._waiting = [(offset, future) for offset, future in self._waiting if not future.done()]

    async def wait_for(self, offset: int) -> None:
        """Until the image has the entry at that offset."""
        if self.image.offset < offset:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((offset, future))
            await future
