"""The current metadata image, for handlers: the first of the publishers.

Kafka: `MetadataCache`, `KRaftMetadataCache`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ...protocol.ids import NO_NODE, NodeId
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from .rules.watched_change import WatchedChange


class MetadataCache:
    """Holds the newest image. A handler reads `image` once and keeps to it, so that its answer is of one moment."""

    def __init__(self, node_id: NodeId = NO_NODE) -> None:
        """`node_id` is this node's."""
        self.node_id = node_id
        self.image: MetadataImage = EMPTY_IMAGE
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._watched: dict[str, WatchedChange] = {}

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        for change in self._watched.values():
            change.on_delta(delta)
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

    @contextmanager
    def watch(self, name: str) -> Iterator[WatchedChange]:
        """What the request of that name does, from now on; no two that are watched have the same name."""
        assert name not in self._watched
        change = self._watched[name] = WatchedChange(name)
        try:
            yield change
        finally:
            del self._watched[name]
