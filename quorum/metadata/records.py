"""The metadata records: every change of the cluster's metadata is one of these, under Kafka's names.

A record is written as the CBOR array `[type, version, {number of field: value}]`; `type` is Kafka's number of the
record type, a field's number is its place in the struct here, an id is its 16 bytes. Fields with their default value
are left out. A field whose number this software does not know is kept in `unknown_fields` and written out again; a
record type or version that it does not know stops the node, because state that cannot be replayed cannot be served.

A field `change` is for the node that asked for it and replays the entry: it is no part of the state, and stands in no
snapshot.

Growing a record: add a field with a default at the end (before `unknown_fields`); raise `VERSION` only when older
software must not read it.
"""

from collections.abc import Mapping
from typing import ClassVar, TypeAlias
from uuid import UUID

from msgspec import Struct

from ...protocol.ids import NO_NODE, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from .security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

# Directory ids that are not ids of a directory (Kafka's `DirectoryId`).
DIRECTORY_UNASSIGNED = UUID(int=0)
DIRECTORY_LOST = UUID(int=1)
DIRECTORY_MIGRATING = UUID(int=2)

NO_LEADER = NO_NODE
# In a PartitionChangeRecord: the leader stays (and so does its epoch).
NO_LEADER_CHANGE = NodeId(-2)

LEADER_RECOVERED = 0
LEADER_RECOVERING = 1
NO_RECOVERY_STATE_CHANGE = -1


class Endpoint(Struct, frozen=True, kw_only=True):
    """A listener of a broker, as clients of that listener are told it."""

    name: str
    host: str
    port: int
    security_protocol: int = 0
    unknown_fields: Mapping[int, object] = {}


class SupportedFeature(Struct, frozen=True, kw_only=True):
    """The levels of one feature that a broker supports, both ends included."""

    name: str
    min_supported_version: int
    max_supported_version: int
    unknown_fields: Mapping[int, object] = {}


class RegisterBrokerRecord(Struct, frozen=True, kw_only=True):
    """A process took the place of a broker; it replaces what was registered under that id."""

    TYPE: ClassVar[int] = 0
    VERSION: ClassVar[int] = 0

    broker_id: NodeId
    incarnation_id: UUID
    broker_epoch: BrokerEpoch
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] = ()
    unknown_fields: Mapping[int, object] = {}


class UnregisterBrokerRecord(Struct, frozen=True, kw_only=True):
    """A broker is no part of the cluster any more."""

    TYPE: ClassVar[int] = 1
    VERSION: ClassVar[int] = 0

    broker_id: NodeId
    broker_epoch: BrokerEpoch
    unknown_fields: Mapping[int, object] = {}


class TopicRecord(Struct, frozen=True, kw_only=True):
    """A topic exists; its configs and partitions follow. `change` names the request that created it."""

    TYPE: ClassVar[int] = 2
    VERSION: ClassVar[int] = 0

    name: str
    topic_id: TopicId
    change: str = ""
    unknown_fields: Mapping[int, object] = {}


class PartitionRecord(Struct, frozen=True, kw_only=True):
    """A partition's whole registration. `directories` stands in the order of `replicas`.

    `change` names the request that added it to a topic that was there.
    """

    TYPE: ClassVar[int] = 3
    VERSION: ClassVar[int] = 0

    topic_id: TopicId
    partition_id: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    directories: tuple[UUID, ...]
    removing_replicas: tuple[NodeId, ...] = ()
    adding_replicas: tuple[NodeId, ...] = ()
    leader_recovery_state: int = LEADER_RECOVERED
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    change: str = ""
    unknown_fields: Mapping[int, object] = {}


class ConfigRecord(Struct, frozen=True, kw_only=True):
    """A dynamic config of a resource was set, or removed when `value` is None. It may be a password."""

    TYPE: ClassVar[int] = 4
    VERSION: ClassVar[int] = 0

    resource_type: int
    resource_name: str
    name: str
    value: str | None
    unknown_fields: Mapping[int, object] = {}

    def __repr__(self) -> str:
        return f"ConfigRecord({self.resource_type}, {self.resource_name!r}, name={self.name!r})"


class PartitionChangeRecord(Struct, frozen=True, kw_only=True):
    """Some fields of a partition changed; None (or the sentinel above) means unchanged.

    Replay raises the partition epoch by one always and the leader epoch by one when `leader` is given.
    """

    TYPE: ClassVar[int] = 5
    VERSION: ClassVar[int] = 0

    topic_id: TopicId
    partition_id: int
    isr: tuple[NodeId, ...] | None = None
    leader: NodeId = NO_LEADER_CHANGE
    replicas: tuple[NodeId, ...] | None = None
    removing_replicas: tuple[NodeId, ...] | None = None
    adding_replicas: tuple[NodeId, ...] | None = None
    leader_recovery_state: int = NO_RECOVERY_STATE_CHANGE
    elr: tuple[NodeId, ...] | None = None
    last_known_elr: tuple[NodeId, ...] | None = None
    directories: tuple[UUID, ...] | None = None
    unknown_fields: Mapping[int, object] = {}


class RemoveTopicRecord(Struct, frozen=True, kw_only=True):
    """A topic, its partitions and its configs are gone. `change` names the request that deleted it."""

    TYPE: ClassVar[int] = 9
    VERSION: ClassVar[int] = 0

    topic_id: TopicId
    change: str = ""
    unknown_fields: Mapping[int, object] = {}


class FeatureLevelRecord(Struct, frozen=True, kw_only=True):
    """The cluster's finalized level of a feature; level 0 removes it."""

    TYPE: ClassVar[int] = 12
    VERSION: ClassVar[int] = 0

    name: str
    feature_level: int
    unknown_fields: Mapping[int, object] = {}


class ProducerIdsRecord(Struct, frozen=True, kw_only=True):
    """A block of producer ids went to a broker; the next block starts at `next_producer_id`."""

    TYPE: ClassVar[int] = 15
    VERSION: ClassVar[int] = 0

    broker_id: NodeId
    broker_epoch: BrokerEpoch
    next_producer_id: int
    unknown_fields: Mapping[int, object] = {}


class BrokerRegistrationChangeRecord(Struct, frozen=True, kw_only=True):
    """Some fields of a registration changed; None means unchanged."""

    TYPE: ClassVar[int] = 17
    VERSION: ClassVar[int] = 0

    broker_id: NodeId
    broker_epoch: BrokerEpoch
    is_fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    log_dirs: tuple[UUID, ...] | None = None
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    unknown_fields: Mapping[int, object] = {}


class RegisterControllerRecord(Struct, frozen=True, kw_only=True):
    """The registration of a controller; it replaces the earlier one of that id (KIP-919)."""

    TYPE: ClassVar[int] = 27
    VERSION: ClassVar[int] = 0

    controller_id: NodeId
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    unknown_fields: Mapping[int, object] = {}


class BeginTransactionRecord(Struct, frozen=True, kw_only=True):
    """What follows takes effect at the end of the transaction, in one step (KIP-868)."""

    TYPE: ClassVar[int] = 23
    VERSION: ClassVar[int] = 0

    name: str = ""
    unknown_fields: Mapping[int, object] = {}


class EndTransactionRecord(Struct, frozen=True, kw_only=True):
    """The records since BeginTransactionRecord take effect now."""

    TYPE: ClassVar[int] = 24
    VERSION: ClassVar[int] = 0

    unknown_fields: Mapping[int, object] = {}


class AbortTransactionRecord(Struct, frozen=True, kw_only=True):
    """The records since BeginTransactionRecord never took effect."""

    TYPE: ClassVar[int] = 25
    VERSION: ClassVar[int] = 0

    reason: str = ""
    unknown_fields: Mapping[int, object] = {}


class ClusterRecord(Struct, frozen=True, kw_only=True):
    """The cluster's id, the first record of every metadata log.

    Kafka has no such record: it writes the id to every disk before the first start. Numbers from 10,000 on are not
    Kafka's.
    """

    TYPE: ClassVar[int] = 10_000
    VERSION: ClassVar[int] = 0

    cluster_id: str
    unknown_fields: Mapping[int, object] = {}


MetadataRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | RegisterControllerRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | ClusterRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | ClientQuotaRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
)
