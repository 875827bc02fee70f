"""Which neighbouring segments become one, so that what compaction leaves are not ever smaller segments.

Kafka: `Cleaner.groupSegmentsBySize`.
"""

from ..log.offset_index import MAX_RELATIVE_OFFSET
from ..log.rules.closed_segment import ClosedSegment
from .rules.job import CompactionJob
from .sources import Sources


def group_segments(sources: Sources, job: CompactionJob, cleaned_end: int) -> list[tuple[list[ClosedSegment], int]]:
    """Those that begin below `cleaned_end`, and where the next one begins behind each group. A group is at most a
    segment large, its indexes too, if nothing goes."""
    config = job.config
    limits = config.segment_bytes, config.segment_index_bytes, config.segment_index_bytes
    groups: list[tuple[list[ClosedSegment], int]] = []
    sizes = (0, 0, 0)
    for segment, next_base in sources.with_ends():
        if segment.base_offset >= cleaned_end:
            break
        own = (segment.size_bytes, *sources.index_sizes(segment))
        together = sizes[0] + own[0], sizes[1] + own[1], sizes[2] + own[2]
        if (
            groups
            and all(size <= limit for size, limit in zip(together, limits, strict=True))
            and next_base - 1 - groups[-1][0][0].base_offset <= MAX_RELATIVE_OFFSET
        ):
            groups[-1] = [*groups[-1][0], segment], next_base
            sizes = together
        else:
            groups.append(([segment], next_base))
            sizes = own
    return groups
