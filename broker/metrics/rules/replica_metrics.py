"""Partitions, logs, replication and what waits for it."""

from __future__ import annotations

from typing import Final

from .metric import own, rate, times, value

REPLICAS: Final = "kafka.server:type=ReplicaManager,name="
PARTITION: Final = "kafka.cluster:type=Partition,name="
LOG: Final = "kafka.log:type=Log,name="
OF_PARTITION: Final = ("topic", "partition")

LEADERS: Final = value(f"{REPLICAS}LeaderCount", "Partitions that this node leads.")
PARTITIONS: Final = value(f"{REPLICAS}PartitionCount", "Replicas that this node hosts.")
OFFLINE_REPLICAS: Final = value(
    f"{REPLICAS}OfflineReplicaCount", "Replicas of this node whose log is damaged or whose log directory has failed."
)
UNDER_REPLICATED: Final = value(
    f"{REPLICAS}UnderReplicatedPartitions", "Partitions led here whose ISR lacks a replica."
)
UNDER_MIN_ISR: Final = value(
    f"{REPLICAS}UnderMinIsrPartitionCount", "Partitions led here with fewer in sync than min.insync.replicas."
)
AT_MIN_ISR: Final = value(
    f"{REPLICAS}AtMinIsrPartitionCount", "Partitions led here with as many in sync as min.insync.replicas."
)
REASSIGNING: Final = value(f"{REPLICAS}ReassigningPartitions", "Partitions led here that are being reassigned.")
ISR_SHRINKS: Final = rate(f"{REPLICAS}IsrShrinksPerSec", "ISR shrinks that the controller has accepted.")
ISR_EXPANDS: Final = rate(f"{REPLICAS}IsrExpandsPerSec", "ISR expansions that the controller has accepted.")
FAILED_ISR_UPDATES: Final = rate(f"{REPLICAS}FailedIsrUpdatesPerSec", "AlterPartition proposals that were refused.")
LATE_TRANSACTIONS: Final = value(
    f"{REPLICAS}PartitionsWithLateTransactionsCount",
    "Partitions led here whose oldest transaction is open for 5 minutes longer than transaction.max.timeout.ms allows.",
)
PRODUCER_IDS: Final = value(f"{REPLICAS}ProducerIdCount", "Producer ids that the logs of this node remember.")
QUEUED_ASSIGNMENTS: Final = value(
    "kafka.server:type=AssignmentsManager,name=QueuedReplicaToDirAssignments",
    "Replicas whose log directory the controller has still to be told.",
)

MOVE_LAG: Final = value(
    "kafka.server:type=ReplicaAlterLogDirsManager,name=MaxLag",
    "Offsets that the copy of a log in another log directory lacks, of the one furthest behind.",
)
FAILED_MOVES: Final = value(
    "kafka.server:type=ReplicaAlterLogDirsManager,name=FailedPartitionsCount",
    "Moves of logs to another log directory that cannot go on for now: the node's log says why.",
)
MOVING: Final = own("gauge", "penstock_log_moves_under_way", "Logs that are moved to another log directory.")
MOVED: Final = own("counter", "penstock_log_moves_total", "Logs that were moved to another log directory.")
MOVED_BYTES: Final = own("counter", "penstock_log_moved_bytes_total", "Bytes copied for such moves.")
OFFLINE_DIRECTORIES: Final = value(
    "kafka.log:type=LogManager,name=OfflineLogDirectoryCount", "Log directories that have failed."
)
DIRECTORY_OFFLINE: Final = value(
    "kafka.log:type=LogManager,name=LogDirectoryOffline", "1 for a log directory that has failed.", "logDirectory"
)
CORDONED_DIRECTORIES: Final = value(
    "kafka.log:type=LogManager,name=CordonedLogDirectoryCount", "Log directories that take no new replica."
)
DIRECTORY_CORDONED: Final = value(
    "kafka.log:type=LogManager,name=LogDirectoryCordoned",
    "1 for a log directory that takes no new replica.",
    "logDirectory",
)
FLUSH_TIME: Final = times(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs", "Syncs of logs, each with the files of one group."
)
DISK_FREE: Final = own(
    "gauge", "penstock_log_directory_free_bytes", "Bytes that the disk of a log directory has left.", "logDirectory"
)
DISK_READ: Final = value(
    "kafka.server:type=KafkaServer,name=linux-disk-read-bytes", "Bytes that this process has read from disks."
)
DISK_WRITTEN: Final = value(
    "kafka.server:type=KafkaServer,name=linux-disk-write-bytes", "Bytes that this process has sent to disks."
)
REPAIRS: Final = own(
    "counter", "penstock_replica_repairs_total", "Damaged logs that this node began to repair from their leader."
)
DAMAGED: Final = own("gauge", "penstock_damaged_replicas", "Hosted replicas in whose log damage was found.")

# Per topic and partition, with `metrics.per.partition=true`.
LOG_SIZE: Final = value(f"{LOG}Size", "Bytes of the log.", *OF_PARTITION)
LOG_END: Final = value(f"{LOG}LogEndOffset", "The next offset to be assigned.", *OF_PARTITION)
LOG_START: Final = value(f"{LOG}LogStartOffset", "The first offset that can be read.", *OF_PARTITION)
LOG_SEGMENTS: Final = value(f"{LOG}NumLogSegments", "Segments of the log.", *OF_PARTITION)
RETENTION_PERCENT: Final = value(
    f"{LOG}RetentionSizeInPercent", "Size of the log in percent of retention.bytes, 0 without it.", *OF_PARTITION
)
STABLE_LAG: Final = value(
    f"{PARTITION}LastStableOffsetLag", "Records from the last stable offset to the high watermark.", *OF_PARTITION
)
PARTITION_UNDER_REPLICATED: Final = value(
    f"{PARTITION}UnderReplicated", "1 where this node leads and the ISR lacks a replica.", *OF_PARTITION
)
PARTITION_UNDER_MIN_ISR: Final = value(
    f"{PARTITION}UnderMinIsr", "1 where this node leads and fewer are in sync than needed.", *OF_PARTITION
)
PARTITION_AT_MIN_ISR: Final = value(
    f"{PARTITION}AtMinIsr", "1 where this node leads and as many are in sync as needed.", *OF_PARTITION
)
PARTITION_IN_SYNC: Final = value(
    f"{PARTITION}InSyncReplicasCount", "Size of the ISR; 0 where this node does not lead.", *OF_PARTITION
)
PARTITION_REPLICAS: Final = value(
    f"{PARTITION}ReplicasCount", "Assigned replicas; 0 where this node does not lead.", *OF_PARTITION
)
HIGH_WATERMARK: Final = own(
    "gauge", "penstock_partition_high_watermark", "The first offset that is not committed.", *OF_PARTITION
)
FETCHER_LAG: Final = value(
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
    "Committed records that this follower lacks.",
    "clientId",
    *OF_PARTITION,
)

# Fetching from leaders.
MAX_LAG: Final = value(
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag",
    "The most committed records that a follower of this node lacks.",
    "clientId",
)
FAILED_PARTITIONS: Final = value(
    "kafka.server:type=ReplicaFetcherManager,name=FailedPartitionsCount",
    "Partitions that cannot be fetched from their leaders now.",
    "clientId",
)
LEADER_LAG: Final = own(
    "gauge",
    "penstock_fetcher_max_lag",
    "The most committed records that a follower lacks, by the leader that it fetches from.",
    "leader",
)
FETCHED_PARTITIONS: Final = own(
    "gauge", "penstock_fetcher_partitions", "Partitions that are fetched, by their leader.", "leader"
)

# Fetch sessions and purgatories.
SESSIONS: Final = value(
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions", "Fetch sessions (KIP-227)."
)
SESSION_PARTITIONS: Final = value(
    "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached", "Partitions of fetch sessions."
)
SESSION_EVICTIONS: Final = rate(
    "kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec",
    "Fetch sessions that made room for others.",
)
PURGATORY_SIZE: Final = value(
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize", "Requests that wait.", "delayedOperation"
)
DELAYED_OPERATIONS: Final = value(
    "kafka.server:type=DelayedOperationPurgatory,name=NumDelayedOperations",
    "Requests that wait: none is kept that has completed.",
    "delayedOperation",
)
EXPIRED_PRODUCES: Final = rate(
    "kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec",
    "Produce requests that timed out.",
)
EXPIRED_OPERATIONS: Final = own(
    "counter", "penstock_purgatory_expired_total", "Requests that were answered at their deadline.", "delayedOperation"
)
BROKER_STATE: Final = value(
    "kafka.server:type=KafkaServer,name=BrokerState",
    "1 starting, 3 running, 6 handing leaderships over.",
)
