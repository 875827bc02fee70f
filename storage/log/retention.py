"""Which segments may go: those before the log start offset, beyond `retention.bytes` and past `retention.ms`.

Of a log whose segments are copied to a tier, those beyond `local.retention.*` go, and none that the tier does not have.
"""

from collections.abc import Callable, Sequence

from .rules.config import LogConfig
from .segment import Segment


def count_breached_segments(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    tiered_end_offset: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments may be deleted.

    Never one with an offset at or above the high watermark, so that the log start cannot pass it, and never an empty
    active segment. The active segment may be among them: then the log must roll first. Where segments are copied to a
    tier, retention stops at `tiered_end_offset`: the end of what can be read there and is synced here.
    """
    limit = high_watermark

    def advance(count: int, is_breached: Callable[[Segment, int | None], bool]) -> int:
        """On from `count` while the limit is breached; it is told a segment and where the next begins, if one does."""
        while count < len(segments):
            segment = segments[count]
            next_base = segments[count + 1].base_offset if count + 1 < len(segments) else None
            if next_base is None and segment.size_bytes == 0:
                break
            if limit < (log_end_offset if next_base is None else next_base):
                break
            if not is_breached(segment, next_base):
                break
            count += 1
        return count

    count = advance(0, lambda _, next_base: next_base is not None and next_base <= log_start_offset)
    if not config.deletes_by_retention:
        return count
    if config.copies_to_tier:
        limit = min(high_watermark, tiered_end_offset)
    retention_bytes, retention_ms = config.disk_retention_bytes, config.disk_retention_ms
    if retention_bytes >= 0:
        surplus = sum(segment.size_bytes for segment in segments[count:]) - retention_bytes

        def is_beyond_size(segment: Segment, _: int | None) -> bool:
            nonlocal surplus
            surplus -= segment.size_bytes
            return surplus >= 0

        count = advance(count, is_beyond_size)
    if retention_ms >= 0:
        count = advance(count, lambda segment, _: now_ms - segment.largest_timestamp > retention_ms)
    return count
