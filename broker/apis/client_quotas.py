"""DescribeClientQuotas 0 to 1, AlterClientQuotas 0 to 1 (KIP-546).

1: flexible (KIP-482). DescribeClientQuotas is answered from this node's image; filters, codes and sentences are those
of Apache Kafka 4.3 (`ClientQuotasImage.describe`). AlterClientQuotas is forwarded to the controller, which has the
rules (`quorum/decisions/client_quotas.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import IntEnum

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.alter_client_quotas.v1.response import EntityData as AlteredPart
from kio.schema.alter_client_quotas.v1.response import EntryData as AlteredEntity
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v1.response import DescribeClientQuotasResponse, EntityData, EntryData, ValueData
from kio.static.primitive import f64

from ...protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.client_quotas import ALTER_CLIENT_QUOTAS
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.quota_precedence import CLIENT_ID, IP, USER
from ...quorum.metadata.security_image import QuotaEntity, Quotas
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..security.client_changes import ask_controller
from .permissions import require


class MatchType(IntEnum):
    """What the component of a filter asks of the name of an entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2
    """Any name, the default too."""


def register(handlers: Handlers, metadata: MetadataCache, controller: ControllerChannel) -> None:
    def describe(request: DescribeClientQuotasRequest, context: RequestContext) -> DescribeClientQuotasResponse:
        operation = AclOperation.DESCRIBE_CONFIGS
        require(context, ApiKey.DESCRIBE_CLIENT_QUOTAS, operation, ResourceType.CLUSTER, CLUSTER_NAME)
        return describe_client_quotas(metadata.image, request)

    def alter_here(request: AlterClientQuotasRequest, context: RequestContext) -> Awaitable[AlterClientQuotasResponse]:
        return ask_controller(controller, ALTER_CLIENT_QUOTAS, request, context, alter)

    handlers.add_message(ApiKey.DESCRIBE_CLIENT_QUOTAS, describe, answer_error=describe_error)
    handlers.add_message(ApiKey.ALTER_CLIENT_QUOTAS, alter_here, answer_error=alter_error)


def alter(
    request: AlterClientQuotasRequest,
    context: RequestContext,
    submit: Callable[[AlterClientQuotasRequest], Awaitable[AlterClientQuotasResponse]],
) -> Awaitable[AlterClientQuotasResponse]:
    """Raises KafkaError if the client may not alter configs of the cluster."""
    operation = AclOperation.ALTER_CONFIGS
    require(context, ApiKey.ALTER_CLIENT_QUOTAS, operation, ResourceType.CLUSTER, CLUSTER_NAME, is_told_why=True)
    return submit(request)


def describe_client_quotas(image: MetadataImage, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Raises KafkaError if the filter is invalid."""
    exact, specified = _filter(request.components)
    wanted = exact.keys() | specified
    if IP in wanted and wanted != {IP}:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )
    return DescribeClientQuotasResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(ErrorCode.NONE),
        error_message="",
        entries=tuple(
            [
                _entry(entity, quotas)
                for entity, quotas in image.client_quotas.items()
                if _matches(dict(entity), exact, specified, is_strict=request.strict)
            ]
        ),
    )


def _filter(components: Sequence[ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """The types that must have a name, and those that may have any."""
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in exact or kind in specified:
            message = f"Entity type {kind} cannot appear more than once in the filter."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        if kind not in (IP, USER, CLIENT_ID):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        match int(component.match_type):
            case MatchType.EXACT:
                if match is None:
                    message = "Request specified MATCH_TYPE_EXACT, but set match string to null."
                    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
                exact[kind] = match
            case MatchType.DEFAULT | MatchType.SPECIFIED as number:
                if match is not None:
                    name = f"MATCH_TYPE_{MatchType(number).name}"
                    message = f"Request specified {name}, but also specified a match string."
                    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
                if number == MatchType.DEFAULT:
                    exact[kind] = None
                else:
                    specified.add(kind)
            case number:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {number}")
    return exact, specified


def _matches(
    entity: Mapping[str, str | None], exact: Mapping[str, str | None], specified: set[str], *, is_strict: bool
) -> bool:
    if is_strict and len(entity) != len(exact) + len(specified):
        return False
    return specified <= entity.keys() and all(kind in entity and entity[kind] == name for kind, name in exact.items())


def _entry(entity: QuotaEntity, quotas: Quotas) -> EntryData:
    return EntryData(
        entity=tuple([EntityData(entity_type=kind, entity_name=name) for kind, name in entity]),
        values=tuple([ValueData(key=key, value=f64(value)) for key, value in quotas.items()]),
    )


def describe_error(_request: DescribeClientQuotasRequest, error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        throttle_time=NO_THROTTLE, error_code=kio_error(error.code), error_message=error.message, entries=None
    )


def alter_error(request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        throttle_time=NO_THROTTLE,
        entries=tuple(
            [
                AlteredEntity(
                    error_code=kio_error(error.code),
                    error_message=error.message,
                    entity=tuple(
                        [
                            AlteredPart(entity_type=part.entity_type, entity_name=part.entity_name)
                            for part in alteration.entity
                        ]
                    ),
                )
                for alteration in request.entries
            ]
        ),
    )
