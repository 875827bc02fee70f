"""DescribeAcls, CreateAcls and DeleteAcls 1 to 3: by the metadata, and forwarded to the controller.

2: flexible (KIP-482). 3: user principals (KIP-373). A broker without an authorizer answers SECURITY_DISABLED, in Apache
Kafka's words: admin clients and MirrorMaker 2 ask to find out exactly that.

A request with an enumeration UNKNOWN (0) closes the connection: Apache Kafka cannot parse such a request either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_acls.v3.response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from kio.static.primitive import i8

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.messages import NO_HEADER_TAGS, NO_THROTTLE, decode_request, encode_response, kio_error
from ...quorum.decisions.acls import CREATE_ACLS, DELETE_ACLS, filter_of
from ...quorum.decisions.controller_request import ControllerRequest
from ...quorum.metadata.acls import Acl, Pattern
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..network.dispatch import read_requester
from ..network.handlers import Handlers, HeaderTags
from ..network.request import Request
from ..security.client_changes import Guard, ask_controller, in_cluster

AclsRequest: TypeAlias = DescribeAclsRequest | CreateAclsRequest | DeleteAclsRequest
AclsResponse: TypeAlias = DescribeAclsResponse | CreateAclsResponse | DeleteAclsResponse

ACL_APIS: Final = (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
_UNKNOWN: Final = 0
"""In enumerations of resource types, pattern types, operations and permission types."""
_NOT_ASKED: Final = "No Authorizer is configured on the broker"
_NOT_CHANGED: Final = "No Authorizer is configured."


class AclsHandler:
    def __init__(
        self,
        metadata: MetadataCache,
        controller: ControllerChannel,
        *,
        has_authorizer: bool,
        header_tags: HeaderTags | None = None,
    ) -> None:
        """`header_tags` is that of a controller's listener."""
        self._metadata = metadata
        self._controller = controller
        self._has_authorizer = has_authorizer
        self._header_tags = header_tags

    def begin(self, request: Request) -> Awaitable[None] | None:
        """Raises CorruptData."""
        message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
        assert isinstance(message, AclsRequest)
        _check_enumerations(message)
        if not self._has_authorizer and request.context.node_id is None:
            words = _NOT_ASKED if isinstance(message, DescribeAclsRequest) else _NOT_CHANGED
            self._respond(request, _refused(message, KafkaError(ErrorCode.SECURITY_DISABLED, words)))
            return None
        if not isinstance(message, DescribeAclsRequest):
            return self._change(request, message)
        try:
            request.context.require_in_cluster(ApiKey.DESCRIBE_ACLS, AclOperation.DESCRIBE)
            self._respond(request, self._describe(message))
        except KafkaError as error:
            self._respond(request, _refused(message, error), error)
        return None

    def _change(self, request: Request, message: CreateAclsRequest | DeleteAclsRequest) -> Awaitable[None]:
        context = request.context
        if context.node_id is not None:
            context = replace(context, requester=read_requester(request))
        guard: Guard[Any, Any] = in_cluster(ApiKey(request.api_key), AclOperation.ALTER)
        change: ControllerRequest[Any, Any] = CREATE_ACLS if isinstance(message, CreateAclsRequest) else DELETE_ACLS
        return self._answer(request, message, ask_controller(self._controller, change, message, context, guard))

    async def _answer(self, request: Request, message: AclsRequest, decided: Awaitable[AclsResponse]) -> None:
        failure = None
        try:
            answer = await decided
        except KafkaError as error:
            answer, failure = _refused(message, error), error
        self._respond(request, answer, failure)

    def _describe(self, message: DescribeAclsRequest) -> DescribeAclsResponse:
        wanted = filter_of(message)
        found: dict[Pattern, list[Acl]] = {}
        for acl in self._metadata.image.acls.by_id.values():
            if wanted.matches(acl):
                found.setdefault(acl.pattern, []).append(acl)
        return DescribeAclsResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            error_message=None,
            resources=tuple(_resource(pattern, sorted(acls)) for pattern, acls in sorted(found.items())),
        )

    def _respond(self, request: Request, answer: AclsResponse, error: KafkaError | None = None) -> None:
        tags = NO_HEADER_TAGS if self._header_tags is None else self._header_tags(request.context, error)
        request.respond(encode_response(request.api_key, request.api_version, request.correlation_id, answer, tags))


def register(
    handlers: Handlers,
    metadata: MetadataCache,
    controller: ControllerChannel,
    *,
    has_authorizer: bool,
    header_tags: HeaderTags | None = None,
) -> None:
    """`has_authorizer`: whether the node has one. `header_tags` is that of a controller's listener."""
    handler = AclsHandler(metadata, controller, has_authorizer=has_authorizer, header_tags=header_tags)
    for api_key in ACL_APIS:
        handlers.add(api_key, handler.begin)


def _refused(request: AclsRequest, error: KafkaError) -> AclsResponse:
    code = kio_error(error.code)
    match request:
        case DescribeAclsRequest():
            return DescribeAclsResponse(
                throttle_time=NO_THROTTLE, error_code=code, error_message=error.message, resources=()
            )
        case CreateAclsRequest():
            created = AclCreationResult(error_code=code, error_message=error.message)
            return CreateAclsResponse(throttle_time=NO_THROTTLE, results=(created,) * len(request.creations))
        case DeleteAclsRequest():
            deleted = DeleteAclsFilterResult(error_code=code, error_message=error.message, matching_acls=())
            return DeleteAclsResponse(throttle_time=NO_THROTTLE, filter_results=(deleted,) * len(request.filters))


def _resource(pattern: Pattern, acls: Iterable[Acl]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=i8(pattern.resource_type),
        resource_name=pattern.resource_name,
        pattern_type=i8(pattern.pattern_type),
        acls=tuple(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=i8(acl.operation),
                permission_type=i8(acl.permission_type),
            )
            for acl in acls
        ),
    )


def _check_enumerations(request: AclsRequest) -> None:
    """Raises CorruptData."""
    match request:
        case DescribeAclsRequest():
            _check(
                request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
            )
        case CreateAclsRequest():
            for acl in request.creations:
                _check(acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type)
        case DeleteAclsRequest():
            for one in request.filters:
                _check(one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)


def _check(*enumerations: int) -> None:
    if _UNKNOWN in enumerations:
        raise CorruptData("expected a resource type, pattern type, operation and permission type, found UNKNOWN (0)")
