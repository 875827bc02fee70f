"""Puts the files of a closed segment into the tier, once it is certain that they are what they are taken for.

Replicas drop their own segments for this copy, so nothing damaged may get there: each batch is checked, and the indexes
against the batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

from ...protocol.errors import CorruptData
from ...protocol.ids import NO_LEADER_EPOCH
from ...storage.disk.files import File
from ...storage.log.log import Log
from ...storage.log.offset_index import ENTRY as OFFSET_ENTRY
from ...storage.log.rules.file_names import LEADER_EPOCH_CHECKPOINT, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX
from ...storage.log.rules.index_check import SegmentIndexCheck
from ...storage.log.segment_scan import BadBatch, scan
from ...storage.log.time_index import ENTRY as TIME_ENTRY
from ...storage.log.transaction_index import decode_transactions
from ...storage.tiers.rules.segment_objects import indexes_key, log_key, pack_parts
from ...storage.tiers.rules.tier_store import TierStore
from .rules.remote_segment import RemoteSegment

READ_BYTES: Final = 1024 * 1024
"""Of the local segment, given to the store at a time."""


class DamagedIndexError(CorruptData):
    """The offset or the time index does not say what the batches say."""


class SegmentSource(NamedTuple):
    """What a copy is made of, found out on the loop; read by a thread."""

    log: Log
    file: File
    size_bytes: int
    index_interval_bytes: int
    paths: dict[str, str]
    epochs: bytes


def upload(store: TierStore, remote: RemoteSegment, source: SegmentSource) -> None:
    """In a thread. TierError, OSError, BadBatch, DamagedIndexError; CorruptData of the transaction index.

    A copy whose upload failed is not finished, whatever of it is there.
    """
    parts = {suffix: source.log.read_file(path) for suffix, path in source.paths.items()}
    decode_transactions(parts.get(TRANSACTION_INDEX, b""), source.file.path)
    indexes = _index_check(parts, source.file.path, remote.start_offset)
    parts[LEADER_EPOCH_CHECKPOINT] = source.epochs
    place = (*remote.partition, remote.start_offset, remote.id)
    store.put(indexes_key(*place), pack_parts(parts))
    store.put(log_key(*place), _pieces(source, remote, indexes))


def _index_check(parts: Mapping[str, bytes], path: str, base_offset: int) -> SegmentIndexCheck:
    """Raises DamagedIndexError at the first fault, and here already where an index is cut off."""

    def refuse(fault: str) -> None:
        raise DamagedIndexError(f"an index of {path} is damaged: {fault}")

    def entries(suffix: str, entry: Struct) -> Iterator[tuple[int, int]]:
        data = parts.get(suffix, b"")
        if len(data) % entry.size:
            refuse(f"{suffix} has {len(data)} bytes and is cut off")
        return entry.iter_unpack(data)

    return SegmentIndexCheck(
        base_offset,
        entries(OFFSET_INDEX, OFFSET_ENTRY),
        entries(TIME_INDEX, TIME_ENTRY),
        on_offset_fault=refuse,
        on_time_fault=refuse,
    )


def _pieces(source: SegmentSource, segment: RemoteSegment, indexes: SegmentIndexCheck) -> Iterator[bytes]:
    """All of the file, once it is certain that these are the records. BadBatch with the offset of the first that is
    not, DamagedIndexError, OSError."""
    file = source.file
    parts: list[memoryview] = []
    size_bytes = 0
    next_offset = segment.start_offset
    try:
        for batch in scan(file, 0, segment.size_bytes, verify=True):
            header = batch.header
            if not next_offset <= header.base_offset <= header.last_offset <= segment.end_offset:
                fault = f"offsets {header.base_offset} to {header.last_offset} are not where they belong"
                raise BadBatch(f"{file.path} at {batch.position}: {fault}", batch.position)
            epoch = segment.epoch_of(header.base_offset)
            if epoch is not None and header.partition_leader_epoch not in (epoch, NO_LEADER_EPOCH):
                fault = f"leader epoch {header.partition_leader_epoch} at offset {header.base_offset} is not {epoch}"
                raise BadBatch(f"{file.path} at {batch.position}: {fault}", batch.position)
            next_offset = header.next_offset
            indexes.add(batch.position, header)
            parts.append(batch.data)
            size_bytes += header.size_bytes
            if size_bytes >= READ_BYTES:
                yield b"".join(parts)
                parts, size_bytes = [], 0
        if next_offset <= segment.end_offset:
            raise BadBatch(f"{file.path} ends at offset {next_offset}, not {segment.end_offset}", segment.size_bytes)
    except BadBatch as bad:
        bad.offset = next_offset
        raise
    indexes.end(interval_bytes=source.index_interval_bytes)
    yield b"".join(parts)
