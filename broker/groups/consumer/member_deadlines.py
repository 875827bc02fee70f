"""By when members of consumer groups must have been heard, and must have done what they were told.

deadline    is over when the member has not                 set by
session     sent a heartbeat                                every heartbeat
rebalance   given up partitions                             being told to
join        joined again (classic protocol)                 being told that there is a rebalance
sync        asked for its part (classic protocol)           joining
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....protocol.errors import KafkaError
from ...coordination.ports import Timers

RETRY_MS: Final = 500
"""A member that could not be removed, because nothing could be written, is removed so much later."""


class MemberDeadlines:
    def __init__(self, timers: Timers, on_missed: Callable[[str, str, str], None]) -> None:
        """`on_missed` receives group, member and reason; it may raise KafkaError, and is called again then."""
        self._timers = timers
        self._on_missed = on_missed
        self._joins: set[tuple[str, str]] = set()

    def expect_heartbeat(self, group: str, member: str, within_ms: int) -> None:
        self._expect("session", group, member, within_ms, "the member session expired")

    def expect_revocation(self, group: str, member: str, within_ms: int, is_still_due: Callable[[], bool]) -> None:
        reason = f"it did not give up partitions within {within_ms} ms"
        self._expect("rebalance", group, member, within_ms, reason, is_still_due)

    def forget_revocation(self, group: str, member: str) -> None:
        self._timers.cancel(("rebalance", group, member))

    def expect_join(self, group: str, member: str, within_ms: int) -> None:
        """From the first time that it is told."""
        if (group, member) not in self._joins:
            self._joins.add((group, member))
            reason = "the classic member failed to join within the rebalance timeout"
            self._expect("rejoin", group, member, within_ms, reason, lambda: (group, member) in self._joins)

    def forget_join(self, group: str, member: str) -> None:
        self._joins.discard((group, member))
        self._timers.cancel(("rejoin", group, member))

    def expect_sync(self, group: str, member: str, within_ms: int) -> None:
        self._expect("resync", group, member, within_ms, "the member failed to sync within timeout")

    def forget_sync(self, group: str, member: str) -> None:
        self._timers.cancel(("resync", group, member))

    def forget(self, group: str, member: str) -> None:
        """It is no member any more."""
        self._timers.cancel(("session", group, member))
        self.forget_revocation(group, member)
        self.forget_join(group, member)
        self.forget_sync(group, member)

    def _expect(
        self,
        kind: str,
        group: str,
        member: str,
        within_ms: int,
        reason: str,
        is_still_due: Callable[[], bool] = lambda: True,
    ) -> None:
        key = (kind, group, member)

        def on_over() -> None:
            if not is_still_due():
                return
            try:
                self._on_missed(group, member, reason)
            except KafkaError:
                self._timers.schedule(key, RETRY_MS, on_over)
                raise

        self._timers.schedule(key, within_ms, on_over)
