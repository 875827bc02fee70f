"""The sessions of brokers at the active controller: when each sent its last heartbeat.

Kafka: `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`.

Not replicated: a new active controller gives everyone a whole session.
"""

from typing import NamedTuple

from ...protocol.ids import NodeId


class MetadataPosition(NamedTuple):
    """The last entry that a broker has replayed, when it said so, and when it had all; wall clock, -1: never."""

    offset: int
    told_ms: int
    caught_up_ms: int


class BrokerSessions:
    """The last contact of each broker, in loop time."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._last_contact_ms: dict[NodeId, int] = {}
        # Unfenced, and not heard by this controller: from when on it is waited for.
        self._awaited_ms: dict[NodeId, int] = {}
        self._positions: dict[NodeId, MetadataPosition] = {}

    def touch(self, broker_id: NodeId, now_ms: int) -> None:
        self._last_contact_ms[broker_id] = now_ms
        self._awaited_ms.pop(broker_id, None)

    def await_contact(self, broker_id: NodeId, now_ms: int) -> None:
        """Let a broker expire that is not heard within a session. Until it is heard it is not live."""
        self._awaited_ms[broker_id] = now_ms

    def note_offset(self, broker_id: NodeId, offset: int, *, is_caught_up: bool, wall_ms: int) -> None:
        """Keep how far a broker has replayed the metadata."""
        before = self._positions.get(broker_id)
        caught_up_ms = wall_ms if is_caught_up else -1 if before is None else before.caught_up_ms
        self._positions[broker_id] = MetadataPosition(offset, wall_ms, caught_up_ms)

    def positions(self) -> dict[NodeId, "MetadataPosition"]:
        """Return what the brokers said last, by their ids."""
        return dict(self._positions)

    def end(self, broker_id: NodeId) -> None:
        """Forget one broker's last contact: its process has left."""
        self._last_contact_ms.pop(broker_id, None)
        self._awaited_ms.pop(broker_id, None)

    def clear(self) -> None:
        """Forget everyone: leadership is lost."""
        self._last_contact_ms.clear()
        self._awaited_ms.clear()
        self._positions.clear()

    def expired(self, now_ms: int) -> list[NodeId]:
        """Return the brokers that were heard once, or are waited for, and were not heard for a whole session."""
        silent = [broker for broker in self._last_contact_ms if not self.is_live(broker, now_ms)]
        return silent + [
            broker for broker, since_ms in self._awaited_ms.items() if now_ms >= since_ms + self._session_timeout_ms
        ]

    def silent_ms(self, now_ms: int) -> dict[NodeId, int]:
        """Return the time since the last contact of each broker that was heard."""
        return {broker_id: now_ms - then_ms for broker_id, then_ms in self._last_contact_ms.items()}

    def renew(self, now_ms: int) -> None:
        """Give everyone that was heard once a whole session from now on."""
        self._last_contact_ms = dict.fromkeys(self._last_contact_ms, now_ms)
        self._awaited_ms = dict.fromkeys(self._awaited_ms, now_ms)

    def is_live(self, broker_id: NodeId, now_ms: int) -> bool:
        last_contact_ms = self._last_contact_ms.get(broker_id)
        return last_contact_ms is not None and now_ms < last_contact_ms + self._session_timeout_ms
