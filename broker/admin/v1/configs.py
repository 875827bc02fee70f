"""`/v1/configs`: configuration with what its keys mean, as Kafka's DescribeConfigs and the tables of keys have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult as Told
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.static.primitive import i8

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.messages import Request
from ....protocol.rest.described_configs import ConfigChanges, ConfigList, ConfigsQuery, ConfigSynonym, DescribedConfig
from ....quorum.configs.definition import ConfigDefinition, ConfigType, UpdateMode
from ....quorum.configs.effective import ConfigSource, broker_definition
from ....quorum.configs.own_keys import OWN_KEYS
from ....quorum.configs.table import client_metrics_configs, group_configs, topic_configs
from ....quorum.metadata.image import ConfigResourceType
from ...configuration.penstock_documentation import DOCUMENTATION
from ...configuration.penstock_keys import PENSTOCK_KEYS
from ..node_ports import ResponseT
from ..operation import Call, HttpError, Operation
from ..rules.kafka_answers import check

TYPES: Final[Mapping[str, ConfigResourceType]] = {
    "broker": ConfigResourceType.BROKER,
    "broker-logger": ConfigResourceType.BROKER_LOGGER,
    "topic": ConfigResourceType.TOPIC,
    "group": ConfigResourceType.GROUP,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
_OF_ONE_BROKER: Final = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})
_UPDATE_MODES: Final = {
    UpdateMode.READ_ONLY: "read-only",
    UpdateMode.PER_BROKER: "per-broker",
    UpdateMode.CLUSTER_WIDE: "cluster-wide",
}


_SET: Final = 0
_DELETE: Final = 1
"""Kafka: `AlterConfigOp.OpType`."""


async def _describe(call: Call) -> ConfigList:
    named = call.path["resource_type"]
    return await _described(call, _type(named), named, call.path["resource_name"])


def _type(named: str) -> ConfigResourceType:
    if named not in TYPES:
        raise HttpError(404, "Not Found", f"There are no configs of {named!r}, but of {', '.join(TYPES)}.")
    return TYPES[named]


async def _describe_defaults(call: Call) -> ConfigList:
    return await _described(call, ConfigResourceType.BROKER, "broker", "")


async def _alter(call: Call) -> None:
    await _altered(call, _type(call.path["resource_type"]), call.path["resource_name"])


async def _alter_defaults(call: Call) -> None:
    await _altered(call, ConfigResourceType.BROKER, "")


async def _altered(call: Call, kind: ConfigResourceType, name: str) -> None:
    changes: ConfigChanges = call.body
    configs = [
        AlterableConfig(name=key, config_operation=i8(_SET), value=value) for key, value in changes.set.items()
    ] + [AlterableConfig(name=key, config_operation=i8(_DELETE), value=None) for key in changes.unset]
    request = IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=tuple(configs)),),
        validate_only=changes.validate_only,
    )
    answer = await _ask(call, kind, name, request, IncrementalAlterConfigsResponse)
    (result,) = answer.responses
    check(result.error_code, result.error_message)


async def _described(call: Call, kind: ConfigResourceType, kind_name: str, name: str) -> ConfigList:
    query: ConfigsQuery = call.query
    keys = None if query.keys is None else tuple(key for key in query.keys.split(",") if key)
    resource = DescribeConfigsResource(resource_type=i8(kind), resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=(resource,), include_synonyms=True, include_documentation=query.documentation
    )
    answer = await _ask(call, kind, name, request, DescribeConfigsResponse)
    (result,) = answer.results
    check(result.error_code, result.error_message)
    configs = [_config(kind, one, has_documentation=query.documentation) for one in result.configs]
    if kind is ConfigResourceType.BROKER and name:
        known = {one.name for one in configs}
        configs += [
            _unset(key, has_documentation=query.documentation)
            for key in PENSTOCK_KEYS
            if key not in known and (keys is None or key in keys)
        ]
    return ConfigList(resource_type=kind_name, resource_name=name, configs=sorted(configs, key=lambda one: one.name))


async def _ask(call: Call, kind: ConfigResourceType, name: str, request: Request, answer: type[ResponseT]) -> ResponseT:
    """A broker and its loggers are described and altered by that broker alone."""
    if kind not in _OF_ONE_BROKER or not name or name == str(call.node.node_id):
        return await call.node.ask(request, answer, call.context)
    if not (name.isascii() and name.isdecimal() and int(name[:10]) in call.node.image.brokers):
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {name!r} is not registered.")
    return await call.node.ask_broker(int(name[:10]), request, answer, call.context)


def _config(kind: ConfigResourceType, told: Told, *, has_documentation: bool) -> DescribedConfig:
    definition = _definition(kind, told.name)
    ours = PENSTOCK_KEYS.get(told.name) if kind is ConfigResourceType.BROKER else None
    source = ConfigSource(int(told.config_source))
    documentation = told.documentation or (DOCUMENTATION.get(told.name) if kind is ConfigResourceType.BROKER else None)
    default = None if definition is None else definition.default
    kind_of_value = ConfigType(int(told.config_type))
    return DescribedConfig(
        name=told.name,
        value=told.value,
        default=default if ours is None else ours.default,
        type=(kind_of_value if ours is None else ours.type).name,
        source=source.name,
        is_default=source is ConfigSource.DEFAULT_CONFIG,
        is_read_only=told.read_only,
        is_sensitive=told.is_sensitive,
        is_penstock=ours is not None or told.name in OWN_KEYS,
        update_mode=_update_mode(kind, definition),
        valid_values=None if definition is None else definition.valid_values or None,
        importance=None if definition is None else definition.importance,
        documentation=documentation if has_documentation else None,
        synonyms=[
            ConfigSynonym(name=one.name, value=one.value, source=ConfigSource(int(one.source)).name)
            for one in told.synonyms
        ],
    )


def _unset(name: str, *, has_documentation: bool) -> DescribedConfig:
    """One of Penstock's own keys that the properties of the broker do not have."""
    key = PENSTOCK_KEYS[name]
    is_sensitive = key.type is ConfigType.PASSWORD
    return DescribedConfig(
        name=name,
        value=None if is_sensitive else key.default,
        default=key.default,
        type=key.type.name,
        source=ConfigSource.DEFAULT_CONFIG.name,
        is_default=True,
        is_read_only=True,
        is_sensitive=is_sensitive,
        is_penstock=True,
        update_mode=_UPDATE_MODES[UpdateMode.READ_ONLY],
        valid_values=None,
        importance=None,
        documentation=DOCUMENTATION[name] if has_documentation else None,
        synonyms=[],
    )


def _definition(kind: ConfigResourceType, name: str) -> ConfigDefinition | None:
    match kind:
        case ConfigResourceType.BROKER:
            return broker_definition(name)
        case ConfigResourceType.TOPIC:
            return topic_configs().get(name)
        case ConfigResourceType.GROUP:
            return group_configs().get(name)
        case ConfigResourceType.CLIENT_METRICS:
            return client_metrics_configs().get(name)
        case _:
            return None


def _update_mode(kind: ConfigResourceType, definition: ConfigDefinition | None) -> str | None:
    if kind is not ConfigResourceType.BROKER:
        return None
    return _UPDATE_MODES[UpdateMode.READ_ONLY if definition is None else definition.update_mode]


OPERATIONS: Final = (
    Operation(
        name="describeConfigs",
        method="GET",
        path="/v1/configs/{resource_type}/{resource_name}",
        tag="Configs",
        summary="The configuration of a broker, a topic, a group or another resource, with what its keys mean",
        run=_describe,
        query=ConfigsQuery,
        answer=ConfigList,
    ),
    Operation(
        name="describeBrokerDefaults",
        method="GET",
        path="/v1/configs/broker-defaults",
        tag="Configs",
        summary="The dynamic configs that all brokers have unless they have their own",
        run=_describe_defaults,
        query=ConfigsQuery,
        answer=ConfigList,
    ),
    Operation(
        name="alterConfigs",
        method="PATCH",
        path="/v1/configs/{resource_type}/{resource_name}",
        tag="Configs",
        summary="Set and unset configs of a broker, a topic, a group or another resource",
        run=_alter,
        body=ConfigChanges,
        status=204,
    ),
    Operation(
        name="alterBrokerDefaults",
        method="PATCH",
        path="/v1/configs/broker-defaults",
        tag="Configs",
        summary="Set and unset the dynamic configs that all brokers have unless they have their own",
        run=_alter_defaults,
        body=ConfigChanges,
        status=204,
    ),
)
