"""DescribeConfigs 1 to 4 and ListConfigResources 0 to 1.

Configs of topics, of this broker, of all brokers (the broker with the empty name), of groups (KIP-848) and of client
metrics subscriptions (KIP-714); the levels of this node's loggers (KIP-412). DescribeConfigs: 1 added synonyms
(KIP-226), 3 types and documentation (KIP-569). ListConfigResources 0 lists client metrics only, 1 all types (KIP-1142).
Kafka: `ConfigHelper`.

A client must be allowed to describe the configs (`config_permissions.py`), and those of the cluster to have resources
listed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Mapping
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_config_resources.v1.response import ConfigResource as ListedResource
from kio.schema.list_config_resources.v1.response import ListConfigResourcesResponse
from kio.static.primitive import i8

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.configs.table import broker_configs, client_metrics_configs, group_configs, topic_configs
from ...quorum.decisions.topic_names import invalid_topic_name
from ...quorum.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from ..cluster.metadata_cache import MetadataCache
from ..configuration.config_descriptions import (
    ConfigDescription,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
)
from ..configuration.loggers import Loggers
from ..configuration.topic_configs import ConfigResolver
from ..network.handlers import Handlers
from ..network.request import RequestContext
from .config_permissions import config_denial
from .config_resources import check_node_id

REPEATED_MAX: Final = 100
"""Duplicate resources in a request: 4 MiB could list this broker 600,000 times, at 10 KiB of response each."""
_KINDS: Final = frozenset(int(kind) for kind in ConfigResourceType)


class _Everything(Container[str]):
    def __contains__(self, _: object) -> bool:
        return True


_EVERYTHING: Final = _Everything()


def register(
    handlers: Handlers,
    metadata: MetadataCache,
    resolver: ConfigResolver,
    loggers: Loggers,
    *,
    is_controller: bool = False,
) -> None:
    """`is_controller`: for the controllers' listener, which has no ListConfigResources."""
    apis = DescribeConfigs(metadata, resolver, loggers)
    handlers.add_message(ApiKey.DESCRIBE_CONFIGS, apis.describe, answer_error=describe_error)
    if not is_controller:
        handlers.add_message(ApiKey.LIST_CONFIG_RESOURCES, apis.list_resources, answer_error=list_error)


class DescribeConfigs:
    """Describes configs by the current image and the configs in effect on this node."""

    def __init__(self, metadata: MetadataCache, resolver: ConfigResolver, loggers: Loggers) -> None:
        self._metadata = metadata
        self._resolver = resolver
        self._loggers = loggers

    def describe(self, request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
        """Raises KafkaError INVALID_REQUEST for an unknown resource type, or for more than REPEATED_MAX duplicates."""
        if any(resource.resource_type not in _KINDS for resource in request.resources):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        repeated = len(request.resources) - len({_identity(resource) for resource in request.resources})
        if repeated > REPEATED_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return DescribeConfigsResponse(
            throttle_time=NO_THROTTLE,
            results=tuple(self._describe_resource(resource, request, context) for resource in request.resources),
        )

    def _describe_resource(
        self, resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
    ) -> DescribeConfigsResult:
        denial = config_denial(
            context,
            ApiKey.DESCRIBE_CONFIGS,
            AclOperation.DESCRIBE_CONFIGS,
            int(resource.resource_type),
            resource.resource_name,
        )
        if denial is not None:
            return _describe_refusal(resource, denial)
        try:
            descriptions = self._descriptions(resource)
        except KafkaError as error:
            return _describe_refusal(resource, error)
        documentation = _documentation(resource.resource_type) if request.include_documentation else {}
        # Kafka does not document loggers: the field keeps its default, an empty string.
        undocumented = "" if int(resource.resource_type) == ConfigResourceType.BROKER_LOGGER else None
        return DescribeConfigsResult(
            error_code=kio_error(ErrorCode.NONE),
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=tuple(
                _describe_config(
                    description, documentation.get(description.name, undocumented), request.include_synonyms
                )
                for description in descriptions
            ),
        )

    def _descriptions(self, resource: DescribeConfigsResource) -> Iterable[ConfigDescription]:
        name = resource.resource_name
        image = self._metadata.image
        # An empty list of keys means all keys, as null does.
        wanted: Container[str] = frozenset(resource.configuration_keys or ()) or _EVERYTHING
        values = image.configs.of(ConfigResource(resource.resource_type, name))
        match resource.resource_type:
            case ConfigResourceType.TOPIC:
                invalid = invalid_topic_name(name)
                if invalid is not None:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
                if name not in image.topics.by_name:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
                return describe_topic(self._resolver, values, wanted)
            case ConfigResourceType.BROKER if not name:
                return describe_broker_defaults(self._resolver, wanted)
            case ConfigResourceType.BROKER:
                check_node_id(
                    self._resolver, name, "Broker id", "Unexpected broker id, expected {} or empty string, but"
                )
                return describe_broker(self._resolver, wanted)
            case ConfigResourceType.BROKER_LOGGER:
                if not name:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
                check_node_id(self._resolver, name, "Broker id", "Unexpected broker id, expected {} but")
                return describe_loggers(self._loggers.levels(), wanted)
            case ConfigResourceType.CLIENT_METRICS:
                if not name:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
                return describe_client_metrics(values, wanted)
            case _:
                if not name:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
                return describe_group(self._resolver, values, wanted)

    def list_resources(
        self, request: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        """Lists every topic and broker, and the groups and subscriptions with configs. Raises KafkaError."""
        context.require_in_cluster(ApiKey.LIST_CONFIG_RESOURCES, AclOperation.DESCRIBE_CONFIGS)
        wanted = set(request.resource_types) or _KINDS
        if not wanted <= _KINDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        return ListConfigResourcesResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            config_resources=tuple(
                ListedResource(resource_name=resource.name, resource_type=i8(resource.type))
                for resource in _resources(self._metadata.image)
                if resource.type in wanted
            ),
        )


def _resources(image: MetadataImage) -> Iterable[ConfigResource]:
    for topic in image.topics.by_name:
        yield ConfigResource(ConfigResourceType.TOPIC, topic)
    for broker_id in image.brokers:
        yield ConfigResource(ConfigResourceType.BROKER, str(broker_id))
        yield ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker_id))
    # The map's own order is another one in each process. Backwards, as the recorded answers of Apache Kafka have them.
    kinds = (ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS)
    yield from sorted(
        (resource for resource in image.configs.by_resource if resource.type in kinds),
        key=lambda resource: (resource.type, resource.name),
        reverse=True,
    )


def _documentation(kind: int) -> Mapping[str, str]:
    tables = {
        ConfigResourceType.TOPIC: topic_configs,
        ConfigResourceType.BROKER: broker_configs,
        ConfigResourceType.CLIENT_METRICS: client_metrics_configs,
        ConfigResourceType.GROUP: group_configs,
    }
    table = tables.get(ConfigResourceType(kind))
    return {} if table is None else table().documentation()


def _describe_config(
    description: ConfigDescription, documentation: str | None, include_synonyms: bool
) -> DescribeConfigsResourceResult:
    synonyms = description.synonyms if include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=description.name,
        value=description.value,
        read_only=description.is_read_only,
        config_source=i8(description.source),
        is_sensitive=description.is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=i8(synonym.source))
            for synonym in synonyms
        ),
        config_type=i8(description.type),
        documentation=documentation,
    )


def _identity(resource: DescribeConfigsResource) -> tuple[int, str, frozenset[str]]:
    """Returns a key by which resources are duplicates. A broker id can be written in more than one way."""
    name: str = resource.resource_name
    if int(resource.resource_type) in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        with contextlib.suppress(ValueError):
            name = str(int(name))
    return resource.resource_type, name, frozenset(resource.configuration_keys or ())


def _describe_refusal(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=kio_error(error.code),
        error_message=error_info(error.code).sentence if error.message is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def describe_error(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(_describe_refusal(resource, error) for resource in request.resources),
    )


def list_error(_request: ListConfigResourcesRequest, error: KafkaError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code), config_resources=())
