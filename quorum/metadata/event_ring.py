"""The newest events of a cluster, of which readers ask for what comes after the last one that they have."""

from bisect import bisect_right
from collections import deque
from typing import Final

from .cluster_events import ClusterEvent, ConfigsChanged, Gap, Summary
from .event_id import LAST_NUMBER, EventId

EVENTS_MAX: Final = 4_096
"""An hour of a cluster in which something happens every second; a page asks for less."""
BYTES_MAX: Final = 1024 * 1024
"""What they may take in memory, about."""
_EVENT_BYTES: Final = 240
_ITEM_BYTES: Final = 64


class EventRing:
    """Events with rising ids. `start_id` is behind which all events are there."""

    def __init__(self, *, events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._events: deque[ClusterEvent] = deque()
        self._size_bytes = 0
        self.start_id = EventId(-1, LAST_NUMBER)
        self._start_ms = 0

    @property
    def last_id(self) -> EventId:
        """The id behind which all events are still to come."""
        return self._events[-1].id if self._events else self.start_id

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: ClusterEvent) -> None:
        """Take in a new event, and give up the oldest ones for it where there is no room."""
        assert event.id > self.last_id, f"event {event.id} comes behind {self.last_id}"
        self._events.append(event)
        self._size_bytes += _size_bytes(event)
        while len(self._events) > self._events_max or (self._size_bytes > self._bytes_max and len(self._events) > 1):
            oldest = self._events.popleft()
            self._size_bytes -= _size_bytes(oldest)
            self.start_id, self._start_ms = oldest.id, oldest.timestamp_ms

    def restart(self, offset: int, timestamp_ms: int) -> None:
        """Forget all: what happened up to the entry at that offset is unknown."""
        self._events.clear()
        self._size_bytes = 0
        self.start_id, self._start_ms = EventId(offset, LAST_NUMBER), timestamp_ms

    def next_after(self, last_id: EventId) -> ClusterEvent | None:
        """Return the event behind that one, None while it is the last, a gap when some in between are not there."""
        if last_id < self.start_id:
            return ClusterEvent(id=self.start_id, timestamp_ms=self._start_ms, change=Gap())
        place = bisect_right(self._events, last_id, key=lambda event: event.id)
        return self._events[place] if place < len(self._events) else None


def _size_bytes(event: ClusterEvent) -> int:
    match event.change:
        case ConfigsChanged(changes=changes):
            return _EVENT_BYTES + sum(_ITEM_BYTES + len(one.name) + len(one.value or "") for one in changes)
        case Summary(brokers=brokers):
            return _EVENT_BYTES + _ITEM_BYTES * len(brokers)
        case _:
            return _EVENT_BYTES
