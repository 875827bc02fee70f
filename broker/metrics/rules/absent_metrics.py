"""What nodes of Apache Kafka 4.3 tell and this one does not, and why."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct


class Absent(Struct, frozen=True, kw_only=True):
    """`mbeans` are patterns of names, with an attribute in parentheses where the MBean has no `name`."""

    mbeans: tuple[str, ...]
    reason: str


ABSENT: Final = (
    Absent(
        mbeans=(
            "kafka.controller:type=ControllerEventManager,name=*",
            "kafka.controller:type=KafkaController,name=EventQueueOperations*",
            "kafka.server:type=MetadataLoader,name=AvgIdleRatio",
            "kafka.server:type=BrokerMetadataListener,name=*",
            "kafka.server:type=group-coordinator-metrics (event-*)",
            "kafka.server:type=group-coordinator-metrics (background-*)",
            "kafka.server:type=group-coordinator-metrics (thread-idle-ratio-avg)",
            "kafka.server:type=KafkaRequestHandlerPool,name=BrokerRequestHandlerAvgIdlePercent",
            "kafka.server:type=KafkaRequestHandlerPool,name=ControllerRequestHandlerAvgIdlePercent",
            "kafka.network:type=Acceptor,name=AcceptorBlockedPercent",
        ),
        reason="There is one event loop: `penstock_loop_lag_seconds`, `penstock_loop_turn_seconds` and "
        "`kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent` tell how busy it is.",
    ),
    Absent(
        mbeans=(
            "kafka.network:type=RequestChannel,name=*",
            "kafka.network:type=RequestMetrics,name=ResponseQueueTimeMs",
            "kafka.server:type=ForwardingManager (*)",
        ),
        reason="There are no such queues: `kafka_network_requestmetrics_requestqueuetimems` is the time that a request "
        "waits on its connection.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=group-coordinator-metrics (batch-*)",
            "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=LogAppendRetryQueueSize",
        ),
        reason="Coordinators append each change at once, and gather nothing.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=group-coordinator-metrics (*-rate)",
            "kafka.server:type=client-metrics (*-rate)",
            "kafka.server:type=socket-server-metrics (*-rate)",
        ),
        reason="`rate()` of the counts has them, over any time.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=socket-server-metrics (incoming-byte-total)",
            "kafka.server:type=socket-server-metrics (outgoing-byte-total)",
            "kafka.server:type=socket-server-metrics (network-io-total)",
            "kafka.server:type=socket-server-metrics (request-*)",
            "kafka.server:type=socket-server-metrics (response-total)",
            "kafka.server:type=socket-server-metrics (io-*)",
            "kafka.server:type=socket-server-metrics (select-total)",
            "kafka.server:type=socket-server-metrics (MemoryPool*)",
            "kafka.server:type=socket-server-metrics (expired-connections-killed-count)",
        ),
        reason="Not counted by listener: `penstock_network_bytes_in_total`, `penstock_network_bytes_out_total`, "
        "`kafka_network_requestmetrics_requests_total` and `kafka_network_socketserver_*` are of all listeners.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=socket-server-metrics (*throttle-time)",
            "kafka.network:type=RequestMetrics,name=ThrottleTimeMs",
            "kafka.server:type=Produce (queue-size)",
            "kafka.server:type=Fetch (queue-size)",
            "kafka.server:type=Request (*)",
            "kafka.server:type=ControllerMutation (queue-size)",
        ),
        reason="Throttled connections are in no queue, and nodes are exempt without being measured: "
        "`kafka_server_quota_throttle_time` and `penstock_connections_throttled_total` have the times and counts.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=socket-server-metrics (successful-authentication-no-reauth-total)",
            "kafka.server:type=socket-server-metrics (reauthentication-latency-*)",
        ),
        reason="Clients without re-authentication are told by their software, and it is one request.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=*-channel-metrics (*)",
            "kafka.server:type=alter-partition-metrics (*)",
            "kafka.server:type=directory-assignments-metrics (*)",
            "kafka.server:type=forwarding-metrics (*)",
            "kafka.server:type=heartbeat-metrics (*)",
            "kafka.server:type=registration-metrics (*)",
        ),
        reason="Traffic between nodes is not counted by purpose. `kafka_network_requestmetrics_*` of the other node "
        "has the requests, by API.",
    ),
    Absent(
        mbeans=(
            "kafka.network:type=RequestMetrics,name=RequestBytes",
            "kafka.network:type=RequestMetrics,name=TemporaryMemoryBytes",
            "kafka.network:type=RequestMetrics,name=MessageConversionsTimeMs",
            "kafka.server:type=BrokerTopicMetrics,name=*MessageConversionsPerSec",
        ),
        reason="Measuring each request would cost the path of records; records are never converted.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=BrokerTopicMetrics,name=Invalid*",
            "kafka.server:type=BrokerTopicMetrics,name=NoKeyCompactedTopicRecordsPerSec",
        ),
        reason='`kafka_network_requestmetrics_errors_total{request="Produce"}` has them by error: CORRUPT_MESSAGE, '
        "INVALID_RECORD, OUT_OF_ORDER_SEQUENCE_NUMBER.",
    ),
    Absent(
        mbeans=("kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytes*",),
        reason="Counted with other replication; `/v1/reassignments` tells the progress.",
    ),
    Absent(
        mbeans=("kafka.server:type=DelayedRemoteListOffsetsMetrics,name=*",),
        reason='`kafka_network_requestmetrics_errors_total{request="ListOffsets",error="REQUEST_TIMED_OUT"}` has them.',
    ),
    Absent(
        mbeans=("kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec",),
        reason='Consumers and followers together: `penstock_purgatory_expired_total{delayedOperation="Fetch"}`.',
    ),
    Absent(
        mbeans=(
            "kafka.server:type=ReplicaFetcherManager,name=DeadThreadCount",
            "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate",
            "kafka.server:type=ReplicaAlterLogDirsManager,name=DeadThreadCount",
            "kafka.server:type=ReplicaAlterLogDirsManager,name=MinFetchRate",
            "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroupsDead",
        ),
        reason="Fetchers are no threads that could die, and groups are forgotten at once.",
    ),
    Absent(
        mbeans=("kafka.log:type=LogCleaner,name=DeadThreadCount", "kafka.utils:type=Throttler,name=cleaner-io"),
        reason="Compaction has no threads that could die: a log that cannot be compacted is uncleanable. `rate()` of "
        "`penstock_compaction_read_bytes_total` and `penstock_compaction_written_bytes_total` is its I/O.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=*Share*",
            "kafka.server:type=BrokerTopicMetrics,name=*Share*",
            "kafka.server:type=share-coordinator-metrics (*)",
            "kafka.server:type=group-coordinator-metrics (share-*)",
            "kafka.server:type=group-coordinator-metrics (streams-*)",
            "kafka.controller:type=KafkaController,name=IgnoredStaticVoters",
            "kafka.server:type=broker-metadata-metrics (ignored-static-voters)",
            "kafka.server:type=raft-metrics (uncommitted-voter-change)",
        ),
        reason="Penstock has none of it: "
        "groups of the share and streams protocols, and voters that change while the quorum runs.",
    ),
    Absent(
        mbeans=(
            "kafka.server:type=KafkaServer,name=ClusterId",
            "kafka.server:type=ControllerServer,name=ClusterId",
            "kafka.server:type=raft-metrics (current-vote-directory-id)",
            "kafka.server:type=app-info (*)",
            "kafka.server:type=*,name=yammer-metrics-count",
            "kafka.server:type=kafka-metrics-count (*)",
        ),
        reason="Not numbers, or about Kafka's metrics themselves: `penstock_build_info` has version and node.",
    ),
    Absent(
        mbeans=("kafka.server:type=ControllerServer,name=linux-disk-*",),
        reason="Of the process: `kafka_server_kafkaserver_linux_disk_*` has them.",
    ),
    Absent(
        mbeans=("kafka.server:type=MetadataLoader,name=HandleLoadSnapshotCount",),
        reason="The log says when a node takes a snapshot of another one.",
    ),
)


def reason_for(mbean: str) -> str | None:
    """Why an MBean is absent; None for one that no pattern covers."""
    return next((one.reason for one in ABSENT if any(fnmatchcase(mbean, pattern) for pattern in one.mbeans)), None)
