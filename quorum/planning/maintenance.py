"""What a broker still does, and what stopping it would cost: whether its machine may be worked on (decision 19)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8
from msgspec import Struct

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ..configs.own_keys import BROKER_DRAINED
from ..decisions.configs import Operation
from ..decisions.context import ControllerConfig
from ..decisions.partition_changes import acceptable_leader, election_rules
from ..metadata.image import BrokerRegistration, ConfigResourceType, MetadataImage, PartitionRegistration
from ..metadata.records import NO_LEADER

LISTED_MAX: Final = 100
"""Partitions that a state lists of each kind; the counts are of all."""
_NAMED_MAX: Final = 3


class LeadershipReason(StrEnum):
    """Why a broker leads a partition."""

    NOT_DRAINED = "the broker is not drained"
    ONLY_IN_SYNC = "no other replica is in sync"
    OTHERS_CANNOT_LEAD = "no other in-sync replica is on an active broker with an online log directory"
    OTHERS_DRAINED = "all other in-sync replicas that may lead are drained"


class Leadership(NamedTuple):
    """A partition that the broker leads."""

    topic: str
    partition: int
    reason: LeadershipReason


class StoppedPartition(NamedTuple):
    """A partition that a stop of the broker would harm: the ISR would be what is left."""

    topic: str
    partition: int
    isr: tuple[NodeId, ...]
    min_insync_replicas: int


class MaintenanceState(Struct, frozen=True, kw_only=True):
    """Whether a broker is drained, and what would become of partitions if it stopped now.

    Lists have LISTED_MAX entries at most; the counts are of all partitions. Producers with acks=all are refused where
    an ISR is below `min.insync.replicas`, readers too where a partition has no leader.
    """

    broker_id: NodeId
    is_drained: bool
    is_until_restart: bool
    """The drain ends with the broker's next start."""
    is_active: bool
    """Neither fenced nor in controlled shutdown."""
    is_last: bool
    """No other broker is active and not drained."""
    replica_count: int
    leadership_count: int
    leaderships: tuple[Leadership, ...]
    offline_count: int
    offline: tuple[StoppedPartition, ...]
    """Partitions that would have no leader."""
    under_min_isr_count: int
    under_min_isr: tuple[StoppedPartition, ...]
    """Partitions that would have fewer in-sync replicas than `min.insync.replicas`, or have already."""

    @property
    def blockers(self) -> tuple[str, ...]:
        """Why the broker may not be stopped, as sentences; none when it may."""
        sentences = []
        if self.offline_count:
            sentences.append(
                f"{_partitions(self.offline_count, self.offline)} would have no leader: no other in-sync replica may "
                "lead"
            )
        if self.under_min_isr_count:
            sentences.append(
                f"{_partitions(self.under_min_isr_count, self.under_min_isr)} would be below min.insync.replicas"
            )
        return tuple(sentences)

    @property
    def may_stop(self) -> bool:
        """Whether a stop leaves every partition with a leader and `min.insync.replicas`.

        The quorum is another matter: where the node votes, a majority of the voters has to be left.
        """
        return not self.blockers


def maintenance_state(
    image: MetadataImage, broker_id: NodeId, *, default_min_insync_replicas: int = 1
) -> MaintenanceState:
    """Look at every partition of the broker: 10,000 in all take some 50 ms, which is for the executor.

    `default_min_insync_replicas` is the node's, for topics and clusters that do not say. Raises
    KafkaError(BROKER_ID_NOT_REGISTERED).
    """
    broker = registered(image, broker_id)
    config = ControllerConfig(node_id=broker_id, min_insync_replicas=default_min_insync_replicas)
    replica_count = leadership_count = offline_count = under_min_isr_count = 0
    leaderships: list[Leadership] = []
    offline: list[StoppedPartition] = []
    under_min_isr: list[StoppedPartition] = []
    for topic in image.topics.by_id.values():
        min_insync_replicas = election_rules(image, topic, config).min_insync_replicas
        for index, partition in enumerate(topic.partitions):
            if broker_id not in partition.replicas:
                continue
            replica_count += 1
            if partition.leader == broker_id:
                leadership_count += 1
                if len(leaderships) < LISTED_MAX:
                    reason = _reason(image, partition, broker_id)
                    leaderships.append(Leadership(topic.name, index, reason))
            if broker_id not in partition.isr or partition.leader == NO_LEADER:
                continue
            left = tuple([replica for replica in partition.isr if replica != broker_id])
            required = min(min_insync_replicas, len(partition.replicas))
            stopped = StoppedPartition(topic.name, index, left, required)
            if not any(map(acceptable_leader(image, partition), left)):
                offline_count += 1
                if len(offline) < LISTED_MAX:
                    offline.append(stopped)
            elif len(left) < required:
                under_min_isr_count += 1
                if len(under_min_isr) < LISTED_MAX:
                    under_min_isr.append(stopped)
    return MaintenanceState(
        broker_id=broker_id,
        is_drained=broker_id in image.configs.drained_brokers,
        is_until_restart=image.configs.is_drained_until_restart(broker_id),
        is_active=broker.is_active,
        is_last=not any(
            other.is_active and other.id != broker_id and other.id not in image.configs.drained_brokers
            for other in image.brokers.values()
        ),
        replica_count=replica_count,
        leadership_count=leadership_count,
        leaderships=tuple(leaderships),
        offline_count=offline_count,
        offline=tuple(offline),
        under_min_isr_count=under_min_isr_count,
        under_min_isr=tuple(under_min_isr),
    )


def drain_request(broker_id: NodeId, value: str | None) -> IncrementalAlterConfigsRequest:
    """Return what sets the broker's own `broker.drained`, or takes it away (None)."""
    operation = Operation.DELETE if value is None else Operation.SET
    config = AlterableConfig(name=BROKER_DRAINED, config_operation=i8(operation), value=value)
    resource = AlterConfigsResource(
        resource_type=i8(ConfigResourceType.BROKER), resource_name=str(broker_id), configs=(config,)
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def has_caught_up(image: MetadataImage, broker_id: NodeId) -> bool:
    """Whether all replicas of a broker are in sync, but for those of partitions without a leader."""
    return not any(
        broker_id in partition.replicas and broker_id not in partition.isr and partition.leader != NO_LEADER
        for topic in image.topics.by_id.values()
        for partition in topic.partitions
    )


def registered(image: MetadataImage, broker_id: NodeId) -> BrokerRegistration:
    """Return the registration of a broker. Raises KafkaError(BROKER_ID_NOT_REGISTERED)."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return broker


def _reason(image: MetadataImage, partition: PartitionRegistration, broker_id: NodeId) -> LeadershipReason:
    if broker_id not in image.configs.drained_brokers:
        return LeadershipReason.NOT_DRAINED
    others = [replica for replica in partition.isr if replica != broker_id]
    if not others:
        return LeadershipReason.ONLY_IN_SYNC
    if not any(map(acceptable_leader(image, partition), others)):
        return LeadershipReason.OTHERS_CANNOT_LEAD
    return LeadershipReason.OTHERS_DRAINED


def _partitions(count: int, listed: Sequence[StoppedPartition]) -> str:
    names = ", ".join(f"{one.topic}-{one.partition}" for one in listed[:_NAMED_MAX])
    more = ", …" if count > _NAMED_MAX else ""
    return f"{count} {'partition' if count == 1 else 'partitions'} ({names}{more})"
