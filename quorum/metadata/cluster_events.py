"""What happens in a cluster, as people see it: values that are derived from changes of the metadata.

Making so many classes takes 25 ms: a node loads this module once it serves (`broker/cluster/event_stream.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias
from uuid import UUID

from ...protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, TopicId
from .event_id import EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistered:
    """A process took the place of a broker, or told other endpoints or features."""

    KIND: ClassVar = "broker-registered"
    broker_id: NodeId
    broker_epoch: BrokerEpoch
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnregistered:
    KIND: ClassVar = "broker-unregistered"
    broker_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFenced:
    KIND: ClassVar = "broker-fenced"
    broker_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnfenced:
    KIND: ClassVar = "broker-unfenced"
    broker_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownBegun:
    KIND: ClassVar = "controlled-shutdown-begun"
    broker_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDrained:
    """The broker leads only what no other in-sync replica can lead (decision 19)."""

    KIND: ClassVar = "broker-drained"
    broker_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUndrained:
    KIND: ClassVar = "broker-undrained"
    broker_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectoriesFailed:
    KIND: ClassVar = "log-directories-failed"
    broker_id: NodeId
    directories: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistered:
    KIND: ClassVar = "controller-registered"
    controller_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLeaderChanged:
    """The metadata quorum began an epoch. `leader_id` is what this node knows; the log has the epoch only."""

    KIND: ClassVar = "quorum-leader-changed"
    epoch: ControllerEpoch
    leader_id: NodeId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureChanged:
    """The finalized level of a feature; 0 where it has none."""

    KIND: ClassVar = "feature-changed"
    name: str
    old_level: int
    new_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated:
    KIND: ClassVar = "topic-created"
    topic: str
    topic_id: TopicId
    partition_count: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted:
    KIND: ClassVar = "topic-deleted"
    topic: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsAdded:
    KIND: ClassVar = "partitions-added"
    topic: str
    old_count: int
    new_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged:
    """-1 is no leader."""

    KIND: ClassVar = "leader-changed"
    topic: str
    partition: int
    old_leader: NodeId
    new_leader: NodeId
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrShrunk:
    KIND: ClassVar = "isr-shrunk"
    topic: str
    partition: int
    removed: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrExpanded:
    KIND: ClassVar = "isr-expanded"
    topic: str
    partition: int
    added: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentBegun:
    """A move of replicas began, or has another goal now."""

    KIND: ClassVar = "reassignment-begun"
    topic: str
    partition: int
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentEnded:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsChanged:
    """Dynamic configs of a resource; `changes` are as many as fit, `count` all."""

    KIND: ClassVar = "configs-changed"
    resource_type: int
    resource_name: str
    count: int
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One change of the metadata that has more events of a kind than are told one by one.

    `brokers` counts by new leader, by broker that left or joined an ISR, or by broker that gets replicas.
    """

    KIND: ClassVar = "summary"
    of: str
    count: int
    brokers: Mapping[NodeId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """`timestamp_ms` is that of the metadata entry; of one without, the time at which this node took it in."""

    id: EventId
    timestamp_ms: int
    change: ClusterChange
