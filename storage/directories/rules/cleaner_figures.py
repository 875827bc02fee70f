"""What the compaction of a node's logs has done, for its metrics."""

from msgspec import Struct

from ...compaction.rules.job import CompactionFigures


class CleanerFigures(Struct):
    """Kafka: `CleanerStats`, `PreCleanStats`, and the gauges of `LogCleaner` and `LogCleanerManager`."""

    looked_s: float | None = None
    """When it last looked for a log to compact, by the loop's clock."""
    dirty_ratio_max: float = 0.0
    """Of the dirtiest log, at that time."""
    overdue_ms_max: int = 0
    """How long at most a record had waited longer than `max.compaction.lag.ms`, at that time."""

    # Of the last compaction.
    seconds: float = 0.0
    recopy_ratio: float = 0.0
    """Bytes written for each that was read."""
    map_use_ratio: float = 0.0
    """Of the memory for keys and offsets."""

    # Since the start.
    compaction_count: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    removed_records: int = 0

    def add(self, figures: CompactionFigures, seconds: float, map_bytes: int) -> None:
        self.seconds = seconds
        self.recopy_ratio = figures.written_bytes / figures.read_bytes if figures.read_bytes else 0.0
        self.map_use_ratio = min(figures.map_used_bytes / map_bytes, 1.0)
        self.compaction_count += 1
        self.read_bytes += figures.map_read_bytes + figures.read_bytes
        self.written_bytes += figures.written_bytes
        self.removed_records += figures.read_records - figures.kept_records
