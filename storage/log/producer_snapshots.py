"""Files `<end offset>.snapshot`: the producer state of a partition as of an offset, so that recovery need not read on.

Apache Kafka's file, and behind it a tail that Kafka's reader passes over, since the CRC covers the whole file:

    offset  size  field
    0       2     version, 1
    2       4     CRC-32C of what follows
    6       4     number of entries
    10            entries of 46 bytes: producer id 8, epoch 2, last sequence 4, last offset 8, offset delta 4,
                  timestamp 8, coordinator epoch 4, first offset of the open transaction or -1: 8
    tail:   2     version, 1
                  for each entry: time of its last append 8, number of older batches 1, those batches, oldest first, of
                  32 bytes: first sequence 4, last sequence 4, first offset 8, last offset 8, timestamp 8
            4     number of completed transactions whose marker may not be below the high watermark
                  those transactions, in the order of the markers, of 16 bytes: first offset 8, offset of the marker 8

Without the tail a clean restart would forget the older of the batches by which retries are recognised, would judge idle
producers by the timestamps of records, and would let the last stable offset pass a marker that is not committed
(KAFKA-14497). Epoch -1 is of a producer whose epoch and sequence are not known: Kafka, too, lets it begin anywhere.

A snapshot is taken whenever the log rolls and when it closes. The CRC tells a torn one, and the one before it with more
of the log says the same. It is synced with the segment that it ends, and at the latest before that one is deleted: then
no other file has the producers in it.
"""

import logging
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from ...protocol.batches import NO_OFFSET, NO_SEQUENCE
from ...protocol.checksum import crc32c
from ...protocol.errors import CorruptData
from ..disk.files import Files
from ..disk.rules.disk_errors import ReadError, is_passing
from .rules.file_names import PRODUCER_SNAPSHOT, segment_file
from .rules.producer_entry import RETAINED_BATCHES, BatchMetadata, ProducerEntry, first_sequence_of
from .rules.producer_state import ProducerState

logger = logging.getLogger(__name__)

_VERSION: Final = 1
_HEADER: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_TAIL_VERSION: Final = 1
_TAIL_VERSION_FIELD: Final = Struct(">h")
_ENTRY_TAIL: Final = Struct(">qB")
_BATCH: Final = Struct(">iiqqq")
_COMPLETED: Final = Struct(">qq")


class ProducerSnapshot(NamedTuple):
    entries: Sequence[ProducerEntry]
    completed: Mapping[int, int]
    """As `ProducerState.completed`."""
    has_tail: bool
    """False for a file of Apache Kafka: each producer's older batches and the completed transactions are unknown."""


def encode_snapshot(entries: Collection[ProducerEntry], completed: Mapping[int, int]) -> bytes:
    parts = [_COUNT.pack(len(entries))]
    tail = [_TAIL_VERSION_FIELD.pack(_TAIL_VERSION)]
    for entry in entries:
        last = entry.last_batch
        open_since = entry.transaction_first_offset
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                NO_SEQUENCE if last is None else last.last_sequence,
                NO_OFFSET if last is None else last.last_offset,
                0 if last is None else last.last_offset - last.first_offset,
                entry.last_timestamp,
                entry.coordinator_epoch,
                NO_OFFSET if open_since is None else open_since,
            )
        )
        older = entry.batches[:-1]
        tail.append(_ENTRY_TAIL.pack(entry.appended_ms, len(older)))
        tail += [_BATCH.pack(*batch) for batch in older]
    tail.append(_COUNT.pack(len(completed)))
    tail += [_COMPLETED.pack(first_offset, marker_offset) for first_offset, marker_offset in completed.items()]
    body = b"".join((*parts, *tail))
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: str) -> ProducerSnapshot:
    """CorruptData when version, CRC or length are wrong."""
    try:
        version, _ = _HEADER.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEADER.size)
        if not is_intact(data):
            raise CorruptData(f"{path} is a corrupt producer snapshot of version {version} with {count} entries")
        place = _HEADER.size + _COUNT.size
        entries = [_read_entry(data, place + number * _ENTRY.size) for number in range(count)]
        place += count * _ENTRY.size
        has_tail = place < len(data)
        completed = _read_tail(data, place, entries, path) if has_tail else {}
    except struct_error:
        raise CorruptData(f"{path} is no producer snapshot: it has {len(data)} bytes") from None
    return ProducerSnapshot(entries, completed, has_tail)


def is_intact(data: bytes) -> bool:
    """Whether `decode_snapshot` will tell what was written: of many producers it takes long."""
    if len(data) < _HEADER.size + _COUNT.size:
        return False
    version, crc = _HEADER.unpack_from(data)
    return bool(version == _VERSION and crc32c(memoryview(data)[_HEADER.size :]) == crc)


def _read_entry(data: bytes, place: int) -> ProducerEntry:
    (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        delta,
        timestamp,
        coordinator_epoch,
        open_since,
    ) = _ENTRY.unpack_from(data, place)
    batches = []
    if last_offset >= 0:
        first_sequence = first_sequence_of(last_sequence, delta)
        batches.append(BatchMetadata(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))
    return ProducerEntry(
        producer_id,
        epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        transaction_first_offset=open_since if open_since >= 0 else None,
        batches=batches,
    )


def _read_tail(data: bytes, place: int, entries: Iterable[ProducerEntry], path: str) -> dict[int, int]:
    """Complete `entries` and return the completed transactions. CorruptData, struct.error when the file is short."""
    (version,) = _TAIL_VERSION_FIELD.unpack_from(data, place)
    if version != _TAIL_VERSION:
        raise CorruptData(f"{path} is a producer snapshot whose tail has version {version}, not {_TAIL_VERSION}")
    place += _TAIL_VERSION_FIELD.size
    for entry in entries:
        entry.appended_ms, older = _ENTRY_TAIL.unpack_from(data, place)
        place += _ENTRY_TAIL.size
        if older >= RETAINED_BATCHES or (older and not entry.batches):
            raise CorruptData(f"{path} is a producer snapshot with {older} older batches of {entry.producer_id}")
        entry.batches[:0] = [
            BatchMetadata(*_BATCH.unpack_from(data, place + number * _BATCH.size)) for number in range(older)
        ]
        place += older * _BATCH.size
    (count,) = _COUNT.unpack_from(data, place)
    place += _COUNT.size
    if len(data) != place + count * _COMPLETED.size:
        raise CorruptData(f"{path} is a producer snapshot of {len(data)} bytes with {count} completed transactions")
    return dict(_COMPLETED.iter_unpack(data[place:]))


class ProducerSnapshots:
    """The snapshot files in a partition's folder."""

    __slots__ = ("_files", "_synced", "_taken", "directory", "offsets")

    def __init__(self, files: Files, directory: str, offsets: list[int]) -> None:
        """`offsets` are those of the files that exist, ascending."""
        self._files = files
        self.directory = directory
        self.offsets = offsets
        # Written by this process and not synced yet, ascending.
        self._taken: list[int] = []
        # Known to be synced.
        self._synced: set[int] = set()

    def take(self, state: ProducerState) -> None:
        """Write `state`, unless there is a snapshot at its end offset, or nothing that one could save reading."""
        offset = state.end_offset
        if offset != 0 and offset not in self.offsets:
            self._write(offset, state.entries.values(), state.completed)

    def replace(self, offset: int, entries: Collection[ProducerEntry]) -> None:
        """The one at `offset` is not intact, and is to have `entries`. It lasts when this returns. OSError."""
        self.remove(offset)
        self._write(offset, entries, {})
        self.sync(offset)

    def _write(self, offset: int, entries: Collection[ProducerEntry], completed: Mapping[int, int]) -> None:
        path = self.path(offset)
        if self._files.exists(path):
            self._files.remove(path)
        file = self._files.open(path, create=True)
        file.append((encode_snapshot(entries, completed),))
        file.close()
        insort(self.offsets, offset)
        if entries:
            insort(self._taken, offset)

    @property
    def taken(self) -> Sequence[int]:
        """The offsets of those that this process has written and not synced."""
        return self._taken

    def mark_synced(self, offsets: Iterable[int]) -> None:
        """They are synced, and so is the folder."""
        for offset in offsets:
            if offset in self._taken:
                self._taken.remove(offset)
                self._synced.add(offset)

    def sync(self, offset: int) -> bool:
        """Sync the one at `offset`, and the folder, waiting. False without an intact one. OSError."""
        if offset not in self.offsets:
            return False
        path = self.path(offset)
        # One of an earlier process may have lost power before it could sync it, and any may be damaged since.
        try:
            is_whole = self._files.exists(path) and (offset in self._taken or is_intact(self._files.read(path)))
        except ReadError:
            return False
        if not is_whole:
            self.remove(offset)
            return False
        if offset in self._synced:
            return True
        file = self._files.open(path)
        file.sync()
        file.close()
        self._files.sync_directory(self.directory)
        self._synced.add(offset)
        if offset in self._taken:
            self._taken.remove(offset)
        return True

    def take_if_room(self, state: ProducerState) -> None:
        """For recovery: without it the next one reads more, and no more than that."""
        try:
            self.take(state)
        except OSError as error:
            if not is_passing(error):
                raise

    def load_latest(
        self,
        state: ProducerState,
        *,
        start_offset: int,
        end_offset: int,
        now_ms: int,
        tail_needed_above: int | None = None,
    ) -> None:
        """Bring `state` to the latest intact snapshot in [start_offset, end_offset], or empty to `start_offset`.

        That is the base offset of the first segment. The log start does not matter: a producer is remembered though
        its records are deleted, up to the end of the log too, where Apache Kafka forgets it at the next start.
        Snapshots out of that range and corrupt ones are removed, and above `tail_needed_above` those without a tail:
        there the batches say more.
        """
        for offset in [offset for offset in self.offsets if not start_offset <= offset <= end_offset]:
            self.remove(offset)
        while self.offsets:
            offset = self.offsets[-1]
            snapshot = self._read(offset)
            if snapshot is None or (
                not snapshot.has_tail and tail_needed_above is not None and offset > tail_needed_above
            ):
                self.remove(offset)
                continue
            state.load(snapshot.entries, snapshot.completed, offset, now_ms)
            return
        state.clear(start_offset)

    def load_earlier(self, state: ProducerState, *, start_offset: int, end_offset: int, now_ms: int) -> None:
        """`load_latest` for a look at what was: all files stay. OSError."""
        for offset in reversed(self.offsets):
            snapshot = self._read(offset) if start_offset <= offset <= end_offset else None
            if snapshot is not None:
                state.load(snapshot.entries, snapshot.completed, offset, now_ms)
                return
        state.clear(start_offset)

    def _read(self, offset: int) -> ProducerSnapshot | None:
        """None when it is corrupt or gone. OSError."""
        path = self.path(offset)
        try:
            return decode_snapshot(self._files.read(path), path)
        except (CorruptData, FileNotFoundError) as error:
            logger.warning("Removing damaged producer snapshot: %s", error)
            return None

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Remove the snapshots that belong to no segment, but for one after the last segment's base: that of a stop."""
        kept = set(base_offsets)
        last_base = max(kept, default=-1)
        latest = self.offsets[-1] if self.offsets and self.offsets[-1] > last_base else None
        for offset in [offset for offset in self.offsets if offset not in kept and offset != latest]:
            self.remove(offset)

    def remove(self, offset: int) -> None:
        slot = bisect_left(self.offsets, offset)
        if slot < len(self.offsets) and self.offsets[slot] == offset:
            del self.offsets[slot]
            self._synced.discard(offset)
            if offset in self._taken:
                self._taken.remove(offset)
            # One that the disk has lost is no reason to keep what is deleted, or to give the directory up.
            with suppress(FileNotFoundError):
                self._files.remove(self.path(offset))

    def remove_above(self, end_offset: int) -> None:
        for offset in [offset for offset in self.offsets if offset > end_offset]:
            self.remove(offset)

    def remove_all(self) -> None:
        for offset in list(self.offsets):
            self.remove(offset)

    def path(self, offset: int) -> str:
        return segment_file(self.directory, offset, PRODUCER_SNAPSHOT)
