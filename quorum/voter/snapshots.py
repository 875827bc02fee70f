"""Snapshots on disk: the state at an offset, so that the journal below it can go.

Kafka: `RecordsSnapshotWriter`, `RecordsSnapshotReader`.

`<end offset, 20 digits, exclusive>-<epoch of its last entry, 10 digits>.checkpoint`, a file of frames (`frames.py`):
first `[format, end offset, epoch]`, then the chunks as their owner made them, last `[number of chunks]`. It is written
beside its place and renamed when it is complete and synced, so a file of that name is whole, or damaged.
"""

import re
from collections.abc import Sequence

import cbor2

from ...protocol.errors import CorruptData
from ...protocol.ids import ControllerEpoch
from ...storage.disk.files import File, Files
from ..metadata.metadata_log import SnapshotId
from ..raft.cbor_errors import CBOR_ERRORS
from ..raft.consensus import ConsensusFailed, Snapshot
from ..raft.frames import encode_frame, scan_frames
from ..raft.snapshot_transfer import FinishSnapshot, KeepPart, SnapshotWork

_FORMAT = 1
_PART = ".part"
# One that comes from another voter, while this one may be writing its own.
_INCOMING = ".incoming"
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotWriter:
    """A snapshot in the making. Synchronous: run it in the executor, one call at a time."""

    def __init__(
        self, files: Files, directory: str, *, end_offset: int, epoch: ControllerEpoch, is_incoming: bool = False
    ) -> None:
        self._files = files
        self._directory = directory
        self._path = f"{directory}/{end_offset:020}-{epoch:010}.checkpoint"
        self._unfinished_path = self._path + (_INCOMING if is_incoming else _PART)
        self._chunk_count = 0
        self._file: File = files.open(self._unfinished_path, create=True)
        self._file.truncate(0)
        self._file.append([encode_frame(0, cbor2.dumps([_FORMAT, end_offset, epoch]))])

    def append(self, chunks: Sequence[bytes]) -> None:
        frames = [encode_frame(self._chunk_count + 1 + number, chunk) for number, chunk in enumerate(chunks)]
        self._file.append(frames)
        self._chunk_count += len(chunks)

    def give_up(self) -> None:
        """Remove what was written."""
        self._file.close()
        self._files.remove(self._unfinished_path)

    def finish(self) -> None:
        """Make it last and give it its name."""
        self._file.append([encode_frame(self._chunk_count + 1, cbor2.dumps([self._chunk_count]))])
        self._file.sync()
        self._file.close()
        self._files.rename(self._unfinished_path, self._path)
        self._files.sync_directory(self._directory)


class Snapshots:
    """The snapshots of a folder."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def remove_unfinished(self) -> None:
        for name in self._files.list_directory(self._directory):
            if name.endswith((_PART, _INCOMING)):
                self._files.remove(f"{self._directory}/{name}")

    def give_up(self, end_offset: int, epoch: ControllerEpoch) -> None:
        """Remove what a `SnapshotWriter` of this voter's own state has written."""
        path = self.path(end_offset, epoch) + _PART
        if self._files.exists(path):
            self._files.remove(path)

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, checked as a whole. Raises ConsensusFailed when it is damaged.

        An older one is no help: the journal behind it is gone.
        """
        names = self._names()
        if not names:
            return None
        path = f"{self._directory}/{names[-1]}"
        return self._read(path, path)

    def all_files(self) -> tuple[tuple[SnapshotId, str, int], ...]:
        """Return each snapshot with its path and its size in bytes, the oldest first. Raises OSError."""
        found = []
        for name in sorted(self._names()):
            path = f"{self._directory}/{name}"
            found.append((_place(name), path, self._files.size(path)))
        return tuple(found)

    def path(self, end_offset: int, epoch: ControllerEpoch) -> str:
        return f"{self._directory}/{end_offset:020}-{epoch:010}.checkpoint"

    def accept(self, path: str) -> Snapshot:
        """Give a synced file `<path>.part` that came from elsewhere its name, if it is a whole snapshot.

        Raises ConsensusFailed, and removes it, when it is not.
        """
        try:
            snapshot = self._read(path + _PART, path)
        except ConsensusFailed:
            self._files.remove(path + _PART)
            raise
        self._files.rename(path + _PART, path)
        self._files.sync_directory(self._directory)
        return snapshot

    def size_bytes(self, path: str) -> int | None:
        """Return the size of a snapshot's file, None when it is not there."""
        return self._files.size(path) if self._files.exists(path) else None

    def read_bytes(self, path: str, position: int, size_bytes: int) -> bytes:
        """Return part of a snapshot's file, as it is."""
        file = self._files.open(path)
        try:
            return file.read_at(position, size_bytes)
        finally:
            file.close()

    def load(self, end_offset: int, epoch: ControllerEpoch) -> Snapshot:
        """Return one snapshot, checked as a whole. Raises ConsensusFailed when it is damaged."""
        path = self.path(end_offset, epoch)
        return self._read(path, path)

    def remove_below(self, end_offset: int) -> None:
        for name in self._names():
            if _place(name)[0] < end_offset:
                self._files.remove(f"{self._directory}/{name}")
        self._files.sync_directory(self._directory)

    def _names(self) -> list[str]:
        return [name for name in self._files.list_directory(self._directory) if _NAME.fullmatch(name)]

    def _read(self, path: str, final_path: str) -> Snapshot:
        data = self._files.read(path)
        end_offset, epoch = _place(final_path.rpartition("/")[2])
        try:
            scan = scan_frames(data, 0, path)
            if scan.end < len(data) or len(scan.frames) < 2:
                raise CorruptData(f"{path} is damaged at byte {scan.end} of {len(data)}")
            head, last = cbor2.loads(scan.frames[0].payload), cbor2.loads(scan.frames[-1].payload)
            if head != [_FORMAT, end_offset, epoch]:
                raise CorruptData(
                    f"{path} begins with {head!r:.100} where [{_FORMAT}, {end_offset}, {epoch}] was expected"
                )
            if last != [len(scan.frames) - 2]:
                raise CorruptData(f"{path} is not complete: it ends with {last!r:.100}")
        except (CorruptData, *CBOR_ERRORS) as error:
            raise ConsensusFailed(f"The metadata snapshot cannot be used: {error}.") from error
        return Snapshot(end_offset=end_offset, epoch=epoch, chunks=[frame.payload for frame in scan.frames[1:-1]])


def snapshot_id(name: str) -> SnapshotId | None:
    """Return which snapshot a file of that name holds, None when it is the name of none."""
    match = _NAME.fullmatch(name)
    return None if match is None else SnapshotId(int(match[1]), ControllerEpoch(int(match[2])))


def _place(name: str) -> SnapshotId:
    found = snapshot_id(name)
    assert found is not None
    return found


class SnapshotIntake:
    """Does on the disk what a snapshot from another voter asks for. Synchronous, like the writer."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._writer: SnapshotWriter | None = None

    def give_up(self) -> None:
        """Remove what has come. A first part begins anew."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.give_up()

    def execute(self, work: SnapshotWork) -> Snapshot | None:
        """Return the snapshot when it is whole, named and read back. Raises OSError, ConsensusFailed."""
        match work:
            case KeepPart(part):
                if part.first_chunk == 0:
                    self._writer = SnapshotWriter(
                        self._files,
                        self._directory,
                        end_offset=part.end_offset,
                        epoch=ControllerEpoch(part.epoch),
                        is_incoming=True,
                    )
                assert self._writer is not None
                self._writer.append(part.chunks)
                return None
            case FinishSnapshot(end_offset, epoch):
                assert self._writer is not None
                self._writer.finish()
                self._writer = None
                return Snapshots(self._files, self._directory).load(end_offset, ControllerEpoch(epoch))
