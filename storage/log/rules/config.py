"""Settings of one partition's log: the topic configs that storage obeys, under Kafka's names with underscores.

A log holds one `LogConfig` and may be given another at any time (`Log.config`). Values are checked where they are set
(`quorum/configs`), not here.
"""

from dataclasses import dataclass, field
from typing import Final

from ....protocol.compression import GZIP_DEFAULT_LEVEL, LZ4_DEFAULT_LEVEL, ZSTD_DEFAULT_LEVEL, Compression

# Kafka's "no limit" for times and counts.
MAX_INT64: Final = 2**63 - 1
# Of `local.retention.*`.
_AS_RETENTION: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Kafka's defaults. Sizes are bytes, times milliseconds; -1 is no limit where Kafka allows it."""

    # Roll the active segment before it would grow past this. Small: many files; large: coarse retention, slow recovery.
    segment_bytes: int = 1024 * 1024 * 1024
    # Roll once the newest timestamp is this far from the first of the segment, less a random part of segment_jitter_ms.
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    # Roll when an index of the segment would grow past this: 8 bytes an offset entry, 12 bytes a time entry.
    segment_index_bytes: int = 10 * 1024 * 1024
    # One index entry for at least this many bytes of log: what a read may have to walk to find its offset.
    index_interval_bytes: int = 4096

    # Sync after this many records, or this long after the first unsynced one. 1: acknowledge only what is synced.
    flush_messages: int = MAX_INT64
    flush_ms: int = MAX_INT64

    # "delete" (retention), "compact", both, or none.
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1

    # Tiered storage (KIP-405): closed segments go to the tier, and then leave this disk by `local_retention_*`, where
    # -2 means `retention_*`. With `remote_log_copy_disable` none is copied any more, what is up there stays readable
    # (KIP-950). `remote_log_delete_on_disable` is what must be said to switch it off: the tier's copies are deleted.
    remote_storage_enable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False

    # How long a removed file stays under the name `….deleted`, for reads under way.
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_INT64
    min_cleanable_dirty_ratio: float = 0.5

    # The largest batch that a client may produce, after recompression too.
    max_message_bytes: int = 1024 * 1024 + 12
    # "producer" keeps what the client chose; else "uncompressed", "gzip", "snappy", "lz4" or "zstd" is stored.
    compression_type: str = "producer"
    # Of what this node compresses: other compressions than the producer's, and what compaction leaves (KIP-390).
    compression_gzip_level: int = GZIP_DEFAULT_LEVEL
    compression_lz4_level: int = LZ4_DEFAULT_LEVEL
    compression_zstd_level: int = ZSTD_DEFAULT_LEVEL
    # "CreateTime" keeps the client's timestamps, "LogAppendTime" stores the broker's.
    message_timestamp_type: str = "CreateTime"
    # How far before and after the broker's clock a CreateTime timestamp may lie (KIP-937).
    message_timestamp_before_max_ms: int = MAX_INT64
    message_timestamp_after_max_ms: int = 3_600_000

    # With acks=all, the in-sync replicas that must have a batch.
    min_insync_replicas: int = 1

    # How old the active segment becomes; with compaction, at most as old as a record may be that is not compacted.
    roll_ms: int = field(init=False)

    def __post_init__(self) -> None:
        roll_ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms
        object.__setattr__(self, "roll_ms", roll_ms)

    @property
    def copies_to_tier(self) -> bool:
        return self.remote_storage_enable and not self.remote_log_copy_disable

    @property
    def disk_retention_ms(self) -> int:
        """How old what stays on this disk may be; -1 is no limit."""
        if self.copies_to_tier and self.local_retention_ms != _AS_RETENTION:
            return self.local_retention_ms
        return self.retention_ms

    @property
    def disk_retention_bytes(self) -> int:
        """How large what stays on this disk may be; -1 is no limit."""
        if self.copies_to_tier and self.local_retention_bytes != _AS_RETENTION:
            return self.local_retention_bytes
        return self.retention_bytes

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes_by_retention(self) -> bool:
        return "delete" in self.cleanup_policy

    def level_of(self, compression: int) -> int | None:
        """None for a compression that has no levels."""
        match compression:
            case Compression.GZIP:
                return self.compression_gzip_level
            case Compression.LZ4:
                return self.compression_lz4_level
            case Compression.ZSTD:
                return self.compression_zstd_level
            case _:
                return None
