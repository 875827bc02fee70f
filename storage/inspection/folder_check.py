"""All files of a partition's folder, and of a log directory: whether they agree with each other.

Nothing is written, and a node may run meanwhile: a folder whose files were exchanged while it was read is read again.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ...protocol.errors import ConfigError, CorruptData
from ..directories.rules.checkpoints import (
    CHECKPOINTS,
    RECOVERY_POINTS,
    TopicPartition,
    decode_offsets,
)
from ..directories.rules.folder_names import FolderKind, parse_folder_name
from ..directories.rules.meta_properties import META_PROPERTIES, decode_meta_properties
from ..disk.files import Files
from ..log.leader_epochs import decode_leader_epochs
from ..log.partition_metadata import decode_partition_metadata
from ..log.producer_snapshots import decode_snapshot
from ..log.rules.file_names import (
    CLEANED,
    DELETED,
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    SWAP,
    offsets_with,
    segment_file,
)
from .rules.batch_history import BatchHistory, epoch_contradictions, snapshot_contradictions
from .rules.report import Report
from .segment_check import SegmentCheck

_TRIES: Final = 3
_NOT_TOPICS: Final = frozenset({"__cluster_metadata-0"})


def is_partition_folder(files: Files, path: str) -> bool:
    return bool(offsets_with(files.list_directory(path), LOG)) or files.exists(f"{path}/{PARTITION_METADATA}")


def partition_folders(files: Files, path: str) -> list[str]:
    """The names of those in a log directory, but for those that are about to be removed or were moved aside."""
    found = []
    for name in files.list_directory(path):
        folder = parse_folder_name(name)
        if (
            folder is not None
            and folder.kind is FolderKind.LOG
            and name not in _NOT_TOPICS
            and files.is_directory(f"{path}/{name}")
        ):
            found.append(name)
    return found


def check_log_directory(files: Files, path: str, report: Report, *, opens_records: bool = True) -> None:
    """OSError."""
    meta = f"{path}/{META_PROPERTIES}"
    if files.exists(meta):
        try:
            decode_meta_properties(files.read(meta), meta)
        except ConfigError as error:
            report.find(meta, str(error))
    # Before the logs: while a node runs these go on.
    recovery_points: Mapping[TopicPartition, int] = {}
    for name in CHECKPOINTS:
        checkpoint = f"{path}/{name}"
        if files.exists(checkpoint):
            try:
                offsets = decode_offsets(files.read(checkpoint), checkpoint)
            except CorruptData as error:
                report.find(checkpoint, str(error))
            else:
                recovery_points = offsets if name == RECOVERY_POINTS else recovery_points
    for name in partition_folders(files, path):
        end_offset = check_folder(files, f"{path}/{name}", report, opens_records=opens_records)
        folder = parse_folder_name(name)
        assert folder is not None, "it was parsed before"
        recovery_point = recovery_points.get((folder.topic, folder.partition), 0)
        if end_offset is not None and end_offset < recovery_point:
            report.find(
                f"{path}/{name}",
                f"the log ends at offset {end_offset}, and was synced up to {recovery_point}: batches are lost",
            )


def check_folder(files: Files, path: str, report: Report, *, opens_records: bool = True) -> int | None:
    """The log end offset; None without a segment, or for a folder that is gone. OSError."""
    for number in range(_TRIES):
        attempt = Report()
        before = None
        with suppress(FileNotFoundError):
            before = _stamp(files, path)
            end_offset = _check_once(files, path, attempt, opens_records=opens_records)
            if not attempt.findings or before == _stamp(files, path):
                report.take(attempt)
                return end_offset
        if not files.exists(path):
            report.note(path, "the folder went away while it was read")
            return None
        if number == _TRIES - 1:
            report.take(attempt)
            report.note(path, "the files in the folder were exchanged while they were read: check it again")
    return None


def _check_once(files: Files, path: str, report: Report, *, opens_records: bool) -> int | None:
    names = files.list_directory(path)
    bases = offsets_with(names, LOG)
    snapshots = set(offsets_with(names, PRODUCER_SNAPSHOT))
    report.totals.folders += 1
    history = BatchHistory()
    for number, base_offset in enumerate(bases):
        if base_offset in snapshots:
            _check_snapshot(files, path, base_offset, history, report)
        next_base = bases[number + 1] if number + 1 < len(bases) else None
        SegmentCheck(files, path, base_offset, next_base=next_base, opens_records=opens_records).run(history, report)
    end_offset = max(history.next_offset or 0, bases[-1]) if bases else None
    for offset in sorted(snapshots.difference(bases)):
        # Those between segments are of segments that were compacted into one.
        is_at_end = offset == end_offset
        _check_snapshot(files, path, offset, history if is_at_end else BatchHistory(), report)
        if end_offset is not None and offset > end_offset:
            report.note(segment_file(path, offset, PRODUCER_SNAPSHOT), f"the log ends before, at {end_offset}")
    report.totals.open_transactions += len(history.open_transactions)
    _check_epochs(files, path, names, history, report)
    if PARTITION_METADATA in names:
        metadata = f"{path}/{PARTITION_METADATA}"
        try:
            if decode_partition_metadata(files.read(metadata), metadata) is None:
                report.note(metadata, "it was not synced before a loss of power: a start writes it again")
        except CorruptData as error:
            report.find(metadata, str(error))
    for suffix in INDEX_SUFFIXES:
        for offset in offsets_with(names, suffix):
            if offset not in bases:
                report.note(segment_file(path, offset, suffix), "there is no segment that it belongs to")
    for name in names:
        if name.endswith((CLEANED, SWAP, DELETED)):
            report.note(f"{path}/{name}", "it is being removed or exchanged, or the next start does that")
    return end_offset


def _check_snapshot(files: Files, path: str, offset: int, history: BatchHistory, report: Report) -> None:
    snapshot = segment_file(path, offset, PRODUCER_SNAPSHOT)
    try:
        entries = decode_snapshot(files.read(snapshot), snapshot).entries
    except CorruptData as error:
        report.find(snapshot, str(error))
        return
    for sentence in snapshot_contradictions(entries, history, offset):
        report.find(snapshot, sentence)


def _check_epochs(files: Files, path: str, names: list[str], history: BatchHistory, report: Report) -> None:
    checkpoint = f"{path}/{LEADER_EPOCH_CHECKPOINT}"
    if LEADER_EPOCH_CHECKPOINT not in names:
        if history.epochs and history.epochs[-1][0] >= 0:
            report.note(checkpoint, "it is missing: a start makes it from the batches")
        return
    try:
        entries = decode_leader_epochs(files.read(checkpoint), checkpoint)
    except CorruptData as error:
        report.find(checkpoint, str(error))
        return
    for sentence in epoch_contradictions(entries, history.epochs):
        report.find(checkpoint, sentence)


def _stamp(files: Files, path: str) -> dict[str, int]:
    """What a swap, a truncation or a roll changes: names, and sizes of what is not appended to."""
    names = [name for name in files.list_directory(path) if not name.endswith((CLEANED, SWAP, DELETED))]
    bases = offsets_with(names, LOG)
    active = f"{bases[-1]:020d}" if bases else ""
    return {name: 0 if name.startswith(active) and active else files.size(f"{path}/{name}") for name in names}
