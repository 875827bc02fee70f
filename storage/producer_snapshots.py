"""Files `<end offset>.snapshot`: the producer state of a partition as of an offset, so that recovery need not read on.

    offset  size  field
    0       2     version, 1
    2       4     CRC-32C of what follows
    6       4     number of entries
    10            entries of 46 bytes: producer id 8, epoch 2, last sequence 4, last offset 8, offset delta 4,
                  timestamp 8, coordinator epoch 4, first offset of the open transaction or -1: 8

A snapshot is taken whenever the log rolls and when it closes. It is not synced: the CRC tells a torn one, and the one
before it with more of the log says the same.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from struct import Struct
from struct import error as struct_error
from typing import Final

from crc32c import crc32c

from ..protocol.batches import NO_SEQUENCE
from ..protocol.errors import CorruptData
from .disk_errors import is_no_room
from .file_names import PRODUCER_SNAPSHOT, segment_file
from .files import Files
from .producer_entry import ProducedBatch, ProducerEntry, first_sequence_of
from .producer_state import ProducerState

_VERSION: Final = 1
_HEADER: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_NO_OFFSET: Final = -1


def encode_snapshot(entries: Collection[ProducerEntry]) -> bytes:
    parts = [_COUNT.pack(len(entries))]
    for entry in entries:
        last = entry.last_batch
        open_since = entry.transaction_first_offset
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                NO_SEQUENCE if last is None else last.last_sequence,
                _NO_OFFSET if last is None else last.last_offset,
                0 if last is None else last.last_offset - last.first_offset,
                entry.last_timestamp,
                entry.coordinator_epoch,
                _NO_OFFSET if open_since is None else open_since,
            )
        )
    body = b"".join(parts)
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: str) -> list[ProducerEntry]:
    """CorruptData when version, CRC or length are wrong."""
    try:
        version, crc = _HEADER.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEADER.size)
    except struct_error:
        raise CorruptData(f"{path} is no producer snapshot: it has {len(data)} bytes") from None
    body = data[_HEADER.size :]
    if version != _VERSION or crc32c(body) != crc or len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptData(f"{path} is a corrupt producer snapshot of version {version} with {count} entries")
    entries = []
    for (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        delta,
        timestamp,
        coordinator_epoch,
        open_since,
    ) in _ENTRY.iter_unpack(body[_COUNT.size :]):
        last_batch = None
        if last_offset >= 0:
            first_sequence = first_sequence_of(last_sequence, delta)
            last_batch = ProducedBatch(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
        entries.append(
            ProducerEntry(
                producer_id,
                epoch=epoch,
                coordinator_epoch=coordinator_epoch,
                last_timestamp=timestamp,
                transaction_first_offset=open_since if open_since >= 0 else None,
                last_batch=last_batch,
            )
        )
    return entries


class ProducerSnapshots:
    """The snapshot files in a partition's folder."""

    __slots__ = ("_files", "directory", "offsets")

    def __init__(self, files: Files, directory: str, offsets: list[int]) -> None:
        """`offsets` are those of the files that exist, ascending."""
        self._files = files
        self.directory = directory
        self.offsets = offsets

    def take(self, state: ProducerState) -> None:
        """Write `state`, unless there is a snapshot at its end offset, or nothing that one could save reading."""
        offset = state.end_offset
        if offset == 0 or offset in self.offsets:
            return
        path = self.path(offset)
        if self._files.exists(path):
            self._files.remove(path)
        file = self._files.open(path, create=True)
        file.append((encode_snapshot(state.entries.values()),))
        file.close()
        insort(self.offsets, offset)

    def take_if_room(self, state: ProducerState) -> None:
        """For recovery: without it the next one reads more, and no more than that."""
        try:
            self.take(state)
        except OSError as error:
            if not is_no_room(error):
                raise

    def load_latest(self, state: ProducerState, *, log_start_offset: int, end_offset: int, now_ms: int) -> None:
        """Bring `state` to the latest intact snapshot in (log_start_offset, end_offset], or empty to the log start.

        Snapshots out of that range and corrupt ones are removed.
        """
        for offset in [offset for offset in self.offsets if not log_start_offset < offset <= end_offset]:
            self.remove(offset)
        while self.offsets:
            offset = self.offsets[-1]
            path = self.path(offset)
            try:
                entries = decode_snapshot(self._files.read(path), path)
            except CorruptData:
                self.remove(offset)
            else:
                state.load(entries, offset, now_ms)
                return
        state.clear(log_start_offset)

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
            self._files.remove(self.path(offset))

    def remove_above(self, end_offset: int) -> None:
        for offset in [offset for offset in self.offsets if offset > end_offset]:
            self.remove(offset)

    def remove_all(self) -> None:
        for offset in list(self.offsets):
            self.remove(offset)

    def path(self, offset: int) -> str:
        return segment_file(self.directory, offset, PRODUCER_SNAPSHOT)
