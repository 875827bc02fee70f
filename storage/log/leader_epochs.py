"""Which leader epoch wrote from which offset on: how replicas find where their logs part (KIP-101, KIP-279, KIP-320).

Kafka: `LeaderEpochFileCache`.

Kept in memory and in the file `leader-epoch-checkpoint`: a line with the version, one with the number of entries, then
`epoch startOffset` lines. The file may lag: epochs above the recovery point are found again in the batches, and
`truncate_from_start` and `truncate_from_end` after loading make it fit the log. So it is written before the recovery
point moves past an entry, not at each change.

What was before the first known epoch is deleted, and with it the proof that another log agrees with this one up to
there. So the epoch of the last deleted batch is remembered, in the file too, as an entry that starts one below the
first; Apache Kafka drops it when it loads the file, as it starts below the log.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from ...protocol.errors import CorruptData
from ...protocol.ids import NO_LEADER_EPOCH, LeaderEpoch
from ..disk.files import Files
from .rules.file_names import LEADER_EPOCH_CHECKPOINT

logger = logging.getLogger(__name__)

_VERSION: Final = "0"


class LeaderEpochs:
    """Epochs and their start offsets, both rising."""

    __slots__ = ("_before", "_epochs", "_starts", "latest_epoch")

    def __init__(self, entries: tuple[tuple[int, int], ...] = ()) -> None:
        self._epochs: list[LeaderEpoch] = []
        self._starts: list[int] = []
        # The epoch of the batch that ended where the first known epoch starts, and that start; None when not known.
        self._before: tuple[LeaderEpoch, int] | None = None
        # -1 for an empty cache: read at every append.
        self.latest_epoch = NO_LEADER_EPOCH
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> tuple[tuple[LeaderEpoch, int], ...]:
        """(epoch, start offset) pairs."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    def entries_below(self, end_offset: int) -> tuple[tuple[LeaderEpoch, int], ...]:
        """What the file has when the log is synced up to `end_offset`."""
        slot = bisect_left(self._starts, end_offset)
        entries = tuple(zip(self._epochs[:slot], self._starts[:slot], strict=True))
        if entries and NO_LEADER_EPOCH < (before := self._epoch_before_first()) < self._epochs[0]:
            return ((before, self._starts[0] - 1), *entries)
        return entries

    def assign(self, epoch: int, start_offset: int) -> None:
        """`epoch` begins at `start_offset`. Entries that this makes impossible are dropped: the newer one is right."""
        assert epoch >= 0, "a batch in the log has a leader epoch"
        assert start_offset >= 0, "offsets are not negative"
        if epoch == self.latest_epoch and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            is_last_left = len(self._epochs) == 1 and self._epochs[0] < epoch and self._starts[0] == start_offset
            if is_last_left and self._epoch_before_first() == NO_LEADER_EPOCH:
                # Its batches are deleted, and its start was moved up to the log start; or it never had a batch.
                self._before = (self._epochs[0], start_offset)
            self._epochs.pop()
            self._starts.pop()
        self.latest_epoch = LeaderEpoch(epoch)
        self._epochs.append(self.latest_epoch)
        self._starts.append(start_offset)

    def epoch_of(self, offset: int) -> LeaderEpoch | None:
        """Of the batch at `offset`; None where that is not known."""
        slot = bisect_right(self._starts, offset) - 1
        return None if slot < 0 else self._epochs[slot]

    def end_offset_for(self, epoch: LeaderEpoch, log_end_offset: int) -> tuple[LeaderEpoch, int] | None:
        """(the largest epoch ≤ `epoch` known here, its end offset), or None when that cannot be told.

        The end offset of an epoch is the start of the next one, that of the latest the log end offset. For an epoch
        before all known ones it is the start of the first: what was before is deleted.
        """
        if epoch == NO_LEADER_EPOCH or not self._epochs or epoch > self.latest_epoch:
            return None
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        following = bisect_right(self._epochs, epoch)
        if following == 0:
            return epoch, self._starts[0]
        return self._epochs[following - 1], self._starts[following]

    def vouches_for(self, epoch: LeaderEpoch) -> bool:
        """Whether a log whose last batch is of `epoch`, at most that of `end_offset_for`, agrees with this one up to
        there.

        A leader of an epoch has one log, so two logs with a batch of one epoch agree below it (KIP-101). Of an epoch
        older than all known ones this log has nothing left to compare with, but the epoch of the last deleted batch:
        another one may be of records that were never committed.
        """
        return bool(self._epochs) and (epoch >= self._epochs[0] or epoch == self._epoch_before_first() >= 0)

    def _epoch_before_first(self) -> LeaderEpoch:
        """Of the batch that ended where the first known epoch starts; -1 when not known."""
        before = self._before
        return before[0] if before is not None and before[1] == self._starts[0] > 0 else NO_LEADER_EPOCH

    def entries_in(self, start_offset: int, end_offset: int) -> tuple[tuple[LeaderEpoch, int], ...]:
        """The epochs of the records in [start_offset, end_offset), the first from `start_offset` on."""
        found = []
        for slot, (epoch, start) in enumerate(zip(self._epochs, self._starts, strict=True)):
            end = self._starts[slot + 1] if slot + 1 < len(self._starts) else end_offset
            if start < end_offset and end > start_offset:
                found.append((epoch, max(start, start_offset)))
        return tuple(found)

    def earliest_epoch(self) -> tuple[LeaderEpoch, int] | None:
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def truncate_from_start(self, log_start_offset: int) -> None:
        """Forget what ended at or before `log_start_offset`; the epoch that reaches over it starts there now."""
        slot = bisect_right(self._starts, log_start_offset) - 1
        if slot < 0 or (slot == 0 and self._starts[0] == log_start_offset):
            return
        is_whole = self._starts[slot] == log_start_offset
        self._before = (self._epochs[slot - 1 if is_whole else slot], log_start_offset)
        del self._epochs[:slot]
        del self._starts[:slot]
        self._starts[0] = log_start_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at `end_offset` or above."""
        if self._before is not None and end_offset < self._before[1]:
            self._before = None
        slot = bisect_left(self._starts, end_offset)
        if slot < len(self._starts):
            del self._epochs[slot:]
            del self._starts[slot:]
            self.latest_epoch = self._epochs[-1] if self._epochs else NO_LEADER_EPOCH

    def adopt(self, other: "LeaderEpochs") -> None:
        """Know what `other` knows: of the same batches."""
        self._before = other._before
        self._epochs[:] = other._epochs
        self._starts[:] = other._starts
        self.latest_epoch = other.latest_epoch

    def replace_below(self, end_offset: int, entries: Sequence[tuple[int, int]], *, from_offset: int = 0) -> None:
        """What is known of [`from_offset`, `end_offset`) was damaged: that are `entries`."""
        before = [
            (epoch, start)
            for epoch, start in self.entries
            if start < from_offset and (not entries or epoch <= entries[0][0])
        ]
        behind = [(epoch, start) for epoch, start in self.entries if start >= end_offset]
        self.clear()
        for epoch, start_offset in (*before, *entries, *behind):
            self.assign(epoch, start_offset)

    def clear(self) -> None:
        self._before = None
        self.truncate_from_end(0)


def encode_leader_epochs(entries: tuple[tuple[int, int], ...]) -> bytes:
    lines = [_VERSION, str(len(entries))]
    lines += [f"{epoch} {start_offset}" for epoch, start_offset in entries]
    return ("\n".join(lines) + "\n").encode()


def decode_leader_epochs(data: bytes, path: str) -> tuple[tuple[LeaderEpoch, int], ...]:
    """CorruptData when `data` is not such a file as a whole."""
    try:
        lines = data.decode("ascii").split("\n")
        version, count = lines[0], int(lines[1])
        entries = tuple(
            (LeaderEpoch(int(epoch)), int(start)) for epoch, start in (line.split(" ") for line in lines[2 : 2 + count])
        )
    except (ValueError, IndexError):
        raise CorruptData(f"{path} is not a leader epoch checkpoint") from None
    # Without the end of the last line its number may have lost digits.
    if version != _VERSION or len(entries) != count or lines[-1]:
        raise CorruptData(f"{path} has version {version} and {len(entries)} of {count} entries")
    return entries


def read_leader_epochs(files: Files, directory: str) -> tuple[tuple[LeaderEpoch, int], ...] | None:
    """The entries in a log's folder; None when there is no intact file, so that the batches must be asked."""
    path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
    try:
        return decode_leader_epochs(files.read(path), path)
    except FileNotFoundError:
        return None
    except CorruptData as error:
        logger.warning("Rebuilding leader epochs: %s", error)
        return None
