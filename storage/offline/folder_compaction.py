"""Compaction of a partition's folder that no node uses: the same passes, and the same swaps, as a node's."""

from collections.abc import Callable

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...protocol.structs import replace
from ..compaction.cleanable import find_cleanable, plan_compaction
from ..compaction.compaction import compact
from ..compaction.rules.job import Compacted
from ..directories.rules.checkpoints import CLEANER_OFFSETS
from ..disk.files import Files
from ..disk.rules.throttle import Unthrottled
from ..log.log import Log
from ..log.rules.config import LogConfig
from ..log.rules.file_names import DELETED
from .closed_directory import ClosedPartition, OfflineError, check_intact, high_watermark_of, open_closed


class FolderSize(Struct, frozen=True, kw_only=True):
    segments: int
    bytes: int


class FolderCompaction(Struct, frozen=True, kw_only=True):
    """What was done, or would be."""

    before: FolderSize
    after: FolderSize
    dirty_offset: int
    end_offset: int
    """Compacted was [dirty_offset, end_offset), by what lies in it also what is below."""
    high_watermark: int
    read_records: int
    kept_records: int
    keys: int
    passes: int


def compact_folder(
    files: Files,
    partition: ClosedPartition,
    config: LogConfig,
    *,
    high_watermark: int | None,
    clock_ms: Callable[[], int],
    map_bytes: int,
    is_trial: bool,
) -> FolderCompaction:
    """Compact all but the last segment. `high_watermark` takes the place of the one in the log directory's checkpoint.

    An end anywhere leaves what the next start, or call, finishes or undoes. OfflineError, CorruptData; OSError.
    """
    end_offset = check_intact(files, partition.path)
    known = high_watermark_of(partition) if high_watermark is None else high_watermark
    if known is None:
        raise OfflineError(
            f"It is not known up to which offset {partition.path} is committed: what lies above may be cut off by a "
            f"leader, and must replace nothing. Say it with --high-watermark."
        )
    log = open_closed(files, partition, config, end_offset=end_offset, now_ms=clock_ms())
    try:
        if log.damage is not None:
            raise OfflineError(f"{partition.path} is damaged at offset {log.damage.offset}: {log.damage.reason}")
        result = _compact(files, log, partition, min(known, end_offset), clock_ms, map_bytes, is_trial)
        if not is_trial:
            log.flush()
            log.close()
        return result
    finally:
        log.close_files()


def _compact(
    files: Files,
    log: Log,
    partition: ClosedPartition,
    high_watermark: int,
    clock_ms: Callable[[], int],
    map_bytes: int,
    is_trial: bool,
) -> FolderCompaction:
    before = after = FolderSize(segments=log.segment_count, bytes=log.size_bytes)
    cleaned_end = first_dirty = partition.checkpointed(CLEANER_OFFSETS)
    read_records = kept_records = keys = passes = 0
    while True:
        now_ms = clock_ms()
        cleanable = find_cleanable(
            log, cleaned_end=cleaned_end, stable_offset=log.last_stable_offset(high_watermark), now_ms=now_ms
        )
        first_dirty = cleanable.dirty_offset if passes == 0 else first_dirty
        if cleanable.dirty_bytes == 0:
            break
        passes += 1
        job = plan_compaction(log, cleanable, now_ms=now_ms, map_bytes=map_bytes)
        sizes = {segment.base_offset: segment.size_bytes for segment in job.segments}
        for result in compact(files, job, Unthrottled(), is_trial=is_trial):
            if isinstance(result, Compacted):
                cleaned_end = result.end_offset
                read_records += result.figures.read_records
                kept_records += result.figures.kept_records
                keys += result.figures.key_count
                continue
            after = replace(
                after,
                segments=after.segments - len(result.replaced) + 1,
                bytes=after.bytes - sum(sizes[base] for base in result.replaced) + result.size_bytes,
            )
            if is_trial:
                continue
            for _ in log.swap.steps(
                result.base_offset, result.size_bytes, result.replaced, log.config, clock_ms=clock_ms
            ):
                files.sync_directory(log.directory)
            _remove_deleted(files, log.directory)
        if is_trial:
            # A second pass would read what the first one has written.
            break
        if partition.directory is not None and cleaned_end is not None:
            offsets = {**partition.directory.checkpointed[CLEANER_OFFSETS], partition.key: cleaned_end}
            partition.directory.write_offsets(CLEANER_OFFSETS, offsets)
    assert first_dirty is not None, "there was a look at the log"
    if not is_trial and (after.segments, after.bytes) != (log.segment_count, log.size_bytes):
        raise CorruptData(f"{log.directory} has {log.size_bytes} bytes in {log.segment_count} segments, not {after}")
    return FolderCompaction(
        before=before,
        after=after,
        dirty_offset=first_dirty,
        end_offset=first_dirty if cleaned_end is None else max(cleaned_end, first_dirty),
        high_watermark=high_watermark,
        read_records=read_records,
        kept_records=kept_records,
        keys=keys,
        passes=passes,
    )


def _remove_deleted(files: Files, directory: str) -> None:
    """No reader has them open."""
    for name in files.list_directory(directory):
        if name.endswith(DELETED):
            files.remove(f"{directory}/{name}")
