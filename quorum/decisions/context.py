"""What a decision may know besides the metadata, and what it answers.

Kafka: `QuorumController.ControllerWriteEvent`, `ControllerResult`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from msgspec import Struct

from ...protocol.ids import NodeId
from ..configs.effective import BrokerConfigs
from ..metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from ..metadata.records import MetadataRecord
from ..permissions.requester import Requester
from ..permissions.ruling import AuthorizerSettings
from ..permissions.token_settings import DelegationTokenConfig
from .mutation_quota import NO_MUTATIONS, MutationAllowance, Mutations

if TYPE_CHECKING:
    from random import Random


RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
ResponseT_co = TypeVar("ResponseT_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """What the controller takes from the node's configuration.

    - `voter_ids`: the controllers of the quorum, this one among them.
    - `properties`: server.properties as text, and `own_defaults`, the defaults that differ from Kafka's: what topics
      have when neither they nor the brokers' dynamic configs say otherwise.
    - `num_partitions` (`num.partitions`), `default_replication_factor` (`default.replication.factor`): for topics that
      do not say.
    - `is_replication_factor_capped`: the default is as many replicas as there are brokers when these are fewer.
    - `min_insync_replicas` (`min.insync.replicas`): for topics and clusters that do not say; decides who stays eligible
      to lead.
    - `unclean_leader_election_enable` (`unclean.leader.election.enable`): for topics that do not say.
    - `broker_session_timeout_ms` (`broker.session.timeout.ms`): how long a broker counts as alive after its last
      heartbeat.
    - `snapshot_bytes` (`metadata.log.max.record.bytes.between.snapshots`): how much a start may have to replay; larger
      means slower starts, smaller means more writing.
    - `snapshot_interval_ms` (`metadata.log.max.snapshot.interval.ms`): how long new records may be in the log only; 0
      means no limit.
    - `delegation_tokens`: None where there are no delegation tokens.
    - `authorizer`: what holds beside the ACLs; None where everyone may do everything.
    """

    node_id: NodeId
    voter_ids: tuple[NodeId, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    own_defaults: Mapping[str, str] = field(default_factory=dict)
    num_partitions: int = 1
    default_replication_factor: int = 1
    is_replication_factor_capped: bool = False
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    broker_session_timeout_ms: int = 9_000
    snapshot_bytes: int = 20 * 1024 * 1024
    snapshot_interval_ms: int = 3_600_000
    authorizer: AuthorizerSettings | None = None
    delegation_tokens: DelegationTokenConfig | None = None


class DecisionContext(Struct, frozen=True, kw_only=True):
    """Given to every decision.

    - `next_offset`: where the decision's first record will stand; it becomes the epoch of a registering broker.
    - `random`: the only source of chance (topic ids, where the placement starts).
    - `has_live_session(broker_id)`: whether the broker was heard within its session.
    - `change`: the name of the request, for the records of what must not be done twice (`records.py`).
    - `wall_ms`: milliseconds since 1970, by this node's clock.
    - `requester`: the client that asks, where it matters who asks.
    - `allowance`: how many partitions it may have created and deleted; None without a quota.
    """

    next_offset: int
    random: "Random"
    config: ControllerConfig
    has_live_session: Callable[[NodeId], bool]
    change: str = ""
    wall_ms: int = 0
    requester: Requester | None = None
    allowance: MutationAllowance | None = None

    def broker_configs(self, image: MetadataImage) -> BrokerConfigs:
        """Return what is said about this node as a broker, from which topics and groups take what they do not say."""
        return BrokerConfigs(
            dynamic=image.configs.of(ConfigResource(ConfigResourceType.BROKER, str(self.config.node_id))),
            dynamic_default=image.configs.of(ConfigResource(ConfigResourceType.BROKER, "")),
            static=self.config.properties,
            own_defaults=self.config.own_defaults,
        )


class ControllerResult(Struct, Generic[ResponseT_co], frozen=True, kw_only=True):
    """The records that make it so, all or nothing, and the answer for when they are committed and replayed."""

    records: tuple[MetadataRecord, ...]
    response: ResponseT_co
    heard_broker: NodeId | None = None
    """The broker whose session begins anew with this request."""
    left_broker: NodeId | None = None
    """The broker whose session ends with this request."""
    heard_offset: int | None = None
    """How far that broker has replayed the metadata, where it said so."""
    mutations: Mutations = NO_MUTATIONS
    """What the quota of the client counts."""


class Decision(Protocol[RequestT_contra, ResponseT_co]):
    """A pure function that changes nothing. Raises KafkaError when the whole request is refused."""

    def __call__(
        self, image: MetadataImage, request: RequestT_contra, context: DecisionContext, /
    ) -> "ControllerResult[ResponseT_co]": ...
