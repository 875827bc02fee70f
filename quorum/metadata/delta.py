"""The changes since an image, and the image they make. Kafka: `MetadataDelta`, `TopicsDelta`.

A delta is filled by replaying committed records, or by comparing two images (after a snapshot arrived, and for a
publisher that joins late). It reports what changed by key; the new values are in the new image as well.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import TypeAlias, TypeVar, assert_never
from uuid import UUID

from ...protocol.ids import BrokerEpoch, ControllerEpoch, NodeId, TopicId
from ...protocol.structs import replace
from ..configs.own_keys import says_drained
from . import records, security_records
from .acls import Acl
from .image import (
    BrokerRegistration,
    ConfigResource,
    ConfigResourceType,
    ConfigsImage,
    ControllerRegistration,
    MetadataImage,
)
from .persistent_map import PersistentMap
from .records import MetadataRecord
from .security_image import DelegationToken, QuotaEntity, ScramCredential, ScramUser
from .topics_delta import ReplayError, TopicsDelta

ChangedTopics: TypeAlias = Mapping[TopicId, str]
"""Names of topics that one request created, deleted or gave partitions, by id."""


class MetadataDelta:
    """Changes since `base`, filled by `replay`; `apply` makes the new image and leaves `base` as it was.

    For publishers: `topics`, `configs` (every changed resource with its new values, empty when it has none any more),
    `brokers` (None for one that is gone), `controllers`, `features` (None for one that is gone),
    `has_producer_ids_changed`; `acls`, `scram_credentials` and `delegation_tokens` (None for one that is gone);
    `client_quotas` (every changed entity with its new values, empty when it has none any more).
    """

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.is_gathered = False
        """Of several entries at once, or of two images: what happened between is unknown."""
        self.by_change: dict[str, dict[TopicId, str]] | None = {}
        """The topics that requests changed, by the names of those requests; None of two images."""
        self.topics = TopicsDelta(base.topics)
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.brokers: dict[int, BrokerRegistration | None] = {}
        self.controllers: dict[NodeId, ControllerRegistration | None] = {}
        self.features: dict[str, int | None] = {}
        self.acls: dict[UUID, Acl | None] = {}
        self.scram_credentials: dict[ScramUser, ScramCredential | None] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.delegation_tokens: dict[str, DelegationToken | None] = {}
        self.cluster_id = base.cluster_id
        self.next_producer_id = base.next_producer_id

    @classmethod
    def between(cls, base: MetadataImage, image: MetadataImage) -> "MetadataDelta":
        """Compare two images; what is in `base` only counts as deleted. Costs the size of both."""
        delta = cls(base)
        delta.is_gathered = True
        delta.by_change = None
        delta.cluster_id = image.cluster_id
        delta.next_producer_id = image.next_producer_id
        delta.topics.compare(image.topics)
        for resource in base.configs.by_resource.keys() | image.configs.by_resource.keys():
            if base.configs.of(resource) != image.configs.of(resource):
                delta.configs[resource] = dict(image.configs.of(resource))
        _compare(delta.brokers, base.brokers, image.brokers)
        _compare(delta.controllers, base.controllers, image.controllers)
        _compare(delta.features, base.features, image.features)
        _compare(delta.acls, base.acls.by_id, image.acls.by_id)
        _compare(delta.scram_credentials, base.scram_credentials, image.scram_credentials)
        _compare(delta.delegation_tokens, base.delegation_tokens, image.delegation_tokens)
        for entity in base.client_quotas.keys() | image.client_quotas.keys():
            if base.client_quotas.get(entity) != image.client_quotas.get(entity):
                delta.client_quotas[entity] = dict(image.client_quotas.get(entity, {}))
        return delta

    @property
    def has_producer_ids_changed(self) -> bool:
        return self.next_producer_id != self.base.next_producer_id

    @property
    def is_empty(self) -> bool:
        return (
            not (self.topics.changed or self.topics.deleted or self.configs)
            and not (self.brokers or self.controllers or self.features)
            and not (self.acls or self.scram_credentials or self.client_quotas or self.delegation_tokens)
            and not self.has_producer_ids_changed
            and self.cluster_id == self.base.cluster_id
        )

    def replay(self, record: MetadataRecord) -> None:
        """Take in one committed record. Raises ReplayError when it does not fit."""
        match record:
            case records.PartitionChangeRecord():
                self.topics.change_partition(record)
            case records.PartitionRecord():
                name = self.topics.put_partition(record)
                self._note_change(record.change, record.topic_id, name)
            case records.TopicRecord():
                self.topics.create(record)
                self._note_change(record.change, record.topic_id, record.name)
            case records.RemoveTopicRecord():
                name = self.topics.remove(record)
                self._note_change(record.change, record.topic_id, name)
                resource = ConfigResource(ConfigResourceType.TOPIC, name)
                if resource in self.configs or resource in self.base.configs.by_resource:
                    self.configs[resource] = {}
            case records.ConfigRecord():
                self._replay_config(record)
            case records.RegisterBrokerRecord():
                self.brokers[record.broker_id] = BrokerRegistration(
                    id=record.broker_id,
                    epoch=record.broker_epoch,
                    incarnation_id=record.incarnation_id,
                    endpoints=record.endpoints,
                    features=record.features,
                    rack=record.rack,
                    is_fenced=record.is_fenced,
                    in_controlled_shutdown=record.in_controlled_shutdown,
                    directories=record.log_dirs,
                    cordoned_directories=record.cordoned_log_dirs,
                )
            case records.UnregisterBrokerRecord():
                self._broker(record.broker_id, record.broker_epoch)
                self.brokers[record.broker_id] = None
            case records.BrokerRegistrationChangeRecord():
                self._replay_broker_change(record)
            case records.RegisterControllerRecord():
                self.controllers[record.controller_id] = ControllerRegistration(
                    id=record.controller_id,
                    incarnation_id=record.incarnation_id,
                    endpoints=record.endpoints,
                    features=record.features,
                )
            case records.FeatureLevelRecord():
                self.features[record.name] = record.feature_level or None
            case records.ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case records.ClusterRecord():
                if self.cluster_id not in (None, record.cluster_id):
                    raise ReplayError(f"the cluster id changes from {self.cluster_id} to {record.cluster_id}")
                self.cluster_id = record.cluster_id
            case security_records.AccessControlEntryRecord():
                self.acls[record.id] = Acl(
                    resource_type=record.resource_type,
                    resource_name=record.resource_name,
                    pattern_type=record.pattern_type,
                    principal=record.principal,
                    host=record.host,
                    operation=record.operation,
                    permission_type=record.permission_type,
                )
            case security_records.RemoveAccessControlEntryRecord():
                _remove(self.acls, self.base.acls.by_id, record.id, "ACL")
            case security_records.UserScramCredentialRecord():
                self.scram_credentials[ScramUser(record.name, record.mechanism)] = ScramCredential(
                    salt=record.salt,
                    stored_key=record.stored_key,
                    server_key=record.server_key,
                    iterations=record.iterations,
                )
            case security_records.RemoveUserScramCredentialRecord():
                user = ScramUser(record.name, record.mechanism)
                _remove(self.scram_credentials, self.base.scram_credentials, user, "SCRAM credential")
            case security_records.ClientQuotaRecord():
                self._replay_quota(record)
            case security_records.DelegationTokenRecord():
                self.delegation_tokens[record.token_id] = DelegationToken(
                    token_id=record.token_id,
                    owner=record.owner,
                    requester=record.requester,
                    renewers=record.renewers,
                    issue_timestamp_ms=record.issue_timestamp,
                    max_timestamp_ms=record.max_timestamp,
                    expiration_timestamp_ms=record.expiration_timestamp,
                )
            case security_records.RemoveDelegationTokenRecord():
                _remove(self.delegation_tokens, self.base.delegation_tokens, record.token_id, "delegation token")
            case records.BeginTransactionRecord() | records.EndTransactionRecord() | records.AbortTransactionRecord():
                raise ReplayError(f"{type(record).__name__} belongs to the log, not to the state")
            case _:
                assert_never(record)

    def _note_change(self, change: str, topic_id: TopicId, name: str) -> None:
        if change and self.by_change is not None:
            self.by_change.setdefault(change, {})[topic_id] = name

    def _replay_config(self, record: records.ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        values = self.configs.get(resource)
        if values is None:
            values = self.configs[resource] = dict(self.base.configs.of(resource))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _replay_quota(self, record: security_records.ClientQuotaRecord) -> None:
        entity = tuple(sorted([(part.entity_type, part.entity_name) for part in record.entity], key=itemgetter(0)))
        values = self.client_quotas.get(entity)
        if values is None:
            values = self.client_quotas[entity] = dict(self.base.client_quotas.get(entity, {}))
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value

    def _broker(self, broker_id: NodeId, epoch: BrokerEpoch) -> BrokerRegistration:
        broker = self.brokers[broker_id] if broker_id in self.brokers else self.base.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise ReplayError(f"a record names broker {broker_id} with epoch {epoch}; registered is {broker}")
        return broker

    def _replay_broker_change(self, record: records.BrokerRegistrationChangeRecord) -> None:
        before = self._broker(record.broker_id, record.broker_epoch)
        self.brokers[record.broker_id] = replace(
            before,
            is_fenced=before.is_fenced if record.is_fenced is None else record.is_fenced,
            in_controlled_shutdown=(
                before.in_controlled_shutdown
                if record.in_controlled_shutdown is None
                else record.in_controlled_shutdown
            ),
            directories=before.directories if record.log_dirs is None else record.log_dirs,
            cordoned_directories=(
                before.cordoned_directories if record.cordoned_log_dirs is None else record.cordoned_log_dirs
            ),
        )

    def apply(self, *, offset: int, epoch: ControllerEpoch, timestamp_ms: int) -> MetadataImage:
        """Return the image after the changes, at the place of the entry that completed them."""
        base = self.base
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            cluster_id=self.cluster_id,
            topics=self.topics.apply(),
            configs=_apply_configs(base.configs, self.configs),
            brokers=_apply_optional(base.brokers, self.brokers),
            controllers=_apply_optional(base.controllers, self.controllers),
            features=_apply_optional(base.features, self.features),
            next_producer_id=self.next_producer_id,
            acls=base.acls.changed(self.acls),
            scram_credentials=_evolve(base.scram_credentials, self.scram_credentials),
            client_quotas=_evolve(
                base.client_quotas, {entity: values or None for entity, values in self.client_quotas.items()}
            ),
            delegation_tokens=_evolve(base.delegation_tokens, self.delegation_tokens),
        )


def _apply_configs(base: ConfigsImage, changes: Mapping[ConfigResource, dict[str, str]]) -> ConfigsImage:
    if not changes:
        return base
    return ConfigsImage(
        drained_brokers=_drained_brokers(base, changes),
        by_resource=base.by_resource.evolve(
            put={resource: values for resource, values in changes.items() if values},
            remove=[resource for resource, values in changes.items() if not values],
        ),
    )


def _drained_brokers(base: ConfigsImage, changes: Mapping[ConfigResource, dict[str, str]]) -> frozenset[NodeId]:
    drained = set(base.drained_brokers)
    for resource, values in changes.items():
        # The name is what a request gave: a broker reads its configs under its id alone, not under "+1" or "01".
        if resource.type == ConfigResourceType.BROKER and resource.name.isdecimal():
            broker_id = NodeId(int(resource.name))
            if str(broker_id) == resource.name:
                drained.discard(broker_id)
                if says_drained(values):
                    drained.add(broker_id)
    return frozenset(drained)


K = TypeVar("K")
V = TypeVar("V")


def _compare(changes: dict[K, V | None], base: Mapping[K, V], after: Mapping[K, V]) -> None:
    for key in base.keys() | after.keys():
        if base.get(key) != after.get(key):
            changes[key] = after.get(key)


def _remove(changes: dict[K, V | None], base: Mapping[K, V], key: K, kind: str) -> None:
    if (changes[key] if key in changes else base.get(key)) is None:
        raise ReplayError(f"a record removes {kind} {key}, which is not there")
    changes[key] = None


def _evolve(base: PersistentMap[K, V], changes: Mapping[K, V | None]) -> PersistentMap[K, V]:
    if not changes:
        return base
    return base.evolve(
        put={key: value for key, value in changes.items() if value is not None},
        remove=[key for key, value in changes.items() if value is None and key in base],
    )


def _apply_optional(base: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    if not changes:
        return base
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result
