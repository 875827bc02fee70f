"""IncrementalAlterConfigs 0 to 1 and AlterConfigs 0 to 2.

IncrementalAlterConfigs (KIP-339) changes single configs; AlterConfigs, which it replaces, sets what it does not name
back to the default. Broker configs are checked here, because only the broker itself knows its properties; what is left
is decided by the controller. Loggers cannot be changed: there are none by Kafka's names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as LegacyResult
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as IncrementalResource
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse as IncrementalResult
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import ConfigError, ErrorCode, KafkaError
from ...protocol.messages import kio_error
from ...quorum.controller_requests import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from ...quorum.metadata.image import ConfigResource, ConfigResourceType
from ..configuration.dynamic_configs import increment, validate_dynamic_configs
from ..configuration.tls_config import TlsConfig
from ..configuration.topic_configs import ConfigResolver
from ..controller_channel import ControllerChannel
from ..metadata_view import MetadataView
from ..network.handlers import Handlers
from ..network.request import RequestContext
from .config_resources import check_node_id
from .values import NO_THROTTLE

_SET: Final = 0
_DELETE: Final = 1
_OPERATION_NAMES: Final = {_SET: "SET", _DELETE: "DELETE", 2: "APPEND", 3: "SUBTRACT"}

Resource = TypeVar("Resource", IncrementalResource, LegacyResource)
Refusals: TypeAlias = Mapping[int, KafkaError]
"""Why resources of a request are refused, by their place in it."""


def register(
    handlers: Handlers,
    metadata: MetadataView,
    resolver: ConfigResolver,
    controller: ControllerChannel,
    *,
    check_tls: Callable[[Mapping[str, TlsConfig]], None],
) -> None:
    """`check_tls` raises ConfigError when what listeners are told of TLS cannot be had."""
    apis = AlterConfigs(metadata, resolver, controller, check_tls)
    handlers.add_message(ApiKey.INCREMENTAL_ALTER_CONFIGS, apis.incremental_alter, answer_error=incremental_error)
    handlers.add_message(ApiKey.ALTER_CONFIGS, apis.legacy_alter, answer_error=legacy_error)


class AlterConfigs:
    """Refuses what this broker can tell to be wrong, and hands the rest to the controller."""

    def __init__(
        self,
        metadata: MetadataView,
        resolver: ConfigResolver,
        controller: ControllerChannel,
        check_tls: Callable[[Mapping[str, TlsConfig]], None],
    ) -> None:
        self._metadata = metadata
        self._resolver = resolver
        self._controller = controller
        self._check_tls = check_tls

    async def incremental_alter(
        self, request: IncrementalAlterConfigsRequest, _context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        resources = request.resources
        refusals = self._refusals(resources, self._check_incremental)
        results = {place: _incremental_refusal(resources[place], error) for place, error in refusals.items()}
        rest = [place for place in range(len(resources)) if place not in refusals]
        if rest:
            decided = await self._controller.submit(
                INCREMENTAL_ALTER_CONFIGS,
                IncrementalAlterConfigsRequest(
                    resources=tuple(resources[place] for place in rest), validate_only=request.validate_only
                ),
            )
            results.update(zip(rest, decided.responses, strict=True))
        return IncrementalAlterConfigsResponse(
            throttle_time=NO_THROTTLE, responses=tuple(results[place] for place in sorted(results))
        )

    async def legacy_alter(self, request: AlterConfigsRequest, _context: RequestContext) -> AlterConfigsResponse:
        resources = request.resources
        refusals = self._refusals(resources, self._check_legacy)
        results = {place: _legacy_refusal(resources[place], error) for place, error in refusals.items()}
        rest = [place for place in range(len(resources)) if place not in refusals]
        if rest:
            decided = await self._controller.submit(
                ALTER_CONFIGS,
                AlterConfigsRequest(
                    resources=tuple(resources[place] for place in rest), validate_only=request.validate_only
                ),
            )
            results.update(zip(rest, decided.responses, strict=True))
        return AlterConfigsResponse(
            throttle_time=NO_THROTTLE, responses=tuple(results[place] for place in sorted(results))
        )

    def _refusals(self, resources: Sequence[Resource], check: Callable[[Resource], None]) -> Refusals:
        """What need not be asked of the controller, because this broker can tell that it cannot be."""
        counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
        refusals = {}
        for place, resource in enumerate(resources):
            try:
                if counts[resource.resource_type, resource.resource_name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                names = [config.name for config in resource.configs]
                if len(set(names)) != len(names):
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
                check(resource)
            except KafkaError as error:
                refusals[place] = error
        return refusals

    def _check_incremental(self, resource: IncrementalResource) -> None:
        nulls = [
            config.name for config in resource.configs if config.config_operation != _DELETE and config.value is None
        ]
        _refuse_nulls(nulls)
        match resource.resource_type:
            case ConfigResourceType.BROKER:
                operations = [(config.name, int(config.config_operation), config.value) for config in resource.configs]
                self._check_broker_name(resource.resource_name)
                current = self._metadata.image.configs.of(
                    ConfigResource(ConfigResourceType.BROKER, resource.resource_name)
                )
                self._check_broker_configs(resource.resource_name, increment(current, operations))
            case ConfigResourceType.BROKER_LOGGER:
                check_node_id(self._resolver, resource.resource_name, "Node id", "Unexpected node id. Expected {}, but")
                for config in resource.configs:
                    if config.config_operation not in (_SET, _DELETE):
                        operation = _OPERATION_NAMES.get(int(config.config_operation), str(config.config_operation))
                        message = f"{operation} operation is not allowed for the BROKER_LOGGER resource"
                        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
                    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!")
            case kind:
                _refuse_unknown(kind)

    def _check_legacy(self, resource: LegacyResource) -> None:
        _refuse_nulls([config.name for config in resource.configs if config.value is None])
        match resource.resource_type:
            case ConfigResourceType.BROKER:
                self._check_broker_name(resource.resource_name)
                values = {config.name: config.value or "" for config in resource.configs}
                self._check_broker_configs(resource.resource_name, values)
            case kind:
                _refuse_unknown(kind)

    def _check_broker_name(self, name: str) -> None:
        if name:
            check_node_id(self._resolver, name, "Node id", "Unexpected broker id, expected {}, but")

    def _check_broker_configs(self, name: str, values: Mapping[str, str]) -> None:
        config = validate_dynamic_configs(
            self._resolver.static_config, self._resolver.broker_configs, values, is_default=not name
        )
        try:
            self._check_tls(config.tls)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _refuse_nulls(names: Sequence[str]) -> None:
    if names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(names)}")


def _refuse_unknown(kind: int) -> None:
    if kind not in (ConfigResourceType.TOPIC, ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _incremental_refusal(resource: IncrementalResource, error: KafkaError) -> IncrementalResult:
    return IncrementalResult(
        error_code=kio_error(error.code),
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _legacy_refusal(resource: LegacyResource, error: KafkaError) -> LegacyResult:
    return LegacyResult(
        error_code=kio_error(error.code),
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def incremental_error(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(_incremental_refusal(resource, error) for resource in request.resources),
    )


def legacy_error(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(_legacy_refusal(resource, error) for resource in request.resources),
    )
