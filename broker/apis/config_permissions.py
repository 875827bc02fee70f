"""Whose configs a client may see and change, and which part of a request to change some it may ask for.

Configs of a topic or a group are for those whom the ACLs of that topic or group allow it, all others for those who may
do it in the cluster. Kafka: `ConfigHelper`, `ControllerApis.authorizeAlterResource`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as LegacyResource
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as IncrementalResource
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

from ...protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import KafkaError, error_info
from ...protocol.messages import NO_THROTTLE
from ...quorum.metadata.image import ConfigResourceType
from ..network.request import RequestContext
from .config_results import incremental_result, legacy_result
from .permissions import REFUSALS

ResponseT = TypeVar("ResponseT")

_CHANGED_BY_THE_CONTROLLER: Final = frozenset(
    {
        ConfigResourceType.TOPIC,
        ConfigResourceType.BROKER,
        ConfigResourceType.CLIENT_METRICS,
        ConfigResourceType.GROUP,
    }
)
_OF_THEIR_OWN: Final = {
    int(ConfigResourceType.TOPIC): ResourceType.TOPIC,
    int(ConfigResourceType.GROUP): ResourceType.GROUP,
}


def config_denial(
    context: RequestContext, api_key: ApiKey, operation: AclOperation, kind: int, name: str
) -> KafkaError | None:
    """Return what a client is told that may not do it with the configs; `kind` is a `ConfigResourceType`."""
    resource_type = _OF_THEIR_OWN.get(kind, ResourceType.CLUSTER)
    resource = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else name
    if context.may(api_key, operation, resource_type, resource):
        return None
    code = REFUSALS[resource_type]
    return KafkaError(code, error_info(code).sentence)


async def alter_incrementally(
    request: IncrementalAlterConfigsRequest,
    context: RequestContext,
    submit: Callable[[IncrementalAlterConfigsRequest], Awaitable[IncrementalAlterConfigsResponse]],
) -> IncrementalAlterConfigsResponse:
    """Changes the configs that the client may change."""
    api_key = ApiKey.INCREMENTAL_ALTER_CONFIGS
    return await _alter(request, context, api_key, submit, incremental_result, IncrementalAlterConfigsResponse)


async def alter_legacy(
    request: AlterConfigsRequest,
    context: RequestContext,
    submit: Callable[[AlterConfigsRequest], Awaitable[AlterConfigsResponse]],
) -> AlterConfigsResponse:
    """As `alter_incrementally`, for AlterConfigs."""
    return await _alter(request, context, ApiKey.ALTER_CONFIGS, submit, legacy_result, AlterConfigsResponse)


async def _alter(
    request: Any,
    context: RequestContext,
    api_key: ApiKey,
    submit: Callable[[Any], Awaitable[ResponseT]],
    result: Callable[[Any, KafkaError], object],
    respond: Callable[..., ResponseT],
) -> ResponseT:
    """Results stand in the order of the request. Both APIs have the same names for all of it."""
    denials = _denials(context, api_key, request.resources)
    if not denials:
        return await submit(request)
    results = {place: result(request.resources[place], error) for place, error in denials.items()}
    permitted = {place: one for place, one in enumerate(request.resources) if place not in denials}
    if permitted:
        decided: Any = await submit(replace(request, resources=tuple(permitted.values())))
        results.update(zip(permitted, decided.responses, strict=True))
    return respond(throttle_time=NO_THROTTLE, responses=tuple(results[place] for place in sorted(results)))


def _denials(
    context: RequestContext, api_key: ApiKey, resources: Sequence[IncrementalResource | LegacyResource]
) -> dict[int, KafkaError]:
    """Return what the client may not change, by its place. The controller refuses what is unknown or there twice."""
    if context.authorizer is None:
        return {}
    named = Counter((one.resource_type, one.resource_name) for one in resources)
    denials: dict[int, KafkaError] = {}
    for place, one in enumerate(resources):
        kind = int(one.resource_type)
        if kind in _CHANGED_BY_THE_CONTROLLER and named[one.resource_type, one.resource_name] == 1:
            error = config_denial(context, api_key, AclOperation.ALTER_CONFIGS, kind, one.resource_name)
            if error is not None:
                denials[place] = error
    return denials
