"""Events of the cluster to those who follow them on this node, from any event on that is still remembered.

A metadata publisher. A reader has no buffer of its own: it is a place in the ring that all share, so a slow one costs
nothing, and finds a gap once the ring has gone past it. A reader that comes from another node resumes by the id.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ...protocol.ids import NodeId
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.event_id import LAST_NUMBER, EventId
from ...quorum.metadata.image import MetadataImage

if TYPE_CHECKING:
    from ...quorum.metadata.cluster_events import ClusterEvent
    from ...quorum.metadata.event_ring import EventRing

LOAD_DELAY_S: Final = 1.0
"""The code behind the events takes 40 ms to load, which is not to hold up the first requests of a node."""
BACKLOG_MAX: Final = 1_000
"""Changes of the metadata until then; each holds an image."""


class _Change(NamedTuple):
    delta: MetadataDelta
    image: MetadataImage
    leader_id: NodeId | None
    wall_ms: int


class EventStream:
    """`leader_id` is who leads the metadata quorum, as far as this node knows."""

    def __init__(self, *, leader_id: Callable[[], NodeId | None], wall_clock_ms: Callable[[], int]) -> None:
        self._leader_id = leader_id
        self._wall_clock_ms = wall_clock_ms
        self._offset = -1
        self._ring: EventRing | None = None
        self._backlog: deque[_Change] = deque()
        self._forgotten: MetadataImage | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._is_closed = False

    @property
    def last_id(self) -> EventId:
        """Behind it are the events that are still to come."""
        return EventId(self._offset, LAST_NUMBER)

    @property
    def is_loaded(self) -> bool:
        """Whether events are derived already."""
        return self._ring is not None

    def recent(self, last_id: EventId) -> list[ClusterEvent]:
        """Return the events behind that one which are there now, the first of them a gap where some are not."""
        events: list[ClusterEvent] = []
        while self._ring is not None and (event := self._ring.next_after(last_id)) is not None:
            events.append(event)
            last_id = event.id
        return events

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._offset = image.offset
        change = _Change(delta, image, self._leader_id(), self._wall_clock_ms())
        if self._ring is not None:
            _take(self._ring, change)
            self._wake()
            return
        if delta.is_gathered:
            self._backlog.clear()
        self._backlog.append(change)
        if len(self._backlog) > BACKLOG_MAX:
            self._forgotten = self._backlog.popleft().image

    async def load(self, loop: asyncio.AbstractEventLoop, *, delay_s: float = LOAD_DELAY_S) -> None:
        """Begin to derive events, from the changes since the start on."""
        await asyncio.sleep(delay_s)
        await loop.run_in_executor(None, _import)
        from ...quorum.metadata.event_ring import EventRing

        ring = EventRing()
        if self._forgotten is not None:
            ring.restart(self._forgotten.offset, self._forgotten.timestamp_ms)
        while self._backlog:
            _take(ring, self._backlog.popleft())
            # Others are served between. What is published meanwhile comes behind.
            await asyncio.sleep(0)
        self._ring = ring
        self._wake()

    def close(self) -> None:
        """End what follows the events."""
        self._is_closed = True
        self._wake()

    def subscribe(self, last_id: EventId | None = None) -> AsyncIterator[ClusterEvent]:
        """Yield the events behind `last_id`, or from now on, as they happen; a gap where some are not known any more.

        An id that this node has not reached yet is waited for.
        """
        return self._follow(self.last_id if last_id is None else last_id)

    async def _follow(self, last_id: EventId) -> AsyncIterator[ClusterEvent]:
        while not self._is_closed:
            event = None if self._ring is None else self._ring.next_after(last_id)
            if event is not None:
                last_id = event.id
                yield event
                continue
            await self._change()

    async def wait_loaded(self) -> None:
        """Return once events are derived, or the node stops."""
        while self._ring is None and not self._is_closed:
            await self._change()

    async def _change(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _take(ring: EventRing, change: _Change) -> None:
    from ...quorum.metadata.cluster_events import ClusterEvent
    from ...quorum.metadata.event_derivation import derive

    delta, image, leader_id, wall_ms = change
    if delta.is_gathered:
        ring.restart(image.offset, image.timestamp_ms)
        return
    # The entry that begins an epoch has nothing in it, no time either.
    timestamp_ms = wall_ms if delta.is_empty else image.timestamp_ms
    for number, derived in enumerate(derive(delta, image, leader_id=leader_id)):
        ring.append(ClusterEvent(id=EventId(image.offset, number), timestamp_ms=timestamp_ms, change=derived))


def _import() -> None:
    from ...quorum.metadata import event_derivation, event_ring  # noqa: F401
