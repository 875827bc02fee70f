"""The committed metadata log as voters serve it to brokers: each entry is one record batch of one record.

The record's value is the entry's command, its timestamp the entry's own, the batch's leader epoch the entry's epoch. A
no-op is a control batch of type LeaderChange, so that offsets have no holes (KIP-595). All of it follows from the entry
alone: every voter serves the same bytes, and Kafka's tools can read them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

from ...protocol.batches import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, Buffer, read_header
from ...protocol.errors import CorruptData
from ...protocol.ids import NO_CONTROLLER_EPOCH, ControllerEpoch, TopicId
from ...protocol.records import Record, control_type, read_records, write_batch
from .record_codec import entry_timestamp_ms

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = TopicId(UUID(int=1))
METADATA_FOLDER: Final = f"{METADATA_TOPIC}-0"
"""Below `metadata.log.dir`: where Apache Kafka has its metadata log, too, and nothing looks for a topic's."""

_LEADER_CHANGE: Final = 2
_LEADER_CHANGE_KEY: Final = b"\0\0\0\2"
# LeaderChangeMessage, version 0: leader -1, no voters, no granting voters. Who led an epoch is not in its entries.
_LEADER_CHANGE_VALUE: Final = b"\0\0\xff\xff\xff\xff\1\1\0"


# What one answer has at most, so that giving and taking it in are short: entries are encoded and replayed on the loop.
_READ_BYTES: Final = 64 * 1024
_READ_ENTRIES: Final = 256


class CommittedEntry(NamedTuple):
    """An entry as a broker reads it; an empty command is a no-op."""

    offset: int
    epoch: ControllerEpoch
    command: bytes


class SnapshotId(NamedTuple):
    """Names a snapshot: it has all entries below the offset, the last of them of that epoch."""

    end_offset: int
    epoch: ControllerEpoch


def encode_batch(entry: CommittedEntry) -> bytes:
    if entry.command:
        record = Record(entry.offset, entry_timestamp_ms(entry.command), None, entry.command, ())
        return write_batch([record], leader_epoch=entry.epoch)
    record = Record(entry.offset, NO_TIMESTAMP, _LEADER_CHANGE_KEY, _LEADER_CHANGE_VALUE, ())
    return write_batch([record], leader_epoch=entry.epoch, is_control=True)


def decode_batches(records: Buffer, *, is_cut: bool = False) -> Iterator[CommittedEntry]:
    """Yield the entries of whole batches; with `is_cut` the last may be cut off, and is left out. CorruptData."""
    view = memoryview(records)
    position = 0
    while position < len(view):
        if is_cut and len(view) - position < HEADER_SIZE:
            return
        header = read_header(view, position)
        end = position + header.size_bytes
        if end > len(view):
            if is_cut:
                return
            raise CorruptData(f"the metadata batch at offset {header.base_offset} is cut off")
        yield _decode_batch(view[position:end], header)
        position = end


def _decode_batch(batch: memoryview, header: BatchHeader) -> CommittedEntry:
    found = list(read_records(batch, header))
    if len(found) != 1:
        raise CorruptData(f"the metadata batch at offset {header.base_offset} has {len(found)} records, not one")
    (record,) = found
    if header.is_control:
        if control_type(record) != _LEADER_CHANGE:
            raise CorruptData(f"the metadata log has a control record of type {control_type(record)}")
        return CommittedEntry(record.offset, ControllerEpoch(header.partition_leader_epoch), b"")
    return CommittedEntry(record.offset, ControllerEpoch(header.partition_leader_epoch), bytes(record.value or b""))


class MetadataLog:
    """The committed entries since the last snapshot, in memory, shared with other holders."""

    def __init__(self) -> None:
        self._snapshot = SnapshotId(0, NO_CONTROLLER_EPOCH)
        self._entries: list[CommittedEntry] = []

    @property
    def snapshot(self) -> SnapshotId:
        """The snapshot with which the log begins; `offset` is 0 without one."""
        return self._snapshot

    @property
    def start_offset(self) -> int:
        return self._snapshot.end_offset

    @property
    def end_offset(self) -> int:
        return self._snapshot.end_offset + len(self._entries)

    @property
    def last_epoch(self) -> ControllerEpoch:
        return self._entries[-1].epoch if self._entries else self._snapshot.epoch

    def reset(self, snapshot: SnapshotId) -> None:
        """Begin anew behind a snapshot."""
        self._snapshot = snapshot
        self._entries.clear()

    def append(self, entry: CommittedEntry) -> None:
        assert entry.offset == self.end_offset, f"offset {entry.offset} after {self.end_offset}"
        self._entries.append(entry)

    def trim(self, snapshot: SnapshotId) -> None:
        """Drop what the snapshot has. One that was overtaken by a later one, which came from elsewhere, has nothing."""
        if snapshot.end_offset > self.start_offset:
            del self._entries[: snapshot.end_offset - self.start_offset]
            self._snapshot = snapshot

    def epoch_before(self, offset: int) -> ControllerEpoch:
        """Return the epoch of the entry before `offset`, which is from the start to the end of the log."""
        place = offset - self.start_offset
        return self._entries[place - 1].epoch if place else self._snapshot.epoch

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from an offset of the log on: at least one if there is any, then up to `max_bytes`,

        or fewer, when that would take long.
        """
        batches: list[bytes] = []
        size_bytes = 0
        first = offset - self.start_offset
        for place in range(first, min(first + _READ_ENTRIES, len(self._entries))):
            entry = self._entries[place]
            if batches and size_bytes + len(entry.command) > min(max_bytes, _READ_BYTES):
                break
            batches.append(encode_batch(entry))
            size_bytes += len(batches[-1])
        return b"".join(batches)
