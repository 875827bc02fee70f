"""Metrics that dashboards which others wrote for Kafka ask for: an exposition has them (`docs/dashboards.md`)."""

from __future__ import annotations

import pytest
from exposed_metrics import exposed
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v9.response import OffsetCommitResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64
from memory_node import World, create_topic, produce, run
from waiting import ask_until

from penstock.broker.metrics.replica_reader import PROCESS_IO
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

TOPICS = "kafka_server_brokertopicmetrics"
CONTROLLER = "kafka_controller_kafkacontroller"
PARTITION = "kafka_cluster_partition"
REPLICAS = "kafka_server_replicamanager"
REQUESTS = "kafka_network_requestmetrics"
OF_TOPIC = "kafka_topic_partition"
OF_GROUP = "kafka_consumergroup"
RAFT = "kafka_server_raftmetrics"

# Without those of the JVM, of containers and of disks, which other exporters have.
STRIMZI_KAFKA = (
    f"{PARTITION}_atminisr",
    f"{PARTITION}_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    f"{CONTROLLER}_activecontrollercount",
    f"{CONTROLLER}_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    f"{TOPICS}_bytesin_total",
    f"{TOPICS}_bytesout_total",
    f"{TOPICS}_failedfetchrequests_total",
    f"{TOPICS}_failedproducerequests_total",
    f"{TOPICS}_messagesin_total",
    f"{TOPICS}_totalfetchrequests_total",
    f"{TOPICS}_totalproducerequests_total",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    f"{REPLICAS}_leadercount",
    f"{REPLICAS}_partitioncount",
    f"{REPLICAS}_underreplicatedpartitions",
    "kafka_server_socket_server_metrics_connection_count",
    "process_open_fds",
)
STRIMZI_KRAFT = (
    f"{RAFT}_append_records_rate",
    f"{RAFT}_commit_latency_avg",
    f"{RAFT}_current_epoch",
    f"{RAFT}_current_leader",
    f"{RAFT}_current_state",
    f"{RAFT}_current_vote",
    f"{RAFT}_fetch_records_rate",
    f"{RAFT}_high_watermark",
    f"{RAFT}_log_end_offset",
)
STRIMZI_KAFKA_EXPORTER = (
    f"{PARTITION}_atminisr",
    f"{PARTITION}_underminisr",
    f"{OF_GROUP}_current_offset",
    f"{OF_GROUP}_lag",
    f"{OF_TOPIC}_current_offset",
    f"{OF_TOPIC}_in_sync_replica",
    f"{OF_TOPIC}_leader_is_preferred",
    f"{OF_TOPIC}_oldest_offset",
    f"{OF_TOPIC}_replicas",
    f"{OF_TOPIC}_under_replicated_partition",
    "kafka_topic_partitions",
)
KAFKA_EXPORTER_OVERVIEW = (
    f"{OF_GROUP}_current_offset",
    f"{OF_GROUP}_lag",
    f"{OF_TOPIC}_current_offset",
    "kafka_topic_partitions",
)
GRAFANA_KAFKA_OVERVIEW = (
    f"{PARTITION}_underreplicated",
    f"{CONTROLLER}_preferredreplicaimbalancecount",
    f"{REQUESTS}_localtimems",
    f"{REQUESTS}_remotetimems",
    f"{REQUESTS}_requestqueuetimems",
    f"{REQUESTS}_responsesendtimems",
    "kafka_server_kafkaserver_brokerstate",
    f"{REPLICAS}_isrexpands_total",
    f"{REPLICAS}_isrshrinks_total",
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
)
GRAFANA_KAFKA_TOPICS = (
    f"{OF_GROUP}_current_offset",
    f"{OF_GROUP}_lag",
    "kafka_log_log_logendoffset",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_size",
    f"{TOPICS}_bytesin_total",
    f"{TOPICS}_bytesout_total",
    f"{OF_TOPIC}_current_offset",
)


KAFKA_METRICS_11962 = (
    f"{PARTITION}_replicascount",
    f"{CONTROLLER}_activecontrollercount",
    # Its variables `job` and `broker`.
    f"{CONTROLLER}_controllerstate",
    f"{CONTROLLER}_globaltopiccount",
    f"{CONTROLLER}_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_log_logflushstats_logflushrateandtimems_count",
    f"{REQUESTS}_requests_total",
    f"{REQUESTS}_totaltimems",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    f"{TOPICS}_bytesin_total",
    f"{TOPICS}_bytesout_total",
    f"{TOPICS}_failedfetchrequests_total",
    f"{TOPICS}_failedproducerequests_total",
    f"{TOPICS}_messagesin_total",
    f"{TOPICS}_totalfetchrequests_total",
    f"{TOPICS}_totalproducerequests_total",
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    f"{REPLICAS}_isrexpands_total",
    f"{REPLICAS}_isrshrinks_total",
    f"{REPLICAS}_leadercount",
    f"{REPLICAS}_partitioncount",
    f"{REPLICAS}_underreplicatedpartitions",
    "process_cpu_seconds_total",
)


async def commit(connection: Connection) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=i32(0), committed_offset=i64(0), committed_metadata=None)
    answer = await connection.call(
        OffsetCommitRequest(
            group_id=GroupId("billing"),
            member_id="",
            topics=(OffsetCommitRequestTopic(name=TopicName("orders"), partitions=(partition,)),),
        )
    )
    assert isinstance(answer, OffsetCommitResponse)
    return ErrorCode(int(answer.topics[0].partitions[0].error_code))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "names",
    [
        STRIMZI_KAFKA,
        STRIMZI_KRAFT,
        STRIMZI_KAFKA_EXPORTER,
        KAFKA_EXPORTER_OVERVIEW,
        GRAFANA_KAFKA_OVERVIEW,
        GRAFANA_KAFKA_TOPICS,
        KAFKA_METRICS_11962,
    ],
    ids=(
        "strimzi-kafka",
        "strimzi-kraft",
        "strimzi-kafka-exporter",
        "kafka-exporter",
        "grafana",
        "grafana-topics",
        "11962",
    ),
)
def test_what_the_dashboard_asks_for_is_told(names: tuple[str, ...]) -> None:
    async def scenario() -> None:
        world = World(metrics_per_partition="true", metrics_kafka_exporter="true")
        world.files.make_directories("/proc/self")
        world.files.write(PROCESS_IO, b"rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n")
        async with world.running() as (node, connection):
            await create_topic(connection, "orders", 2)
            await produce(connection, "orders", b"x")
            await connection.call(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("billing",)))
            await ask_until(lambda: commit(connection), lambda error: error is ErrorCode.NONE)
            samples = await exposed(node)
            assert [name for name in names if not samples.labels(name)] == []
            assert samples.value("kafka_server_kafkaserver_linux_disk_read_bytes") == 4096
            assert samples.value("kafka_server_kafkaserver_linux_disk_write_bytes") == 8192

    run(scenario)
