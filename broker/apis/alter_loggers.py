"""Logger levels by IncrementalAlterConfigs 0 to 1 (KIP-412): changed at once, on this node only, until it stops.

Checks, codes and sentences are those of Apache Kafka 4.3.1 (`RuntimeLoggerManager`).
"""

from __future__ import annotations

from kio.schema.incremental_alter_configs.v1.request import AlterableConfig as IncrementalConfig
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as IncrementalResource

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.decisions.configs import Operation
from ..configuration.loggers import ROOT_LOGGER, Loggers
from ..configuration.penstock_keys import LOG_LEVELS
from ..configuration.topic_configs import ConfigResolver
from .config_resources import check_node_id


def alter_loggers(
    loggers: Loggers, resolver: ConfigResolver, resource: IncrementalResource, *, validate_only: bool
) -> None:
    """Changes all levels of the resource, or none: then raises KafkaError (INVALID_REQUEST, INVALID_CONFIG)."""
    check_node_id(resolver, resource.resource_name, "Node id", "Unexpected node id. Expected {}, but")
    for config in resource.configs:
        _check(config, loggers)
    if resource.configs and not validate_only:
        loggers.change(
            {
                config.name: None if int(config.config_operation) == Operation.DELETE else config.value
                for config in resource.configs
            }
        )


def _check(config: IncrementalConfig, loggers: Loggers) -> None:
    name = config.name
    match int(config.config_operation):
        case Operation.SET:
            _check_existence(name, loggers)
            if config.value not in LOG_LEVELS:
                message = (
                    f"Cannot set the log level of {name} to {config.value} as it is not a supported log level. "
                    f"Valid log levels are {', '.join(sorted(LOG_LEVELS))}"
                )
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        case Operation.DELETE:
            _check_existence(name, loggers)
            if name == ROOT_LOGGER:
                message = f"Removing the log level of the {ROOT_LOGGER} logger is not allowed"
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        case Operation.APPEND | Operation.SUBTRACT as operation:
            message = f"{Operation(operation).name} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        case number:
            message = f"Unknown operation type {number} is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_existence(name: str, loggers: Loggers) -> None:
    if name not in loggers:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
