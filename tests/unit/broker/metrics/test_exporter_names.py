"""Names of metrics: as the JMX exporter's rules for Kafka (`kafka-2_0_0.yml`) name its MBeans."""

from __future__ import annotations

import re

import pytest

from penstock.broker.metrics.rules.catalog import catalog
from penstock.broker.metrics.rules.exporter_names import exporter_name

NAMES = {
    ("kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec", "Count"): (
        "kafka_server_brokertopicmetrics_messagesin_total"
    ),
    ("kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec", "Count"): (
        "kafka_server_brokertopicmetrics_totalproducerequests_total"
    ),
    ("kafka.network:type=RequestMetrics,name=RequestsPerSec", "Count"): "kafka_network_requestmetrics_requests_total",
    ("kafka.network:type=RequestMetrics,name=TotalTimeMs", "99thPercentile"): (
        "kafka_network_requestmetrics_totaltimems"
    ),
    ("kafka.network:type=RequestMetrics,name=TotalTimeMs", "Count"): "kafka_network_requestmetrics_totaltimems_count",
    ("kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions", "Value"): (
        "kafka_server_replicamanager_underreplicatedpartitions"
    ),
    ("kafka.server:type=ReplicaManager,name=IsrShrinksPerSec", "Count"): "kafka_server_replicamanager_isrshrinks_total",
    ("kafka.controller:type=KafkaController,name=ActiveControllerCount", "Value"): (
        "kafka_controller_kafkacontroller_activecontrollercount"
    ),
    ("kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups", "Value"): (
        "kafka_coordinator_group_groupmetadatamanager_numgroups"
    ),
    ("kafka.log:type=Log,name=Size", "Value"): "kafka_log_log_size",
    ("kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs", "Count"): (
        "kafka_log_logflushstats_logflushrateandtimems_count"
    ),
    ("kafka.cluster:type=Partition,name=UnderMinIsr", "Value"): "kafka_cluster_partition_underminisr",
    ("kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent", "MeanRate"): (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    ),
    # The rule of gauges stands before that of percents.
    ("kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent", "Value"): (
        "kafka_network_socketserver_networkprocessoravgidlepercent"
    ),
    ("kafka.server:type=raft-metrics", "current-epoch"): "kafka_server_raftmetrics_current_epoch",
    ("kafka.server:type=socket-server-metrics", "connection-count"): (
        "kafka_server_socket_server_metrics_connection_count"
    ),
}


@pytest.mark.parametrize(("mbean", "attribute"), NAMES)
def test_name_of_an_mbean_is_the_exporter_s(mbean: str, attribute: str) -> None:
    assert exporter_name(mbean, attribute) == NAMES[mbean, attribute]


def test_an_attribute_that_no_rule_tells_has_no_name() -> None:
    with pytest.raises(AssertionError, match="StdDev"):
        exporter_name("kafka.log:type=Log,name=Size", "StdDev")


def test_every_metric_has_one_definition_and_a_valid_name() -> None:
    metrics = [metric for group in catalog().values() for metric in group]
    assert len({metric.name for metric in metrics}) == len(metrics) > 100
    for metric in metrics:
        assert re.fullmatch(r"(kafka|penstock)_[a-z0-9_]+", metric.name), metric.name
        is_kafka_exporter_s = metric.name.startswith(("kafka_topic_", "kafka_consumergroup_", "kafka_brokers"))
        assert metric.name.startswith("kafka_") == bool(metric.mbean or is_kafka_exporter_s), metric.name
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.help.endswith("."), metric.name
