"""Where an older version of a message says the same thing in another field, and where it cannot be said in the latest.

Handlers are written once, against the latest version's classes. A field that only newer versions have gets Kafka's
default; a field that only older versions have is listed here: translated, or given up with the reason.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.static.protocol import Entity
from msgspec import Struct

from .apis import APIS, ApiKey
from .errors import error_info
from .schemas import FieldSchema, fields_of

_Values: TypeAlias = dict[str, Any]
_Getter: TypeAlias = Callable[[Any], object]

# The latest versions of these name topics by id only (or, UpdateFeatures, report no results), which cannot be made from
# what older versions say. Up to the version here, that version's classes are the ones that handlers see.
LAST_OF_FORMER_CLASSES: Mapping[int, int] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.UPDATE_FEATURES: 1,
}


def class_version(api_key: int, version: int) -> int:
    """The version whose classes stand for `version`: the latest, but for the few APIs whose latest lost something."""
    former = LAST_OF_FORMER_CLASSES.get(api_key, -1)
    return former if version <= former else APIS[api_key].max_version


class Translation(Struct, frozen=True, kw_only=True):
    """How classes up to `last_version` become a newer class and back.

    `upgrade` changes the values by name into what the newer class (its second argument) takes. `downgrade` has a getter
    from the newer class for each field of the older one that differs.
    """

    last_version: int
    upgrade: Callable[[_Values, type[Entity]], None] | None = None
    downgrade: Mapping[str, _Getter] = {}


def upgrade_of(version_class: type[Entity], target_class: type[Entity]) -> Callable[[_Values], None] | None:
    """What is to be done with the values read from `version_class` before a `target_class` is made of them.

    LookupError when a field would be lost that is not given up here.
    """
    translation = _translation(version_class, target_class)
    upgrade = None if translation is None else translation.upgrade
    surplus = {one.name for one in fields_of(version_class)} - {one.name for one in fields_of(target_class)}
    if upgrade is not None and translation is not None:
        surplus -= translation.downgrade.keys()
    unknown = [name for name in surplus if (version_class.__name__, name) not in _GIVEN_UP]
    if unknown:
        raise LookupError(f"{version_class.__module__}.{version_class.__name__}: {unknown} would be lost")
    if upgrade is None and not surplus:
        return None

    def apply(values: _Values) -> None:
        if upgrade is not None:
            upgrade(values, target_class)
        for name in surplus:
            del values[name]

    return apply


def downgrade_of(version_class: type[Entity], source_class: type[Entity], name: str) -> _Getter | None:
    """What gives the field `name` of `version_class` from a `source_class`; None when it is the field of the same name.

    LookupError when there is nothing to give it from.
    """
    translation = _translation(version_class, source_class)
    if translation is not None and name in translation.downgrade:
        return translation.downgrade[name]
    if name in {one.name for one in fields_of(source_class)}:
        return None
    if (version_class.__name__, name) not in _GIVEN_UP:
        raise LookupError(f"{version_class.__module__}.{version_class.__name__}.{name} has no source")
    neutral = _field(version_class, name).neutral
    return lambda _: neutral


def _translation(old: type[Entity], new: type[Entity]) -> Translation | None:
    # Nested classes of requests and responses share names; their modules tell them apart.
    direction = old.__module__.rpartition(".")[2]
    translation = _TRANSLATIONS.get((getattr(old, "__api_key__", -1), direction, old.__name__))
    if translation is None or not old.__version__ <= translation.last_version < new.__version__:
        return None
    return translation


def _field(entity: type[Entity], name: str) -> FieldSchema:
    return next(one for one in fields_of(entity) if one.name == name)


def _item(entity: Any, name: str) -> Any:
    """The class of the items of a struct array."""
    return _field(entity, name).entity


def _copy(items: tuple[Any, ...], target: Any) -> tuple[Any, ...]:
    """The same items in a newer class that has the same fields and perhaps more, nested ones too."""
    copies = []
    for item in items:
        values = {}
        for one in fields_of(target):
            value: Any = getattr(item, one.name, one.neutral)
            values[one.name] = _copy(value, one.entity) if one.entity is not None and one.is_array else value
        copies.append(target(**values))
    return tuple(copies)


# Fields that say nothing to us: (class, field).
_GIVEN_UP = frozenset(
    {
        # Only Metadata 8 to 10 can say these; the classes of protocol.metadata, which brokers use, have them.
        ("MetadataRequest", "include_cluster_authorized_operations"),
        ("MetadataResponse", "cluster_authorized_operations"),
        # Retention of offsets is the broker's configuration (KIP-211).
        ("OffsetCommitRequest", "retention_time"),
        # Apache Kafka's controllers do not look at it: UpdateFeatures 0 only upgrades.
        ("FeatureUpdateKey", "allow_downgrade"),
    }
)

_CLIENT_METRICS = 16
_V3_AND_BELOW = "v3_and_below_"


def _metadata_request(values: _Values, _: type[Entity]) -> None:
    # Version 0 has no null: no topics means all of them. In later versions it means none.
    values["topics"] = values["topics"] or None


def _fetch_request(values: _Values, _: type[Entity]) -> None:
    state = values["replica_state"]
    values["replica_state"] = type(state)(replica_id=values.pop("replica_id"), replica_epoch=state.replica_epoch)


def _offset_fetch_request(values: _Values, target: type[Entity]) -> None:
    group = _item(target, "groups")
    topics = values.pop("topics")
    copied = None if topics is None else _copy(topics, _item(group, "topics"))
    values["groups"] = (group(group_id=values.pop("group_id"), topics=copied),)


def _offset_fetch_response(values: _Values, target: type[Entity]) -> None:
    group = _item(target, "groups")
    topics = _copy(values.pop("topics"), _item(group, "topics"))
    error_code = values.pop("error_code", KioErrorCode.none)
    values["groups"] = (group(group_id="", topics=topics, error_code=error_code),)


def _find_coordinator_request(values: _Values, _: type[Entity]) -> None:
    values["coordinator_keys"] = (values.pop("key"),)


def _find_coordinator_response(values: _Values, target: type[Entity]) -> None:
    found = {name: values.pop(name) for name in ("node_id", "host", "port", "error_code")}
    message = values.pop("error_message", None)
    values["coordinators"] = (_item(target, "coordinators")(key="", error_message=message, **found),)


def _coordinator_message(coordinator: Any) -> str:
    message: str | None = coordinator.error_message
    return message or (error_info(coordinator.error_code).sentence if coordinator.error_code else "")


def _list_config_resources_request(values: _Values, _: type[Entity]) -> None:
    # Version 0 was ListClientMetricsResources (KIP-714, KIP-1142).
    values["resource_types"] = (_CLIENT_METRICS,)


def _join_group_request(values: _Values, _: type[Entity]) -> None:
    # Before version 1 the session timeout was the rebalance timeout as well (KIP-62).
    values["rebalance_timeout"] = values["session_timeout"]


def _leave_group_request(values: _Values, target: type[Entity]) -> None:
    values["members"] = (_item(target, "members")(member_id=values.pop("member_id"), group_instance_id=None),)


def _leave_group_error(response: Any) -> object:
    # Before version 3 the one member's error is the response's.
    if response.error_code == KioErrorCode.none and response.members:
        return response.members[0].error_code
    return response.error_code


def _delete_topics_request(values: _Values, target: type[Entity]) -> None:
    topic = _item(target, "topics")
    values["topics"] = tuple(topic(name=name, topic_id=None) for name in values.pop("topic_names"))


def _add_partitions_request(values: _Values, target: type[Entity]) -> None:
    transaction = _item(target, "transactions")
    said = {name: values.pop(_V3_AND_BELOW + name) for name in ("transactional_id", "producer_id", "producer_epoch")}
    topics = _copy(values.pop(_V3_AND_BELOW + "topics"), _item(transaction, "topics"))
    values["transactions"] = (transaction(topics=topics, **said),)


def _add_partitions_response(values: _Values, target: type[Entity]) -> None:
    result = _item(target, "results_by_transaction")
    topics = _copy(values.pop("results_by_topic_v3_and_below"), _item(result, "topic_results"))
    values["results_by_transaction"] = (result(transactional_id="", topic_results=topics),)


def _end_quorum_partition(values: _Values, target: type[Entity]) -> None:
    candidate = _item(target, "preferred_candidates")
    successors = values.pop("preferred_successors")
    values["preferred_candidates"] = tuple(
        candidate(candidate_id=successor, candidate_directory_id=None) for successor in successors
    )


def _alter_partition_partition(values: _Values, target: type[Entity]) -> None:
    broker = _item(target, "new_isr_with_epochs")
    values["new_isr_with_epochs"] = tuple(broker(broker_id=broker_id) for broker_id in values.pop("new_isr"))


_TRANSLATIONS: Mapping[tuple[int, str, str], Translation] = {
    (ApiKey.METADATA, "request", "MetadataRequest"): Translation(last_version=0, upgrade=_metadata_request),
    (ApiKey.FETCH, "request", "FetchRequest"): Translation(
        last_version=14,
        upgrade=_fetch_request,
        downgrade={"replica_id": lambda request: request.replica_state.replica_id},
    ),
    (ApiKey.OFFSET_FETCH, "request", "OffsetFetchRequest"): Translation(
        last_version=7,
        upgrade=_offset_fetch_request,
        downgrade={
            "group_id": lambda request: request.groups[0].group_id,
            "topics": lambda request: request.groups[0].topics,
        },
    ),
    (ApiKey.OFFSET_FETCH, "response", "OffsetFetchResponse"): Translation(
        last_version=7,
        upgrade=_offset_fetch_response,
        downgrade={
            "topics": lambda response: response.groups[0].topics,
            "error_code": lambda response: response.groups[0].error_code,
        },
    ),
    (ApiKey.FIND_COORDINATOR, "request", "FindCoordinatorRequest"): Translation(
        last_version=3,
        upgrade=_find_coordinator_request,
        downgrade={"key": lambda request: request.coordinator_keys[0]},
    ),
    (ApiKey.FIND_COORDINATOR, "response", "FindCoordinatorResponse"): Translation(
        last_version=3,
        upgrade=_find_coordinator_response,
        downgrade={
            "node_id": lambda response: response.coordinators[0].node_id,
            "host": lambda response: response.coordinators[0].host,
            "port": lambda response: response.coordinators[0].port,
            "error_code": lambda response: response.coordinators[0].error_code,
            "error_message": lambda response: _coordinator_message(response.coordinators[0]),
        },
    ),
    (ApiKey.LIST_CONFIG_RESOURCES, "request", "ListConfigResourcesRequest"): Translation(
        last_version=0, upgrade=_list_config_resources_request
    ),
    (ApiKey.JOIN_GROUP, "request", "JoinGroupRequest"): Translation(last_version=0, upgrade=_join_group_request),
    (ApiKey.LEAVE_GROUP, "request", "LeaveGroupRequest"): Translation(
        last_version=2,
        upgrade=_leave_group_request,
        downgrade={"member_id": lambda request: request.members[0].member_id},
    ),
    (ApiKey.LEAVE_GROUP, "response", "LeaveGroupResponse"): Translation(
        last_version=2, downgrade={"error_code": _leave_group_error}
    ),
    (ApiKey.DELETE_TOPICS, "request", "DeleteTopicsRequest"): Translation(
        last_version=5,
        upgrade=_delete_topics_request,
        downgrade={"topic_names": lambda request: tuple(topic.name for topic in request.topics)},
    ),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "request", "AddPartitionsToTxnRequest"): Translation(
        last_version=3,
        upgrade=_add_partitions_request,
        downgrade={
            "v3_and_below_topics": lambda request: request.transactions[0].topics,
            "v3_and_below_transactional_id": lambda request: request.transactions[0].transactional_id,
            "v3_and_below_producer_id": lambda request: request.transactions[0].producer_id,
            "v3_and_below_producer_epoch": lambda request: request.transactions[0].producer_epoch,
        },
    ),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "response", "AddPartitionsToTxnResponse"): Translation(
        last_version=3,
        upgrade=_add_partitions_response,
        downgrade={"results_by_topic_v3_and_below": lambda response: response.results_by_transaction[0].topic_results},
    ),
    (ApiKey.END_QUORUM_EPOCH, "request", "PartitionData"): Translation(
        last_version=0,
        upgrade=_end_quorum_partition,
        downgrade={
            "preferred_successors": lambda partition: tuple(one.candidate_id for one in partition.preferred_candidates)
        },
    ),
    (ApiKey.ALTER_PARTITION, "request", "PartitionData"): Translation(
        last_version=2,
        upgrade=_alter_partition_partition,
        downgrade={"new_isr": lambda partition: tuple(one.broker_id for one in partition.new_isr_with_epochs)},
    ),
}
