"""What lies in the files of a log, row after row. Nothing is written; a node may run meanwhile.

Kafka: `DumpLogSegments`.
"""

from collections.abc import Iterator

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...protocol.records import read_records
from ..directories.rules.checkpoints import decode_offsets
from ..directories.rules.meta_properties import uuid_text
from ..disk.files import Files
from ..log.leader_epochs import decode_leader_epochs
from ..log.partition_metadata import decode_partition_metadata
from ..log.producer_snapshots import decode_snapshot
from ..log.rules.control_records import read_end_transaction_marker
from ..log.rules.file_names import (
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    base_offset_of,
    offsets_with,
    segment_file,
)
from ..log.rules.record_batch import StoredBatch
from ..log.rules.record_validation import OPENED_BYTES_MAX
from ..log.transaction_index import TransactionIndex
from .index_entries import read_offset_entries, read_time_entries
from .rules.dump_rows import Decoder, Row, aborted_row, batch_row, marker_row, producer_row, record_row
from .rules.report import Report
from .segment_check import read_batches

_CHECKPOINT_END = "-offset-checkpoint"


class NotOfALog(Exception):  # noqa: N818 - a sentence for the one who asked
    """There is no such file or folder, or it does not belong to a log."""


class DumpOptions(Struct, frozen=True, kw_only=True):
    with_records: bool = False
    start_offset: int = 0
    end_offset: int | None = None
    """Exclusive. Batches are shown that have an offset in the range, and of these the records in it."""
    decode: Decoder | None = None
    with_all_files: bool = False
    """Of a folder: indexes, snapshots and checkpoints too."""


def dump_rows(files: Files, path: str, options: DumpOptions, report: Report) -> Iterator[Row]:
    """Of a file, or of all segments of a partition's folder. What cannot be read is told in `report`.

    NotOfALog, OSError.
    """
    if not files.exists(path):
        raise NotOfALog(f"{path} does not exist.")
    if not files.is_directory(path):
        yield from _dump_file(files, path, options, report, is_last=True)
        return
    names = files.list_directory(path)
    bases = offsets_with(names, LOG)
    if not bases:
        raise NotOfALog(f"{path} is no folder of a partition: it has no segment.")
    chosen = [segment_file(path, base_offset, LOG) for base_offset in _in_range(bases, options)]
    if options.with_all_files:
        ends = (*INDEX_SUFFIXES, LOG, PRODUCER_SNAPSHOT)
        others = [name for name in names if name in (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT)]
        chosen = [f"{path}/{name}" for name in others]
        chosen += [f"{path}/{name}" for name in names if name.endswith(ends) and base_offset_of(name) is not None]
    for file in chosen:
        yield {"kind": "file", "path": file}
        yield from _dump_file(files, file, options, report, is_last=file == segment_file(path, bases[-1], LOG))


def _in_range(bases: list[int], options: DumpOptions) -> Iterator[int]:
    for number, base_offset in enumerate(bases):
        is_before = number + 1 < len(bases) and bases[number + 1] <= options.start_offset
        if not is_before and (options.end_offset is None or base_offset < options.end_offset):
            yield base_offset


def _dump_file(files: Files, path: str, options: DumpOptions, report: Report, *, is_last: bool) -> Iterator[Row]:
    name = path.rpartition("/")[2]
    base_offset = base_offset_of(name)
    try:
        if base_offset is not None and LOG in name:
            yield from _dump_log(files, path, options, report, is_last=is_last)
        elif base_offset is not None and name.endswith(OFFSET_INDEX):
            for offset, position in read_offset_entries(files, path, base_offset, report):
                yield {"kind": "offset_entry", "offset": offset, "position": position}
        elif base_offset is not None and name.endswith(TIME_INDEX):
            for timestamp, offset in read_time_entries(files, path, base_offset, report):
                yield {"kind": "time_entry", "timestamp": timestamp, "offset": offset}
        elif name.endswith(TRANSACTION_INDEX):
            yield from map(aborted_row, TransactionIndex(files, path).entries)
        elif name.endswith(PRODUCER_SNAPSHOT):
            snapshot = decode_snapshot(files.read(path), path)
            yield from map(producer_row, snapshot.entries)
            for first_offset, marker_offset in snapshot.completed.items():
                yield {"kind": "completed_transaction", "first_offset": first_offset, "marker_offset": marker_offset}
        elif name == LEADER_EPOCH_CHECKPOINT:
            for epoch, start_offset in decode_leader_epochs(files.read(path), path):
                yield {"kind": "leader_epoch", "leader_epoch": epoch, "start_offset": start_offset}
        elif name == PARTITION_METADATA:
            topic_id = decode_partition_metadata(files.read(path), path)
            yield {"kind": "partition_metadata", "topic_id": None if topic_id is None else uuid_text(topic_id)}
        elif name.endswith(_CHECKPOINT_END):
            for (topic, partition), offset in decode_offsets(files.read(path), path).items():
                yield {"kind": "checkpoint", "topic": topic, "partition": partition, "offset": offset}
        else:
            raise NotOfALog(f"{path} is no file of a log.")
    except CorruptData as error:
        report.find(path, str(error))


def _dump_log(files: Files, path: str, options: DumpOptions, report: Report, *, is_last: bool) -> Iterator[Row]:
    size = files.size(path)
    for batch in read_batches(files.open(path), size, report, is_last=is_last):
        header = batch.header
        if header.last_offset < options.start_offset:
            continue
        if options.end_offset is not None and header.base_offset >= options.end_offset:
            return
        yield batch_row(header, batch.position)
        if options.with_records:
            try:
                yield from _records(batch, options)
            except CorruptData as error:
                report.find(path, str(error), batch.position)


def _records(batch: StoredBatch, options: DumpOptions) -> Iterator[Row]:
    header = batch.header
    if header.is_control and header.has_producer_id:
        marker = read_end_transaction_marker(batch.data, header)
        if marker is not None:
            yield marker_row(header.base_offset, marker)
        return
    for record in read_records(batch.data, header, OPENED_BYTES_MAX):
        if record.offset >= options.start_offset and (options.end_offset is None or record.offset < options.end_offset):
            decoded = None
            if options.decode is not None and not header.is_control:
                decoded = options.decode(record.key, record.value)
            yield record_row(record, decoded)
