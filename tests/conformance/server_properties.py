"""The server properties that the suites are written for, and that Apache Kafka had when the baselines were taken.

Apache Kafka also has an authorizer that lets everyone do everything. There is none here, and a node refuses to start
with the property, so that no operator takes it for protected; the tests that make ACLs are on the lists of what cannot
pass yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROPERTIES: Final[Mapping[str, str]] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "delete.topic.enable": "true",
    "default.replication.factor": "1",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "8",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "8",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "0",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.streams.min.session.timeout.ms": "100",
    "group.streams.min.heartbeat.interval.ms": "100",
}

REPLICATION_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)

APACHE_KAFKA_ONLY: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}
