"""The compaction of logs."""

from __future__ import annotations

from typing import Final

from .metric import own, value

CLEANER: Final = "kafka.log:type=LogCleaner,name="
MANAGER: Final = "kafka.log:type=LogCleanerManager,name="

DIRTY: Final = value(
    f"{MANAGER}max-dirty-percent", "Bytes not compacted yet of the dirtiest compacted log, in percent."
)
SINCE_LOOK: Final = value(f"{MANAGER}time-since-last-run-ms", "Milliseconds since the last look for a log to compact.")
UNCLEANABLE: Final = value(
    f"{MANAGER}uncleanable-partitions-count", "Logs that cannot be compacted: the node's log says why.", "logDirectory"
)
UNCLEANABLE_BYTES: Final = value(f"{MANAGER}uncleanable-bytes", "Bytes of these logs.", "logDirectory")
RECOPY: Final = value(
    f"{CLEANER}cleaner-recopy-percent", "Bytes that the last compaction has written, in percent of those it has read."
)
MAP_USE: Final = value(
    f"{CLEANER}max-buffer-utilization-percent",
    "What the keys of the last compaction took of log.cleaner.dedupe.buffer.size, in percent.",
)
SECONDS: Final = value(f"{CLEANER}max-clean-time-secs", "Seconds that the last compaction took.")
DELAY: Final = value(
    f"{CLEANER}max-compaction-delay-secs",
    "By how much a record is not compacted within max.compaction.lag.ms, at most.",
)
COMPACTIONS: Final = own("counter", "penstock_compactions_total", "Compactions that have ended.")
READ_BYTES: Final = own("counter", "penstock_compaction_read_bytes_total", "Bytes that compactions have read.")
WRITTEN_BYTES: Final = own("counter", "penstock_compaction_written_bytes_total", "Bytes that compactions have written.")
REMOVED: Final = own("counter", "penstock_compaction_removed_records_total", "Records that compactions have removed.")
