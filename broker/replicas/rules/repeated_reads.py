"""Which records consumers may have refused: those that are read again and again.

A consumer that gets a batch with a wrong CRC has no request to report it, but asks for the batch again, at once or when
it has been started anew. Other consumers read the same records for reasons of their own, so records are suspected at
doubling intervals.
"""

from typing import Final

from .follower_progress import is_suspicious

OFFSETS_MAX: Final = 8
"""Remembered of one partition, those that were read last: between the reads of one consumer others come."""


class RepeatedReads:
    """Of one partition. Only of records that have been on the disk for some time: all consumers read the newest ones at
    the same offsets, and what was written a moment ago is read from memory.
    """

    __slots__ = ("_counts", "_opened_end_offset")

    def __init__(self, opened_end_offset: int) -> None:
        """The log ended at `opened_end_offset` when it was opened."""
        self._opened_end_offset = opened_end_offset
        # How often records were sent from an offset on; the one that was read last is the last.
        self._counts: dict[int, int] = {}

    def on_sent(self, offset: int, active_base_offset: int) -> bool:
        """Records from `offset` on are sent to a consumer; True if they are to be checked.

        The active segment begins at `active_base_offset`.
        """
        if offset >= active_base_offset and offset >= self._opened_end_offset:
            return False
        counts = self._counts
        count = counts.pop(offset, 0) + 1
        counts[offset] = count
        if len(counts) > OFFSETS_MAX:
            del counts[next(iter(counts))]
        return is_suspicious(count)
