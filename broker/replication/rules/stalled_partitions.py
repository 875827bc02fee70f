"""What the partitions that cannot be replicated now have in common, for one log line now and then. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from ....protocol.errors import ErrorCode
from .fetch_plan import FollowedKey

PASSING_REASONS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name,
        ErrorCode.UNKNOWN_TOPIC_ID.name,
        ErrorCode.INCONSISTENT_TOPIC_ID.name,
        ErrorCode.NOT_LEADER_OR_FOLLOWER.name,
        ErrorCode.FENCED_LEADER_EPOCH.name,
        ErrorCode.UNKNOWN_LEADER_EPOCH.name,
    }
)
"""While a topic is created or deleted, or a leader moves, one of two nodes has the newer metadata for a moment."""
LASTING_MS: Final = 5_000
REPEAT_MS: Final = 60_000


class _StalledPartition(NamedTuple):
    partition: str
    reason: str
    since_ms: int


class StalledPartitions:
    """Of one leader. `note` and `forget` as it happens, `summary` from time to time."""

    def __init__(self) -> None:
        self._held_up: dict[FollowedKey, _StalledPartition] = {}
        self._said_ms = -REPEAT_MS

    @property
    def count(self) -> int:
        return len(self._held_up)

    def note(self, key: FollowedKey, partition: str, reason: str, now_ms: int) -> bool:
        """Whether it is worth a line at once: a reason that does not pass by itself, for the first time."""
        known = self._held_up.get(key)
        self._held_up[key] = _StalledPartition(partition, reason, now_ms if known is None else known.since_ms)
        return reason not in PASSING_REASONS and (known is None or known.reason != reason)

    def forget(self, key: FollowedKey) -> None:
        """It goes on, or is not followed any more."""
        if self._held_up:
            self._held_up.pop(key, None)

    def summary(self, now_ms: int) -> str | None:
        """What to log: how many are held up for longer than LASTING_MS; None for nothing, or nothing new yet."""
        if not self._held_up or now_ms - self._said_ms < REPEAT_MS:
            return None
        lasting = [one for one in self._held_up.values() if now_ms - one.since_ms >= LASTING_MS]
        if not lasting:
            return None
        self._said_ms = now_ms
        longest = min(lasting, key=lambda one: one.since_ms)
        most_common = Counter(one.reason for one in lasting).most_common(3)
        reasons = ", ".join(f"{reason} {count}" for reason, count in most_common)
        return (
            f"partitions={len(lasting)} longest_ms={now_ms - longest.since_ms} longest={longest.partition} "
            f"reasons={reasons}"
        )
