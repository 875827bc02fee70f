"""A snapshot on its way from the leader to a voter whose log ends below the leader's.

The leader sends parts of some chunks each, a few ahead of the acknowledgements. The receiver writes them beside its own
snapshots and acknowledges what is on its disk; a part that does not follow is answered with where to go on, and after
silence the sender goes back to there by itself. Only a whole and checked snapshot gets its name (`snapshots.py`), and
only then the log begins anew behind it.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ...protocol.checksum import crc32c
from .messages import SnapshotAck, SnapshotPart
from .progress import NEVER_MS

_PART_BYTES = 256 * 1024
_PARTS_AHEAD_MAX = 4
_RETRY_MS = 1_000


class OutgoingSnapshot(NamedTuple):
    """The leader's newest snapshot, read and checked."""

    end_offset: int
    epoch: int
    chunks: Sequence[bytes]


class SnapshotSend:
    """One snapshot to one peer."""

    def __init__(self, snapshot: OutgoingSnapshot) -> None:
        self.snapshot = snapshot
        self._acked_chunk = 0
        self._next_chunk = 0
        self._sent_ends: list[int] = []
        self._progress_ms = NEVER_MS

    def parts(self, term: int, now_ms: int) -> list[SnapshotPart]:
        """Return what may be sent now."""
        if self._sent_ends and now_ms - self._progress_ms > _RETRY_MS:
            self._go_back()
        parts = []
        while len(self._sent_ends) < _PARTS_AHEAD_MAX and not self._is_all_sent:
            part = self._next_part(term)
            self._next_chunk += len(part.chunks)
            self._sent_ends.append(self._next_chunk)
            self._progress_ms = now_ms
            parts.append(part)
        return parts

    def on_ack(self, ack: SnapshotAck, now_ms: int) -> None:
        if ack.end_offset != self.snapshot.end_offset:
            return
        self._progress_ms = now_ms
        if ack.next_chunk < self._acked_chunk or ack.next_chunk > self._next_chunk:
            # The receiver began anew.
            self._acked_chunk = min(ack.next_chunk, len(self.snapshot.chunks))
            self._go_back()
            return
        self._acked_chunk = ack.next_chunk
        self._sent_ends = [end for end in self._sent_ends if end > ack.next_chunk]

    @property
    def _is_all_sent(self) -> bool:
        return self._next_chunk == len(self.snapshot.chunks) and bool(self._next_chunk)

    def _go_back(self) -> None:
        self._next_chunk = self._acked_chunk
        if self._next_chunk == len(self.snapshot.chunks):
            # All is acknowledged but not installed: the receiver lost its place.
            self._next_chunk = self._acked_chunk = 0
        self._sent_ends.clear()

    def _next_part(self, term: int) -> SnapshotPart:
        chunks: list[bytes] = []
        size_bytes = 0
        index = self._next_chunk
        while index < len(self.snapshot.chunks) and (not chunks or size_bytes < _PART_BYTES):
            chunks.append(self.snapshot.chunks[index])
            size_bytes += len(chunks[-1])
            index += 1
        return SnapshotPart(
            term,
            self.snapshot.end_offset,
            self.snapshot.epoch,
            self._next_chunk,
            tuple(chunks),
            checksum(chunks),
            index == len(self.snapshot.chunks),
        )


class KeepPart(NamedTuple):
    """Write the part's chunks behind those that came before; a first part begins a new file."""

    part: SnapshotPart


class FinishSnapshot(NamedTuple):
    """All parts are written: make the file last, check it, and give it its name."""

    end_offset: int
    epoch: int


SnapshotWork: TypeAlias = KeepPart | FinishSnapshot


class SnapshotReceive:
    """What has come of a snapshot. One at a time: a part of another one that is a first part begins anew."""

    def __init__(self) -> None:
        self._end_offset = -1
        self._epoch = -1
        self._next_chunk = 0

    def on_part(self, part: SnapshotPart) -> list[SnapshotWork]:
        """Return what is to be done on the disk before `ack` is sent."""
        if part.first_chunk == 0:
            self._end_offset, self._epoch, self._next_chunk = part.end_offset, part.epoch, 0
        if (part.end_offset, part.epoch, part.first_chunk) != (self._end_offset, self._epoch, self._next_chunk):
            return []
        if not part.chunks or checksum(part.chunks) != part.checksum:
            return []
        self._next_chunk += len(part.chunks)
        work: list[SnapshotWork] = [KeepPart(part)]
        if part.is_last:
            work.append(FinishSnapshot(part.end_offset, part.epoch))
            self._end_offset = -1
        return work

    def ack(self, term: int, end_offset: int) -> SnapshotAck:
        next_chunk = self._next_chunk if end_offset == self._end_offset else 0
        return SnapshotAck(term, end_offset, next_chunk, False)


def checksum(chunks: Sequence[bytes]) -> int:
    value = 0
    for chunk in chunks:
        value = crc32c(chunk, value)
    return value
