"""Which brokers the active controller heard of lately.

Not replicated: a new active controller gives everyone a whole session.
"""


class BrokerSessions:
    """The last contact of each broker, in loop time."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._last_contact_ms: dict[int, int] = {}

    def touch(self, broker_id: int, now_ms: int) -> None:
        self._last_contact_ms[broker_id] = now_ms

    def clear(self) -> None:
        """Forget everyone: leadership is lost."""
        self._last_contact_ms.clear()

    def expired(self, now_ms: int) -> list[int]:
        """Return the brokers that were heard once, and not for a whole session."""
        return [broker for broker in self._last_contact_ms if not self.is_live(broker, now_ms)]

    def renew(self, now_ms: int) -> None:
        """Give everyone that was heard once a whole session from now on."""
        self._last_contact_ms = dict.fromkeys(self._last_contact_ms, now_ms)

    def is_live(self, broker_id: int, now_ms: int) -> bool:
        last_contact_ms = self._last_contact_ms.get(broker_id)
        return last_contact_ms is not None and now_ms < last_contact_ms + self._session_timeout_ms
