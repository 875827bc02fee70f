"""The metadata in a folder, read while its node may run: a voter's journal or an observer's log, and snapshots.

Nothing is written, locked, cut or removed. What a running node is writing just now looks like a torn end, and is left
out; a file that it removes meanwhile makes the reader begin anew.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from ...protocol.batches import HEADER_SIZE, is_crc_valid, read_header
from ...protocol.errors import CorruptData
from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch
from ...storage.disk.files import Files
from ..metadata.image import MetadataImage
from ..metadata.loader import MetadataLoader
from ..metadata.metadata_log import METADATA_FOLDER, CommittedEntry, SnapshotId, decode_batches
from ..metadata.publishers import Publishers
from ..metadata.record_codec import UnknownRecord
from ..metadata.topics_delta import ReplayError
from ..raft.consensus import ConsensusFailed
from ..voter.snapshots import Snapshots, snapshot_id
from ..voter.stored_journal import RecoveredLog, read_segments

JOURNAL_SUFFIX: Final = ".journal"
# A node's own log lines may be in a file of that ending, too.
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")

# A node removes files when it has made a snapshot; so many of them while a folder is read are no accident.
_ATTEMPTS: Final = 10


class MetadataUnreadable(Exception):  # noqa: N818 - it says what was found
    """The metadata that was asked for cannot be shown. The message is one sentence."""


class StoredEntries(NamedTuple):
    """What a log has; offsets have no holes."""

    start_offset: int
    entries: Sequence[CommittedEntry]
    committed_end: int

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)


class ShownImage(Struct, frozen=True, kw_only=True):
    """An image, and the last offset that was replayed for it: inside a transaction the image is older."""

    image: MetadataImage
    offset: int


class StoredMetadata:
    """What a folder or a single snapshot has. `committed_end`: below it everything is known to be committed."""

    def __init__(self, files: Files, folder: str, snapshots: Sequence[SnapshotId], entries: StoredEntries) -> None:
        self._snapshots = Snapshots(files, folder)
        self.entries = entries
        self.folder = folder
        self.snapshots = tuple(sorted(snapshots))
        self.committed_end = max(entries.committed_end, *(one.end_offset for one in self.snapshots), 0)

    @property
    def last_offset(self) -> int:
        """-1 when nothing was ever written."""
        return max(self.entries.end_offset, *(one.end_offset for one in self.snapshots), 0) - 1

    def image_at(self, offset: int | None = None) -> ShownImage:
        """Return the image after the entry at an offset, or after the last one there is. Raises MetadataUnreadable."""
        wanted = self.last_offset if offset is None else offset
        base = self._best_base(wanted)
        if base is None:
            raise MetadataUnreadable(
                f"The image at offset {wanted} cannot be made from {self.folder}: it has {self._shown_offsets()}."
            )
        loader = MetadataLoader(Publishers())
        start = 0
        try:
            if base.end_offset:
                snapshot = self._snapshots.load(base.end_offset, base.epoch)
                loader.load_snapshot(snapshot.chunks, end_offset=snapshot.end_offset, epoch=snapshot.epoch)
                start = base.end_offset
            for place in range(start - self.entries.start_offset, wanted + 1 - self.entries.start_offset):
                loader.load_entry(*self.entries.entries[place])
            loader.catch_up()
        except ConsensusFailed as error:
            raise MetadataUnreadable(str(error)) from error
        except FileNotFoundError:
            raise MetadataUnreadable(f"The snapshot in {self.folder} was replaced meanwhile; try again.") from None
        except (CorruptData, UnknownRecord, ReplayError) as error:
            raise MetadataUnreadable(f"The metadata in {self.folder} cannot be replayed: {error}.") from error
        return ShownImage(image=loader.image, offset=wanted)

    def _best_base(self, offset: int) -> SnapshotId | None:
        """The newest state from which the log leads to the offset; end offset 0 is the empty one."""
        for base in reversed((SnapshotId(0, NO_CONTROLLER_EPOCH), *self.snapshots)):
            if base.end_offset == offset + 1 and base.end_offset:
                return base
            if (
                base.end_offset <= offset
                and self.entries.start_offset <= base.end_offset
                and (offset < self.entries.end_offset)
            ):
                return base
        return None

    def _shown_offsets(self) -> str:
        log = self.entries
        ranges = [(one.end_offset - 1, one.end_offset - 1) for one in self.snapshots]
        bases = [one.end_offset for one in (SnapshotId(0, NO_CONTROLLER_EPOCH), *self.snapshots)]
        first = min((end for end in bases if log.start_offset <= end < log.end_offset), default=None)
        if first is not None:
            ranges = [(low, high) for low, high in ranges if low < first - 1]
            ranges.append((max(first - 1, 0), log.end_offset - 1))
        texts = [f"offset {low}" if low == high else f"offsets {low} to {high}" for low, high in sorted(ranges)]
        return " and ".join(texts) or "no metadata"


def open_folder(files: Files, path: str) -> StoredMetadata:
    """Read a folder of metadata, or the one in a node's log directory. Raises MetadataUnreadable."""
    folder = path.rstrip("/") or "/"
    inner = f"{folder}/{METADATA_FOLDER}"
    if files.is_directory(inner):
        folder = inner
    if not files.is_directory(folder):
        raise MetadataUnreadable(f"{folder} is no folder.")
    for _ in range(_ATTEMPTS):
        try:
            return _read(files, folder)
        except FileNotFoundError:
            # The node that works here trimmed its log.
            continue
        except OSError as error:
            raise MetadataUnreadable(f"The metadata in {folder} cannot be read: {error}.") from error
        except CorruptData as error:
            raise MetadataUnreadable(f"The metadata in {folder} cannot be used: {error}.") from error
    raise MetadataUnreadable(f"The files in {folder} are replaced faster than they can be read.")


def open_snapshot(files: Files, path: str) -> StoredMetadata:
    """Read a single snapshot. Raises MetadataUnreadable."""
    folder, _, name = path.rpartition("/")
    found = snapshot_id(name)
    if found is None:
        raise MetadataUnreadable(
            f"{path} is no metadata snapshot: those are named <end offset, 20 digits>-<epoch, 10 digits>.checkpoint."
        )
    if not files.exists(path):
        raise MetadataUnreadable(f"There is no file {path}.")
    return StoredMetadata(files, folder or ".", [found], StoredEntries(found.end_offset, (), 0))


def _read(files: Files, folder: str) -> StoredMetadata:
    names = files.list_directory(folder)
    snapshots = [found for found in map(snapshot_id, names) if found is not None]
    journal = [f"{folder}/{name}" for name in names if name.endswith(JOURNAL_SUFFIX)]
    segments = [f"{folder}/{name}" for name in names if _SEGMENT.fullmatch(name)]
    if journal:
        entries = _read_journal(files, journal)
    elif segments:
        entries = _read_log(files, segments)
    elif snapshots:
        entries = StoredEntries(max(snapshots).end_offset, (), 0)
    else:
        raise MetadataUnreadable(f"{folder} holds no metadata: neither a journal, nor a log, nor a snapshot.")
    return StoredMetadata(files, folder, snapshots, entries)


def _read_journal(files: Files, paths: Sequence[str]) -> StoredEntries:
    log = RecoveredLog()
    for segment in read_segments(files, paths):
        log.replay_segment(segment)
    entries = [CommittedEntry(entry.offset, ControllerEpoch(entry.epoch), entry.command) for entry in log.entries]
    return StoredEntries(log.start_offset, entries, log.commit_end)


def _read_log(files: Files, paths: Sequence[str]) -> StoredEntries:
    """An observer's: record batches as a voter served them, and committed all of them."""
    entries: list[CommittedEntry] = []
    for path in paths:
        data = files.read(path)
        for entry in decode_batches(memoryview(data)[: _whole_batches_end(data)]):
            if entries and entry.offset != entries[-1].offset + 1:
                raise CorruptData(f"{path} has offset {entry.offset} where {entries[-1].offset + 1} was expected")
            entries.append(entry)
    start_offset = entries[0].offset if entries else 0
    return StoredEntries(start_offset, entries, start_offset + len(entries))


def _whole_batches_end(data: bytes) -> int:
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        if not is_crc_valid(data, position, header):
            break
        position += header.size_bytes
    return position
