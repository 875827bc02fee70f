"""Which values the configs of a resource may have."""

from collections.abc import Mapping

from ...protocol.errors import ErrorCode, KafkaError
from ..configs.definition import ConfigType, format_value
from ..configs.effective import BrokerConfigs, defaults_of
from ..configs.own_keys import BROKER_DRAINED
from ..configs.table import ConfigTable, broker_configs, client_metrics_configs, group_configs, topic_configs
from ..configs.validation import (
    validate_broker_config,
    validate_client_metrics_config,
    validate_group_config,
    validate_topic_config,
)
from ..metadata.image import ConfigResource, ConfigResourceType
from .topic_names import invalid_topic_name


def is_list(resource: ConfigResource, name: str) -> bool:
    """Whether single items can be added to a config and taken from it."""
    table = _table(resource.type)
    return name in table and table[name].type is ConfigType.LIST


def default_of(resource: ConfigResource, name: str, broker: BrokerConfigs) -> str | None:
    """Return the value that a known config has when it is not set for the resource itself."""
    table = _table(resource.type)
    if resource.type in (ConfigResourceType.TOPIC, ConfigResourceType.GROUP):
        return format_value(defaults_of(table, broker.overlaid())[name])
    return table[name].default


def validate_configs(
    resource: ConfigResource, values: Mapping[str, str], broker: BrokerConfigs, existing: Mapping[str, str]
) -> None:
    """Check a resource's name and all its configs as they will be; `existing` are those that it has.

    Raises KafkaError(INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG) with Kafka's sentence.
    """
    match resource.type:
        case ConfigResourceType.TOPIC:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            invalid = invalid_topic_name(resource.name)
            if invalid is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
            validate_topic_config(values, in_effect=broker.overlaid(), existing=existing)
        case ConfigResourceType.BROKER:
            _check_broker_name(resource.name)
            validate_broker_config(values)
            if not resource.name and BROKER_DRAINED in values:
                message = (
                    "Cannot update these configs at default cluster level, broker id must be specified: "
                    f"[{BROKER_DRAINED}]"
                )
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        case ConfigResourceType.GROUP:
            if not resource.name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            validate_group_config(values, in_effect=broker.overlaid())
        case _:
            if not resource.name:
                message = "Subscription name can't be empty"
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
            validate_client_metrics_config(values)


def _check_broker_name(name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        message = "Unable to parse broker name as a base 10 number."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None
    if broker_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _table(resource_type: int) -> ConfigTable:
    match resource_type:
        case ConfigResourceType.TOPIC:
            return topic_configs()
        case ConfigResourceType.GROUP:
            return group_configs()
        case ConfigResourceType.CLIENT_METRICS:
            return client_metrics_configs()
        case _:
            return broker_configs()
