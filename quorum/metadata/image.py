"""The metadata image: everything the cluster agrees on at one offset, immutable. Kafka: `MetadataImage`.

Images share structure: a change among 10,000 partitions makes a new image for the price of the topic it touches.
Nothing in an image may be changed; `delta.py` makes the next one.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ...protocol.ids import (
    NO_CONTROLLER_EPOCH,
    BrokerEpoch,
    ControllerEpoch,
    LeaderEpoch,
    NodeId,
    PartitionEpoch,
    TopicId,
)
from ..configs.own_keys import says_drained_until_restart
from .acls import AclsImage
from .persistent_map import PersistentMap
from .records import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    LEADER_RECOVERED,
    Endpoint,
    SupportedFeature,
)
from .security_image import DelegationToken, QuotaEntity, Quotas, ScramCredential, ScramUser


class ConfigResourceType(IntEnum):
    """What a config belongs to, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A named holder of configs. The broker resource with an empty name holds the defaults of all brokers."""

    type: int
    name: str


class PartitionRegistration(Struct, frozen=True, kw_only=True):
    """One partition. `directories` stands in the order of `replicas`; `leader` is -1 without a leader."""

    replicas: tuple[NodeId, ...]
    directories: tuple[UUID, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    removing_replicas: tuple[NodeId, ...] = ()
    adding_replicas: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    leader_recovery_state: int = LEADER_RECOVERED

    def directory_of(self, broker_id: NodeId) -> UUID:
        """Return the log directory of a replica, DIRECTORY_UNASSIGNED where the broker has not said."""
        for replica, directory in zip(self.replicas, self.directories, strict=True):
            if replica == broker_id:
                return directory
        return DIRECTORY_UNASSIGNED


class TopicImage(Struct, frozen=True, kw_only=True):
    """One topic; a partition's index is its place in `partitions`."""

    name: str
    topic_id: TopicId
    partitions: tuple[PartitionRegistration, ...] = ()


class TopicsImage(Struct, frozen=True, kw_only=True):
    """All topics, by both of their identities."""

    by_name: PersistentMap[str, TopicImage] = field(default_factory=PersistentMap)
    by_id: PersistentMap[UUID, TopicImage] = field(default_factory=PersistentMap)
    colliding: PersistentMap[str, frozenset[str]] = field(default_factory=PersistentMap)
    """Names of the topics whose name has a '.' or '_', by that name with every '.' turned into '_'."""
    partition_count: int = 0
    """Of all topics together."""

    def partition(self, name: str, index: int) -> PartitionRegistration | None:
        topic = self.by_name.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]


class BrokerRegistration(Struct, frozen=True, kw_only=True):
    """A broker's current process.

    `epoch` identifies this registration; `directories` are the log directories in use, those among them that take no
    new replica `cordoned_directories` (KIP-1066).
    """

    id: NodeId
    epoch: BrokerEpoch
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[UUID, ...] = ()
    cordoned_directories: tuple[UUID, ...] = ()

    @property
    def takes_replicas(self) -> bool:
        """Whether a directory is left for new replicas."""
        return not self.directories or not set(self.directories) <= set(self.cordoned_directories)

    @property
    def is_active(self) -> bool:
        """May lead and be in an ISR."""
        return not self.is_fenced and not self.in_controlled_shutdown

    def has_online_directory(self, directory: UUID) -> bool:
        """Whether a replica in that directory can be served."""
        if directory == DIRECTORY_LOST:
            return False
        # A directory that is not known yet is given the benefit of the doubt (KIP-858).
        return directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING) or directory in self.directories

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """Return where clients of that listener reach the broker."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None


class ControllerRegistration(Struct, frozen=True, kw_only=True):
    """A controller's current process."""

    id: NodeId
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()

    def endpoint(self, listener_name: str) -> Endpoint | None:
        """Return where clients of that listener reach the controller."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None


_NO_CONFIGS: Mapping[str, str] = {}


class ConfigsImage(Struct, frozen=True, kw_only=True):
    """All dynamic configs, passwords among them. A resource without any is not in the map."""

    by_resource: PersistentMap[ConfigResource, Mapping[str, str]] = field(default_factory=PersistentMap)
    drained_brokers: frozenset[NodeId] = frozenset()
    """The brokers whose own configs say `broker.drained`, registered or not: elections ask for each partition.

    Also those whose drain ends with a restart.
    """

    def __repr__(self) -> str:
        return f"ConfigsImage(drained_brokers={self.drained_brokers!r})"

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        return self.by_resource.get(resource, _NO_CONFIGS)

    def is_drained_until_restart(self, broker_id: NodeId) -> bool:
        """Whether the next process of the broker is to end its drain."""
        return says_drained_until_restart(self.of(ConfigResource(ConfigResourceType.BROKER, str(broker_id))))


class MetadataImage(Struct, frozen=True, kw_only=True):
    """The whole state after the entry at `offset` (-1: before any) of `epoch`, proposed at `timestamp_ms`.

    `offset` is also the epoch of the finalized features: it only rises.
    """

    offset: int = -1
    epoch: ControllerEpoch = NO_CONTROLLER_EPOCH
    timestamp_ms: int = 0
    cluster_id: str | None = None
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    brokers: Mapping[int, BrokerRegistration] = {}
    controllers: Mapping[NodeId, ControllerRegistration] = {}
    features: Mapping[str, int] = {}
    """Finalized levels above 0."""
    next_producer_id: int = 0
    acls: AclsImage = field(default_factory=AclsImage)
    scram_credentials: PersistentMap[ScramUser, ScramCredential] = field(default_factory=PersistentMap)
    client_quotas: PersistentMap[QuotaEntity, Quotas] = field(default_factory=PersistentMap)
    """An entity without any quota is not in the map."""
    delegation_tokens: PersistentMap[str, DelegationToken] = field(default_factory=PersistentMap)

    def is_active_broker(self, broker_id: NodeId) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active


EMPTY_IMAGE = MetadataImage()
