"""What one compaction is asked, and what it answers: all that passes between the owner of a log and who compacts it."""

from collections.abc import Mapping

from msgspec import Struct

from ...log.rules.aborted_transaction import AbortedTransaction
from ...log.rules.closed_segment import ClosedSegment
from ...log.rules.config import LogConfig
from .batch_filter import LastBatch


class CompactionJob(Struct, frozen=True, kw_only=True):
    directory: str
    """The partition's folder."""
    segments: tuple[ClosedSegment, ...]
    """All below `end_offset`, in offset order."""
    dirty_offset: int
    """What lies below was compacted before."""
    end_offset: int
    """Where the part ends that may be compacted: there a segment begins, and all transactions below are complete."""
    aborted: tuple[AbortedTransaction, ...]
    """Those that began below `end_offset` and whose markers lie at or behind it."""
    last_batches: Mapping[int, LastBatch]
    """By producer id, of the producers that the partition remembers."""
    config: LogConfig
    now_ms: int
    """By the wall clock."""
    map_bytes: int
    """For keys and offsets: see `LatestOffsets`."""


class CleanedSegment(Struct, frozen=True, kw_only=True):
    """One that takes the place of others. Its files are synced, under names that end in `….cleaned`."""

    base_offset: int
    size_bytes: int
    replaced: tuple[int, ...]
    """The base offsets of these, the first of which is its own."""


class CompactionFigures(Struct, frozen=True, kw_only=True):
    """What a compaction has done. Kafka: `CleanerStats`."""

    map_read_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    read_records: int = 0
    kept_records: int = 0
    key_count: int = 0
    map_used_bytes: int = 0


class Compacted(Struct, frozen=True, kw_only=True):
    """The end of a compaction."""

    end_offset: int
    """What lies below is compacted; lower than asked for when the keys were too many for one pass."""
    figures: CompactionFigures
