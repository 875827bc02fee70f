"""IncrementalAlterConfigs 0 to 1 and AlterConfigs 0 to 2.

IncrementalAlterConfigs (KIP-339) changes single configs; AlterConfigs, which it replaces, resets all configs missing
from the request to their defaults. Broker configs are validated here, because only the broker itself has its static
properties. Logger levels (KIP-412) are changed here, and only by IncrementalAlterConfigs; the controller decides the
remaining resources. Kafka: `ConfigAdminManager`.

A client must be allowed to alter the configs (`config_permissions.py`); what is wrong with a request of a broker's
configs or loggers is told first, as in Apache Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as IncrementalResource
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse as IncrementalResult
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ConfigError, ErrorCode, KafkaError, error_info
from ...protocol.messages import NO_THROTTLE
from ...quorum.decisions.configs import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from ...quorum.metadata.image import ConfigResource, ConfigResourceType
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..configuration.dynamic_configs import increment, validate_dynamic_configs
from ..configuration.loggers import Loggers
from ..configuration.tls_config import TlsConfig
from ..configuration.topic_configs import ConfigResolver
from ..network.handlers import Handlers, HeaderTags
from ..network.request import RequestContext
from ..security.client_changes import ask_controller
from .alter_loggers import alter_loggers
from .config_permissions import alter_incrementally, alter_legacy, config_denial
from .config_resources import check_node_id
from .config_results import incremental_error, incremental_result, legacy_error, legacy_result

_DELETE: Final = 1
_REPEATED: Final = "Each resource must appear at most once."

Resource = TypeVar("Resource", IncrementalResource, LegacyResource)
Settled: TypeAlias = Mapping[int, KafkaError | None]
"""Resources settled without the controller: index in the request → error, or None for success."""


def register(
    handlers: Handlers,
    metadata: MetadataCache,
    resolver: ConfigResolver,
    controller: ControllerChannel,
    loggers: Loggers,
    *,
    check_tls: Callable[[Mapping[str, TlsConfig]], None],
) -> None:
    """`check_tls` raises ConfigError if the TLS configs of listeners (e.g. their key files) cannot be loaded."""
    apis = AlterConfigs(metadata, resolver, controller, loggers, check_tls)
    handlers.add_message(ApiKey.INCREMENTAL_ALTER_CONFIGS, apis.incremental_alter, answer_error=incremental_error)
    handlers.add_message(ApiKey.ALTER_CONFIGS, apis.legacy_alter, answer_error=legacy_error)


def register_for_controllers(
    handlers: Handlers,
    resolver: ConfigResolver,
    controller: ControllerChannel,
    loggers: Loggers,
    header_tags: HeaderTags | None = None,
) -> None:
    """Registers IncrementalAlterConfigs on a controller's listener. The controller itself registers AlterConfigs."""
    apis = IncrementalAlterOfController(resolver, controller, loggers)
    handlers.add_message(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        apis.alter,
        answer_error=incremental_error,
        header_tags=header_tags,
        is_forwarded=True,
    )


class AlterConfigs:
    """Validates broker configs, changes this broker's loggers, and forwards the other resources to the controller."""

    def __init__(
        self,
        metadata: MetadataCache,
        resolver: ConfigResolver,
        controller: ControllerChannel,
        loggers: Loggers,
        check_tls: Callable[[Mapping[str, TlsConfig]], None],
    ) -> None:
        self._metadata = metadata
        self._resolver = resolver
        self._controller = controller
        self._loggers = loggers
        self._check_tls = check_tls

    async def incremental_alter(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        resources = request.resources
        settled = self._settle(
            resources, lambda resource: self._settle_incremental(resource, context, validate_only=request.validate_only)
        )
        results = {place: incremental_result(resources[place], error) for place, error in settled.items()}
        rest = [place for place in range(len(resources)) if place not in settled]
        if rest:
            decided = await ask_controller(
                self._controller,
                INCREMENTAL_ALTER_CONFIGS,
                IncrementalAlterConfigsRequest(
                    resources=tuple(resources[place] for place in rest), validate_only=request.validate_only
                ),
                context,
                alter_incrementally,
            )
            results.update(zip(rest, decided.responses, strict=True))
        return IncrementalAlterConfigsResponse(
            throttle_time=NO_THROTTLE, responses=tuple(results[place] for place in sorted(results))
        )

    async def legacy_alter(self, request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
        resources = request.resources
        settled = self._settle(resources, lambda resource: self._settle_legacy(resource, context))
        results = {place: legacy_result(resources[place], error) for place, error in settled.items()}
        rest = [place for place in range(len(resources)) if place not in settled]
        if rest:
            decided = await ask_controller(
                self._controller,
                ALTER_CONFIGS,
                AlterConfigsRequest(
                    resources=tuple(resources[place] for place in rest), validate_only=request.validate_only
                ),
                context,
                alter_legacy,
            )
            results.update(zip(rest, decided.responses, strict=True))
        return AlterConfigsResponse(
            throttle_time=NO_THROTTLE, responses=tuple(results[place] for place in sorted(results))
        )

    def _settle(self, resources: Sequence[Resource], settle: Callable[[Resource], bool]) -> Settled:
        """Returns the resources that are refused or done here. `settle` returns True if the resource is done, or
        raises KafkaError."""
        counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
        settled: dict[int, KafkaError | None] = {}
        for place, resource in enumerate(resources):
            try:
                if counts[resource.resource_type, resource.resource_name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, _REPEATED)
                names = [config.name for config in resource.configs]
                if len(set(names)) != len(names):
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
                if settle(resource):
                    settled[place] = None
            except KafkaError as error:
                settled[place] = error
        return settled

    def _settle_incremental(
        self, resource: IncrementalResource, context: RequestContext, *, validate_only: bool
    ) -> bool:
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
                self._check_broker_configs(
                    resource.resource_name,
                    increment(current, operations),
                    context,
                    ApiKey.INCREMENTAL_ALTER_CONFIGS,
                )
            case ConfigResourceType.BROKER_LOGGER:
                if not context.may_in_cluster(ApiKey.INCREMENTAL_ALTER_CONFIGS, AclOperation.ALTER_CONFIGS):
                    raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                alter_loggers(self._loggers, self._resolver, resource, validate_only=validate_only)
                return True
            case kind:
                _refuse_unknown(kind)
        return False

    def _settle_legacy(self, resource: LegacyResource, context: RequestContext) -> bool:
        _refuse_nulls([config.name for config in resource.configs if config.value is None])
        match resource.resource_type:
            case ConfigResourceType.BROKER:
                self._check_broker_name(resource.resource_name)
                values = {config.name: config.value or "" for config in resource.configs}
                self._check_broker_configs(resource.resource_name, values, context, ApiKey.ALTER_CONFIGS)
            case kind:
                _refuse_unknown(kind)
        return False

    def _check_broker_name(self, name: str) -> None:
        if name:
            check_node_id(self._resolver, name, "Node id", "Unexpected broker id, expected {}, but")

    def _check_broker_configs(
        self, name: str, values: Mapping[str, str], context: RequestContext, api_key: ApiKey
    ) -> None:
        """Raises KafkaError."""
        config = validate_dynamic_configs(
            self._resolver.static_config, self._resolver.broker_configs, values, is_default=not name
        )
        # For whom nothing may be changed, no file is opened either.
        denial = config_denial(context, api_key, AclOperation.ALTER_CONFIGS, ConfigResourceType.BROKER, name)
        if denial is not None:
            raise denial
        try:
            self._check_tls(config.tls)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


class IncrementalAlterOfController:
    """Changes this node's loggers, active controller or not (KIP-919), and decides all other resources."""

    def __init__(self, resolver: ConfigResolver, controller: ControllerChannel, loggers: Loggers) -> None:
        self._resolver = resolver
        self._controller = controller
        self._loggers = loggers

    async def alter(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        """As Kafka's `ControllerApis`: changes loggers first, even if the other resources fail; their results are last.

        A duplicate resource is refused, as in the controller's decision. Raises KafkaError NOT_CONTROLLER if there are
        other resources and this controller is not the active one.
        """
        resources = request.resources
        rest = tuple(one for one in resources if not _is_loggers(one))
        counts = Counter(one.resource_name for one in resources if _is_loggers(one))
        results = tuple(
            self._alter_loggers(
                one, context, is_repeated=counts[one.resource_name] > 1, validate_only=request.validate_only
            )
            for one in resources
            if _is_loggers(one)
        )
        if rest:
            decided = await ask_controller(
                self._controller,
                INCREMENTAL_ALTER_CONFIGS,
                IncrementalAlterConfigsRequest(resources=rest, validate_only=request.validate_only),
                context,
                alter_incrementally,
            )
            results = (*decided.responses, *results)
        return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=results)

    def _alter_loggers(
        self, resource: IncrementalResource, context: RequestContext, *, is_repeated: bool, validate_only: bool
    ) -> IncrementalResult:
        try:
            if is_repeated:
                raise KafkaError(ErrorCode.INVALID_REQUEST, _REPEATED)
            # Not ALTER_CONFIGS, which a broker asks for.
            if not context.may_in_cluster(ApiKey.INCREMENTAL_ALTER_CONFIGS, AclOperation.CLUSTER_ACTION):
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                raise KafkaError(code, error_info(code).sentence)
            alter_loggers(self._loggers, self._resolver, resource, validate_only=validate_only)
        except KafkaError as error:
            return incremental_result(resource, error)
        return incremental_result(resource, None)


def _is_loggers(resource: IncrementalResource) -> bool:
    return int(resource.resource_type) == ConfigResourceType.BROKER_LOGGER


def _refuse_nulls(names: Sequence[str]) -> None:
    if names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(names)}")


def _refuse_unknown(kind: int) -> None:
    if kind not in (ConfigResourceType.TOPIC, ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
