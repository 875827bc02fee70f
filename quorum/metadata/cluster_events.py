"""What happens in a cluster, as people see it: values that are derived from changes of the metadata.

Making so many classes takes 25 ms: a node loads this module once it serves (`broker/cluster/event_stream.py`).
"""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Struct

from ...protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, TopicId
from .event_id import EventId


class BrokerRegistered(Struct, frozen=True, kw_only=True):
    """A process took the place of a broker, or told other endpoints or features."""

    KIND: ClassVar = "broker-registered"
    broker_id: NodeId
    broker_epoch: BrokerEpoch
    rack: str | None


class BrokerUnregistered(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "broker-unregistered"
    broker_id: NodeId


class BrokerFenced(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "broker-fenced"
    broker_id: NodeId


class BrokerUnfenced(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "broker-unfenced"
    broker_id: NodeId


class ControlledShutdownBegun(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "controlled-shutdown-begun"
    broker_id: NodeId


class BrokerDrained(Struct, frozen=True, kw_only=True):
    """The broker leads only what no other in-sync replica can lead (decision 19)."""

    KIND: ClassVar = "broker-drained"
    broker_id: NodeId


class BrokerUndrained(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "broker-undrained"
    broker_id: NodeId


class LogDirectoriesFailed(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "log-directories-failed"
    broker_id: NodeId
    directories: tuple[UUID, ...]


class ControllerRegistered(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "controller-registered"
    controller_id: NodeId


class QuorumLeaderChanged(Struct, frozen=True, kw_only=True):
    """The metadata quorum began an epoch. `leader_id` is what this node knows; the log has the epoch only."""

    KIND: ClassVar = "quorum-leader-changed"
    epoch: ControllerEpoch
    leader_id: NodeId | None


class FeatureChanged(Struct, frozen=True, kw_only=True):
    """The finalized level of a feature; 0 where it has none."""

    KIND: ClassVar = "feature-changed"
    name: str
    old_level: int
    new_level: int


class TopicCreated(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "topic-created"
    topic: str
    topic_id: TopicId
    partition_count: int
    replication_factor: int


class TopicDeleted(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "topic-deleted"
    topic: str
    topic_id: TopicId


class PartitionsAdded(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "partitions-added"
    topic: str
    old_count: int
    new_count: int


class LeaderChanged(Struct, frozen=True, kw_only=True):
    """-1 is no leader."""

    KIND: ClassVar = "leader-changed"
    topic: str
    partition: int
    old_leader: NodeId
    new_leader: NodeId
    leader_epoch: LeaderEpoch


class IsrShrunk(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "isr-shrunk"
    topic: str
    partition: int
    removed: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]


class IsrExpanded(Struct, frozen=True, kw_only=True):
    KIND: ClassVar = "isr-expanded"
    topic: str
    partition: int
    added: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]


class ReassignmentBegun(Struct, frozen=True, kw_only=True):
    """A move of replicas began, or has another goal now."""

    KIND: ClassVar = "reassignment-begun"
    topic: str
    partition: int
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


class ReassignmentEnded(Struct, frozen=True, kw_only=True):
    """The replicas are those that there will be; one that was cancelled ends, too, with those of before."""

    KIND: ClassVar = "reassignment-ended"
    topic: str
    partition: int
    replicas: tuple[NodeId, ...]


class ConfigChange(NamedTuple):
    """A dynamic config; None is unset. A hidden value might be a password, and is not told."""

    name: str
    value: str | None
    is_hidden: bool = False


class ConfigsChanged(Struct, frozen=True, kw_only=True):
    """Dynamic configs of a resource; `changes` are as many as fit, `count` all."""

    KIND: ClassVar = "configs-changed"
    resource_type: int
    resource_name: str
    count: int
    changes: tuple[ConfigChange, ...]


class Summary(Struct, frozen=True, kw_only=True):
    """One change of the metadata that has more events of a kind than are told one by one.

    `brokers` counts by new leader, by broker that left or joined an ISR, or by broker that gets replicas.
    """

    KIND: ClassVar = "summary"
    of: str
    count: int
    brokers: Mapping[NodeId, int]


class Gap(Struct, frozen=True, kw_only=True):
    """Events are missing here: the reader resumed too late, or this node got a snapshot instead of entries."""

    KIND: ClassVar = "gap"


ClusterChange: TypeAlias = (
    BrokerRegistered
    | BrokerUnregistered
    | BrokerFenced
    | BrokerUnfenced
    | ControlledShutdownBegun
    | BrokerDrained
    | BrokerUndrained
    | LogDirectoriesFailed
    | ControllerRegistered
    | QuorumLeaderChanged
    | FeatureChanged
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | LeaderChanged
    | IsrShrunk
    | IsrExpanded
    | ReassignmentBegun
    | ReassignmentEnded
    | ConfigsChanged
    | Summary
    | Gap
)


class ClusterEvent(Struct, frozen=True, kw_only=True):
    """`timestamp_ms` is that of the metadata entry; of one without, the time at which this node took it in."""

    id: EventId
    timestamp_ms: int
    change: ClusterChange
