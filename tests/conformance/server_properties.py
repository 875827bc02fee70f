"""The server properties that the suites are written for, and that Apache Kafka had when the baselines were taken.

There is an authorizer, so that ACLs can be made; it lets everyone do everything.
"""

from __future__ import annotations

from typing import Final

PROPERTIES: Final[dict[str, str]] = {
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
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}

REPLICATION_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
