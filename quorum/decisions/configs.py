"""Changing configs. Kafka: `ConfigurationControlManager`.

IncrementalAlterConfigs, versions 0-1 (KIP-339), and AlterConfigs, versions 0-2, for topics, brokers, the defaults of
all brokers, groups and client metrics. What only a broker can check (its own dynamic configs, log levels) is checked
before a request comes here. Checks, codes and sentences are those of Apache Kafka 4.3.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final

from kio.schema.alter_configs.v2.request import AlterableConfig as LegacyConfig
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as LegacyResponse
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kio.static.primitive import i8

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE
from ..configs.effective import BrokerConfigs
from ..configs.own_keys import BROKER_DRAINED
from ..metadata.features import (
    CORDONED_DIRECTORIES_VERSION,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    has_cordoned_directories,
)
from ..metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from ..metadata.records import ConfigRecord, MetadataRecord, PartitionChangeRecord
from .answers import Refusal, refusal, wire_code
from .change import replayed
from .config_rules import default_of, is_list, validate_configs
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .drains import moved_leaderships
from .partition_changes import MIN_INSYNC_REPLICAS

CORDONED_LOG_DIRS = "cordoned.log.dirs"
MAX_VALUE_BYTES = 32_767


class Operation(IntEnum):
    """What to do with one config, by Kafka's numbers (`AlterConfigOp`)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(
    image: MetadataImage, request: IncrementalAlterConfigsRequest, context: DecisionContext
) -> ControllerResult[IncrementalAlterConfigsResponse]:
    """Change single configs; of each resource, all changes or none."""
    broker = context.broker_configs(image)
    records: list[MetadataRecord] = []
    responses: list[AlterConfigsResourceResponse] = []
    repeated = _repeated(ConfigResource(item.resource_type, item.resource_name) for item in request.resources)
    for item in request.resources:
        resource = ConfigResource(item.resource_type, item.resource_name)
        try:
            _check_resource(resource, repeated)
            _check_configs(item.configs)
            current = image.configs.of(resource)
            changes = {
                config.name: _changed(resource, config, current.get(config.name), broker) for config in item.configs
            }
            records += _alter(image, resource, changes, broker)
            reason = Refusal(ErrorCode.NONE, None)
        except KafkaError as error:
            reason = refusal(error)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=wire_code(reason.code),
                error_message=reason.message,
                resource_type=i8(resource.type),
                resource_name=resource.name,
            )
        )
    records += _drained(image, records, context)
    return ControllerResult(
        records=() if request.validate_only else tuple(records),
        response=IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=tuple(responses)),
    )


def alter_configs(
    image: MetadataImage, request: AlterConfigsRequest, context: DecisionContext
) -> ControllerResult[AlterConfigsResponse]:
    """Replace all configs of each resource: what the request does not name goes back to its default."""
    broker = context.broker_configs(image)
    records: list[MetadataRecord] = []
    responses: list[LegacyResponse] = []
    repeated = _repeated(ConfigResource(item.resource_type, item.resource_name) for item in request.resources)
    for item in request.resources:
        resource = ConfigResource(item.resource_type, item.resource_name)
        try:
            _check_resource(resource, repeated)
            _check_configs(item.configs)
            changes: dict[str, str | None] = dict.fromkeys(image.configs.of(resource))
            changes.update({config.name: config.value for config in item.configs})
            records += _alter(image, resource, changes, broker)
            reason = Refusal(ErrorCode.NONE, None)
        except KafkaError as error:
            reason = refusal(error)
        responses.append(
            LegacyResponse(
                error_code=wire_code(reason.code),
                error_message=reason.message,
                resource_type=i8(resource.type),
                resource_name=resource.name,
            )
        )
    records += _drained(image, records, context)
    return ControllerResult(
        records=() if request.validate_only else tuple(records),
        response=AlterConfigsResponse(throttle_time=NO_THROTTLE, responses=tuple(responses)),
    )


def _repeated(resources: Iterable[ConfigResource]) -> set[ConfigResource]:
    return {resource for resource, count in Counter(resources).items() if count > 1}


def _check_resource(resource: ConfigResource, repeated: set[ConfigResource]) -> None:
    if resource in repeated:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if resource.type == ConfigResourceType.BROKER_LOGGER:
        # Only a node itself can, and AlterConfigs never does.
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")
    if resource.type not in _ALTERABLE:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")


_ALTERABLE = {
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
}


def _check_configs(configs: Sequence[AlterableConfig | LegacyConfig]) -> None:
    if len({config.name for config in configs}) < len(configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [config.name for config in configs if config.value is None and not _is_deletion(config)]
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")


def _is_deletion(config: AlterableConfig | LegacyConfig) -> bool:
    return isinstance(config, AlterableConfig) and config.config_operation == int(Operation.DELETE)


def _changed(
    resource: ConfigResource, config: AlterableConfig, current: str | None, broker: BrokerConfigs
) -> str | None:
    """Return the config's value after the operation."""
    match int(config.config_operation):
        case Operation.SET:
            return config.value
        case Operation.DELETE:
            return None
        case Operation.APPEND | Operation.SUBTRACT as number:
            if not is_list(resource, config.name):
                operation = Operation(number).name
                message = f"Can't {operation} to key {config.name} because its type is not LIST."
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)
            before = default_of(resource, config.name, broker) if current is None else current
            items = [item for item in (before or "").split(",") if item]
            given = (config.value or "").split(",")
            if number == Operation.APPEND:
                items += [item for item in dict.fromkeys(given) if item not in items]
            else:
                items = [item for item in items if item not in given]
            return ",".join(items)
        case number:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {number}")


def _alter(
    image: MetadataImage, resource: ConfigResource, changes: Mapping[str, str | None], broker: BrokerConfigs
) -> list[MetadataRecord]:
    current = image.configs.of(resource)
    # A broker reads files again when its configs are written, changed or not (KAFKA-14136).
    is_written_always = resource.type == ConfigResourceType.BROKER
    changed = {name: value for name, value in changes.items() if is_written_always or current.get(name) != value}
    for value in changed.values():
        if value is not None and len(value.encode()) > MAX_VALUE_BYTES:
            message = (
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_BYTES} bytes."
            )
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    after = {name: value for name, value in (dict(current) | changed).items() if value is not None}
    if CORDONED_LOG_DIRS in changed and not has_cordoned_directories(image.features):
        message = (
            f"The {CORDONED_LOG_DIRS} configuration value cannot be set because it requires metadata.version >= "
            f"{CORDONED_DIRECTORIES_VERSION}"
        )
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    _check_min_insync_replicas(image, resource, changed)
    validate_configs(resource, after, broker, current)
    _check_existence(image, resource)
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in changed.items()
    ]
    if current.get(MIN_INSYNC_REPLICAS) != after.get(MIN_INSYNC_REPLICAS):
        records += _without_elr(image, resource)
    return records


def _check_min_insync_replicas(
    image: MetadataImage, resource: ConfigResource, changed: Mapping[str, str | None]
) -> None:
    """With eligible leader replicas, all must agree on what a complete ISR is (KIP-966)."""
    is_hit = resource.type == ConfigResourceType.BROKER and MIN_INSYNC_REPLICAS in changed
    if not is_hit or not image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0):
        return
    if resource.name:
        message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    if changed[MIN_INSYNC_REPLICAS] is None:
        message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)


def _check_existence(image: MetadataImage, resource: ConfigResource) -> None:
    if resource.type == ConfigResourceType.TOPIC and resource.name not in image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    if resource.type == ConfigResourceType.BROKER and resource.name and int(resource.name) not in image.brokers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {resource.name} found.")


def _drained(image: MetadataImage, records: Sequence[MetadataRecord], context: DecisionContext) -> list[MetadataRecord]:
    """Return the leaderships that move because these records drain brokers, or end that; all brokers at once."""
    if not any(isinstance(record, ConfigRecord) and record.name == BROKER_DRAINED for record in records):
        return []
    return moved_leaderships(replayed(image, records), context.config, before=image.configs.drained_brokers)


def _without_elr(image: MetadataImage, resource: ConfigResource) -> list[MetadataRecord]:
    """Return the records that clear the ELR where it was made under another `min.insync.replicas` (KIP-966).

    A partition without a leader keeps it: nothing was committed since, and it is its only way back.
    """
    topic = image.topics.by_name.get(resource.name) if resource.type == ConfigResourceType.TOPIC else None
    return [
        PartitionChangeRecord(topic_id=found.topic_id, partition_id=index, elr=())
        for found in (image.topics.by_id.values() if topic is None else [topic])
        for index, partition in enumerate(found.partitions)
        if partition.isr and partition.elr
    ]


ALTER_CONFIGS: Final = ControllerRequest(ApiKey.ALTER_CONFIGS, alter_configs)
INCREMENTAL_ALTER_CONFIGS: Final = ControllerRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs)
