"""The compaction of logs. Kafka: `LogCleaner`, `LogCleanerManager`."""

from __future__ import annotations

from collections.abc import Callable

from ...storage.directories.log_cleaner import LogCleaner
from ...storage.directories.log_directories import LogDirectories
from .rules import cleaner_metrics as metrics
from .rules.metric import Reading, read
from .rules.readings import Readings

PERCENT = 100
MS_PER_S = 1000


class CleanerReader:
    def __init__(self, cleaner: LogCleaner, directories: LogDirectories, now_s: Callable[[], float]) -> None:
        """`now_s` is the loop's clock."""
        self._cleaner = cleaner
        self._directories = directories
        self._now_s = now_s

    def __call__(self) -> Readings:
        figures = self._cleaner.figures
        looked_s = self._now_s() if figures.looked_s is None else figures.looked_s
        yield read(metrics.DIRTY, int(PERCENT * figures.dirty_ratio_max))
        yield read(metrics.SINCE_LOOK, int(MS_PER_S * (self._now_s() - looked_s)))
        yield read(metrics.RECOPY, int(PERCENT * figures.recopy_ratio))
        yield read(metrics.MAP_USE, int(PERCENT * figures.map_use_ratio))
        yield read(metrics.SECONDS, int(figures.seconds))
        yield read(metrics.DELAY, figures.overdue_ms_max // MS_PER_S)
        yield read(metrics.COMPACTIONS, figures.compaction_count)
        yield read(metrics.READ_BYTES, figures.read_bytes)
        yield read(metrics.WRITTEN_BYTES, figures.written_bytes)
        yield read(metrics.REMOVED, figures.removed_records)
        uncleanable = {(one.path,): self._cleaner.uncleanable_in(one) for one in self._directories}
        yield Reading(metrics.UNCLEANABLE, [(labels, len(logs)) for labels, logs in uncleanable.items()])
        sizes = [(labels, sum(log.size_bytes for log in logs)) for labels, logs in uncleanable.items()]
        yield Reading(metrics.UNCLEANABLE_BYTES, sizes)
