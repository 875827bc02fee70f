"""The leader's replication progress for each follower (etcd: `Progress`)."""

from collections import deque

# A message of entries is about this large; larger only where one command is.
PART_BYTES = 512 * 1024

# So many of them may be on the way to a peer: enough to keep a fast link busy, far below where a slow one is cut.
_PARTS_IN_FLIGHT_MAX = 8

NEVER_MS = -(1 << 53)
"""Of a clock whose times are not negative: longer ago than any timeout."""


class Progress:
    """The leader's replication progress for one follower, in one leadership: match and next offset, parts in flight."""

    def __init__(self, next_offset: int) -> None:
        """Try from `next_offset` on: the peer says if that is too far."""
        self.next_offset = next_offset
        self.match_end = 0
        """The peer has our log below this, on its disk."""
        self.is_member = True
        self.last_ack_ms = NEVER_MS
        self.last_caught_up_ms = NEVER_MS
        self._part_ends: deque[int] = deque()

    @property
    def may_send_entries(self) -> bool:
        return len(self._part_ends) < _PARTS_IN_FLIGHT_MAX

    def on_sent(self, end_offset: int) -> None:
        """Entries from `next_offset` up to here are on the way."""
        self.next_offset = end_offset
        self._part_ends.append(end_offset)

    def on_match(self, next_offset: int) -> None:
        while self._part_ends and self._part_ends[0] <= next_offset:
            self._part_ends.popleft()
        self.match_end = max(self.match_end, next_offset)
        self.next_offset = max(self.next_offset, next_offset)

    def on_mismatch(self, next_offset: int) -> None:
        """Go back: the peer does not have what went before."""
        self._part_ends.clear()
        self.next_offset = next_offset
        # A peer whose disk was replaced has less than it once had.
        self.match_end = min(self.match_end, next_offset)

    def on_link(self) -> None:
        """What was on the way is lost."""
        self._part_ends.clear()
        if self.match_end:
            self.next_offset = self.match_end
