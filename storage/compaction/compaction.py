"""One pass over a log's inactive segments: they are read, and new ones written beside them; nothing else is changed.

    latest offsets of the keys in the dirty part     of as many of its batches as `map_bytes` are enough for
    groups of neighbours that fit into one segment
    each group → one segment `….cleaned`, synced     but for single segments of which all would be kept

Kafka: `Cleaner`. The owner of the log puts the new segments into the places of the old ones, group after group, the
first of them first: a tombstone is given its delete horizon only when what it deletes is gone for good.

Every batch that is read must have its CRC, or damage would be given a new one.
"""

from collections.abc import Iterator, Sequence

from ...protocol.batches import read_header
from ..disk.files import Files
from ..disk.rules.throttle import Throttle
from ..log.rules.closed_segment import ClosedSegment
from ..log.rules.file_names import LOG, segment_file
from .dirty_keys import find_latest_offsets
from .rules.batch_filter import BatchFilter
from .rules.cleaned_transactions import CleanedTransactions
from .rules.job import CleanedSegment, Compacted, CompactionFigures, CompactionJob
from .segment_groups import group_segments
from .segment_writer import CleanedWriter, MeasuringWriter, SegmentWriter
from .sources import Sources


def compact(
    files: Files, job: CompactionJob, throttle: Throttle, *, is_trial: bool = False
) -> Iterator[CleanedSegment | Compacted]:
    """Do what `job` asks: each segment as soon as it is written, in offset order, and at the end how far this came.

    The caller puts a segment into its place before it asks for the next one, so that no more room is taken than one
    needs. CorruptData names the first batch or index that is not intact; OSError. Then files that end in
    `….cleaned` may be left, which the caller removes, or the next start. With `is_trial` nothing is written, and the
    segments are those that would be.
    """
    sources = Sources(files, job, throttle)
    aborted = [*sources.aborted_transactions(), *job.aborted]
    latest = find_latest_offsets(sources, job, aborted)
    map_read_bytes = sources.read_bytes
    rewriter = _Rewriter(
        files,
        job,
        throttle,
        sources,
        BatchFilter(
            latest,
            CleanedTransactions(aborted),
            job.last_batches,
            now_ms=job.now_ms,
            config=job.config,
        ),
        is_trial=is_trial,
    )
    for group, next_base in group_segments(sources, job, latest.end_offset):
        cleaned = rewriter.rewrite(group, next_base)
        if cleaned is not None:
            yield cleaned
    yield Compacted(
        end_offset=latest.end_offset,
        figures=CompactionFigures(
            map_read_bytes=map_read_bytes,
            read_bytes=sources.read_bytes - map_read_bytes,
            written_bytes=rewriter.written_bytes,
            read_records=rewriter.read_records,
            kept_records=rewriter.kept_records,
            key_count=latest.key_count,
            map_used_bytes=latest.size_bytes,
        ),
    )


class _Rewriter:
    def __init__(
        self,
        files: Files,
        job: CompactionJob,
        throttle: Throttle,
        sources: Sources,
        batch_filter: BatchFilter,
        *,
        is_trial: bool,
    ) -> None:
        self._is_trial = is_trial
        self._files = files
        self._job = job
        self._throttle = throttle
        self._sources = sources
        self._filter = batch_filter
        self.written_bytes = 0
        self.read_records = 0
        self.kept_records = 0

    def rewrite(self, group: Sequence[ClosedSegment], next_base: int) -> CleanedSegment | None:
        """The segment that takes the place of the group, behind which one begins at `next_base`; None for a single one
        that stays as it is."""
        transactions = self._filter.transactions
        self._filter.segment_end = next_base
        # Of a single segment nothing is written before the first batch that does not stay as it is.
        writer = self._writer(group) if len(group) > 1 else None
        try:
            for segment in group:
                for batch in self._sources.batches(segment):
                    header = batch.header
                    kept = self._filter.keep(batch)
                    self.read_records += header.record_count
                    self.kept_records += kept.record_count
                    data = batch.data if kept.data is None else kept.data
                    if kept.data is not None and writer is None:
                        writer = self._writer(group)
                        for unchanged in self._sources.batches(segment, 0, batch.position):
                            writer.add(unchanged.data, unchanged.header)
                    if writer is not None and len(data):
                        writer.add(data, header if kept.data is None else read_header(data, 0))
            retained, transactions.retained = transactions.retained, []
            if writer is None:
                return None
            writer.add_aborted(retained)
            modified_ms = self._files.modified_ms(segment_file(self._job.directory, group[-1].base_offset, LOG))
            size_bytes = writer.finish(modified_ms)
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
        self.written_bytes += size_bytes
        return CleanedSegment(
            base_offset=group[0].base_offset,
            size_bytes=size_bytes,
            replaced=tuple(segment.base_offset for segment in group),
        )

    def _writer(self, group: Sequence[ClosedSegment]) -> CleanedWriter:
        if self._is_trial:
            return MeasuringWriter()
        job = self._job
        return SegmentWriter(
            self._files, job.directory, group[0].base_offset, config=job.config, throttle=self._throttle
        )
