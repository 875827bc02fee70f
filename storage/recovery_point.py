"""Up to where a log is synced, and what a sync that moves this on has to cover.

    to_sync = recovery_point.files_to_sync(end_offset)      on the loop
    for file in to_sync: file.sync()                        anywhere, while appends go on
    recovery_point.mark_flushed(end_offset)                 on the loop

Synced are the log files; the indexes of segments that became inactive (those of the active one are made anew by
recovery); the leader epochs, which recovery finds only in batches above the recovery point; and the folder, for the
names in it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .file_names import LEADER_EPOCH_CHECKPOINT
from .files import Files
from .leader_epochs import LeaderEpochs, encode_leader_epochs
from .segment import Segment
from .segments import Segments


class Syncable(Protocol):
    """Something that `sync` makes durable, which may take long."""

    def sync(self) -> None: ...


class _Sync(NamedTuple):
    """What the sync under way covers."""

    end_offset: int
    retired: tuple[Segment, ...]
    epoch_change_count: int
    directory_change_count: int


class RecoveryPoint:
    __slots__ = (
        "_epochs_written",
        "_files",
        "_leader_epochs",
        "_names_synced",
        "_segments",
        "_sync",
        "offset",
    )

    def __init__(self, files: Files, segments: Segments, leader_epochs: LeaderEpochs, offset: int) -> None:
        self._files = files
        self._segments = segments
        self._leader_epochs = leader_epochs
        # Everything below is synced.
        self.offset = offset
        # Change counts up to which the leader epochs and the folder are.
        self._epochs_written = 0
        self._names_synced = 0
        self._sync: _Sync | None = None

    @property
    def has_unwritten_epochs(self) -> bool:
        return self._leader_epochs.change_count != self._epochs_written

    def files_to_sync(self, end_offset: int) -> Sequence[Syncable]:
        """What must be synced before `mark_flushed(end_offset)`. One sync at a time."""
        segments = self._segments
        to_sync: list[Syncable] = [*segments.log_files(self.offset, end_offset)]
        for segment in segments.retired:
            to_sync += segment.index_files()
        if self.has_unwritten_epochs:
            to_sync.append(self.leader_epoch_checkpoint())
        if segments.directory_change_count != self._names_synced:
            to_sync.append(_Directory(self._files, segments.directory))
        self._sync = _Sync(
            end_offset,
            tuple(segments.retired),
            self._leader_epochs.change_count,
            segments.directory_change_count,
        )
        return to_sync

    def mark_flushed(self, end_offset: int) -> None:
        """All of `files_to_sync(end_offset)` is synced. Says nothing when the log was truncated since."""
        sync = self._sync
        if sync is None:
            return
        self._sync = None
        self._epochs_written = sync.epoch_change_count
        self._names_synced = sync.directory_change_count
        segments = self._segments
        retired = segments.retired = [segment for segment in segments.retired if segment not in sync.retired]
        reached = min(end_offset, sync.end_offset)
        if retired:
            # Became inactive meanwhile. Recovery must still begin with it, or before it: its indexes are not synced.
            reached = min(reached, segments[segments.slot_of(retired[0].base_offset) + 1].base_offset - 1)
        self.offset = max(self.offset, reached)

    def truncate_to(self, offset: int) -> None:
        """The log ends at `offset` now: what follows will be other bytes than those that a sync under way is of."""
        self.offset = min(self.offset, offset)
        self._sync = None

    def leader_epoch_checkpoint(self) -> Syncable:
        """What writes the leader epochs as they are now."""
        return _LeaderEpochCheckpoint(
            self._files, self._segments.directory, encode_leader_epochs(self._leader_epochs.entries)
        )


class _Directory:
    __slots__ = ("_files", "_path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path

    def sync(self) -> None:
        self._files.sync_directory(self._path)


class _LeaderEpochCheckpoint:
    __slots__ = ("_data", "_files", "_path")

    def __init__(self, files: Files, directory: str, data: bytes) -> None:
        self._files = files
        self._path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
        self._data = data

    def sync(self) -> None:
        self._files.write_atomically(self._path, self._data)
