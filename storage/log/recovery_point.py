"""Up to where a log is synced, and what a sync that moves this on has to cover.

    to_sync = recovery_point.files_to_sync(end_offset)      on the loop
    for file in to_sync: file.sync()                        anywhere, while appends go on
    recovery_point.mark_flushed(end_offset)                 on the loop

Synced are the log files; the indexes of segments that became inactive (those of the active one are made anew by
recovery); the producer snapshots at which they end; the leader epochs, which recovery finds only in batches above the
recovery point; and the folder, for the names in it. The first sync also covers what says whose log it is, and the name
of the folder: until then nothing in it was promised to last, so that making a log waits for no disk.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from ...protocol.ids import LeaderEpoch
from ..disk.files import Files
from .leader_epochs import LeaderEpochs, encode_leader_epochs
from .producer_snapshots import ProducerSnapshots
from .rules.file_names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from .segment import Segment
from .segments import Segments


class Syncable(Protocol):
    """Something that `sync` makes durable, which may take long."""

    def sync(self) -> None: ...


class _Sync(NamedTuple):
    """What the sync under way covers."""

    end_offset: int
    retired: tuple[Segment, ...]
    snapshots: tuple[int, ...]
    epochs: tuple[tuple[LeaderEpoch, int], ...]
    directory_change_count: int


class RecoveryPoint:
    __slots__ = (
        "_epochs_written",
        "_files",
        "_leader_epochs",
        "_names_synced",
        "_segments",
        "_snapshots",
        "_sync",
        "is_cut_synced",
        "is_folder_synced",
        "offset",
    )

    def __init__(
        self,
        files: Files,
        segments: Segments,
        snapshots: ProducerSnapshots,
        leader_epochs: LeaderEpochs,
        offset: int,
        *,
        written_epochs: tuple[tuple[LeaderEpoch, int], ...],
        is_folder_synced: bool,
        is_cut_synced: bool,
    ) -> None:
        self._files = files
        self._segments = segments
        self._snapshots = snapshots
        self._leader_epochs = leader_epochs
        # Everything below is synced.
        self.offset = offset
        # What is in the file.
        self._epochs_written = written_epochs
        # Whether the folder's name, and the topic id in it, are.
        self.is_folder_synced = is_folder_synced
        # Whether what recovery has cut off the active segment, or an earlier one did, cannot come back any more.
        self.is_cut_synced = is_cut_synced
        # The change count up to which the names in the folder are.
        self._names_synced = 0
        self._sync: _Sync | None = None

    def files_to_sync(self, end_offset: int, beside: Sequence[Syncable] = ()) -> Sequence[Syncable]:
        """What must be synced before `mark_flushed(end_offset)`, in that order: folders after what is in them. One sync
        at a time. `beside` are other files of the folder, to be synced with their names.
        """
        segments = self._segments
        to_sync: list[Syncable] = [*beside, *segments.log_files(self.offset, end_offset)]
        if not self.is_cut_synced and segments.active.file not in to_sync:
            to_sync.append(segments.active.file)
        for segment in segments.retired:
            to_sync += segment.index_files()
        taken = tuple(self._snapshots.taken)
        to_sync += (_Snapshot(self._files, self._snapshots.path(offset)) for offset in taken)
        epochs = self.unwritten_epochs(max(end_offset, self.offset))
        if not self.is_folder_synced:
            to_sync.append(_PartitionMetadata(self._files, segments.directory))
        if epochs is not None:
            # Its own name is synced with it, and so are the others in the folder.
            to_sync.append(epochs)
        elif beside or not self.is_folder_synced or segments.directory_change_count != self._names_synced:
            to_sync.append(FolderSync(self._files, segments.directory))
        if not self.is_folder_synced:
            to_sync.append(self._parent())
        self._sync = _Sync(
            end_offset,
            tuple(segments.retired),
            taken,
            self._epochs_written if epochs is None else epochs.entries,
            segments.directory_change_count,
        )
        return to_sync

    def mark_flushed(self, end_offset: int) -> None:
        """All of `files_to_sync(end_offset)` is synced. Says nothing when the log was truncated since."""
        sync = self._sync
        if sync is None:
            return
        self._sync = None
        self._epochs_written = sync.epochs
        self.is_folder_synced = self.is_cut_synced = True
        self._names_synced = sync.directory_change_count
        self._snapshots.mark_synced(sync.snapshots)
        segments = self._segments
        retired = segments.retired = [segment for segment in segments.retired if segment not in sync.retired]
        reached = min(end_offset, sync.end_offset)
        if retired:
            # Became inactive meanwhile. Recovery must still begin with it, or before it: its indexes are not synced.
            reached = min(reached, segments[segments.slot_of(retired[0].base_offset) + 1].base_offset - 1)
        self.offset = max(self.offset, reached)

    def sync_records(self, end_offset: int) -> None:
        """Sync what was appended, waiting, on a disk too full for the indexes and epochs that the recovery point needs
        beside it to move on.
        """
        for file in self._segments.log_files(self.offset, end_offset):
            file.sync()
        self.sync_cut()
        for item in self._folder():
            item.sync()

    def sync_cut(self) -> None:
        """Sync what recovery has cut off, waiting."""
        if not self.is_cut_synced:
            self._segments.active.file.sync()
            self.is_cut_synced = True

    def forget_folder_sync(self) -> None:
        """partition.metadata was rewritten; without an fsync of the folder a power loss takes the topic id away."""
        self.is_folder_synced = False

    def truncate_to(self, offset: int) -> None:
        """The log ends at `offset` now: what follows will be other bytes than those that a sync under way is of."""
        self.offset = min(self.offset, offset)
        self._sync = None

    def lower_to(self, offset: int) -> None:
        """What lies from `offset` on is not safe before the next sync of the log. No sync is under way."""
        self.offset = min(self.offset, offset)

    def sync_folder(self) -> None:
        """Sync the folder's name and topic id, waiting, where the first sync of the log is too late for that."""
        for item in self._folder():
            item.sync()
        self.is_folder_synced = True

    def _folder(self) -> list[Syncable]:
        directory = self._segments.directory
        return [
            _PartitionMetadata(self._files, directory),
            FolderSync(self._files, directory),
            self._parent(),
        ]

    def _parent(self) -> "FolderSync":
        return FolderSync(self._files, self._segments.directory.rpartition("/")[0])

    def unwritten_epochs(self, end_offset: int) -> "_LeaderEpochCheckpoint | None":
        """What writes the leader epochs that begin below `end_offset`, unless the file has just these.

        An epoch that begins there has no batch yet: opening the log would drop it.
        """
        entries = self._leader_epochs.entries_below(end_offset)
        if entries == self._epochs_written:
            return None
        return _LeaderEpochCheckpoint(self._files, self._segments.directory, entries)


class FolderSync(NamedTuple):
    """Of the names in a folder. Logs of one log directory that have theirs synced have this in common."""

    files: Files
    path: str

    def sync(self) -> None:
        self.files.sync_directory(self.path)


class _PartitionMetadata:
    __slots__ = ("_files", "path")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.path = f"{directory}/{PARTITION_METADATA}"

    def sync(self) -> None:
        with suppress(FileNotFoundError):
            file = self._files.open(self.path)
            file.sync()
            file.close()


class _Snapshot:
    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def sync(self) -> None:
        # It goes with its segment, or when the log is cut.
        with suppress(FileNotFoundError):
            file = self._files.open(self.path)
            file.sync()
            file.close()


class _LeaderEpochCheckpoint:
    __slots__ = ("_files", "entries", "path")

    def __init__(self, files: Files, directory: str, entries: tuple[tuple[LeaderEpoch, int], ...]) -> None:
        self._files = files
        self.path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
        self.entries = entries

    def sync(self) -> None:
        self._files.write_atomically(self.path, encode_leader_epochs(self.entries))
