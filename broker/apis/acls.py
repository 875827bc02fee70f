"""DescribeAcls, CreateAcls and DeleteAcls 1 to 3, without an authorizer: SECURITY_DISABLED, in Apache Kafka's words.

Admin clients and MirrorMaker 2 send them to find out exactly that. 2: flexible (KIP-482). 3: user principals (KIP-373).

A request with an enumeration UNKNOWN (0) closes the connection: Apache Kafka cannot parse such a request either.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_acls.v3.response import DescribeAclsResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import CorruptData, ErrorCode
from ...protocol.messages import NO_THROTTLE, decode_request, encode_response, kio_error
from ..network.handlers import Handlers
from ..network.request import Request

AclsRequest: TypeAlias = DescribeAclsRequest | CreateAclsRequest | DeleteAclsRequest
AclsResponse: TypeAlias = DescribeAclsResponse | CreateAclsResponse | DeleteAclsResponse

ACL_APIS: Final = (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
_UNKNOWN: Final = 0
"""In enumerations of resource types, pattern types, operations and permission types."""
_DISABLED: Final = kio_error(ErrorCode.SECURITY_DISABLED)
_NOT_ASKED: Final = "No Authorizer is configured on the broker"
_NOT_CHANGED: Final = "No Authorizer is configured."


def register(handlers: Handlers) -> None:
    for api_key in ACL_APIS:
        handlers.add(api_key, _begin)


def _begin(request: Request) -> None:
    """Raises CorruptData."""
    message = decode_request(request.api_key, request.api_version, request.body, request.body_offset)
    assert isinstance(message, AclsRequest)
    answer = without_authorizer(message)
    request.respond(encode_response(request.api_key, request.api_version, request.correlation_id, answer))


def without_authorizer(request: AclsRequest) -> AclsResponse:
    """Raises CorruptData."""
    match request:
        case DescribeAclsRequest():
            _check(
                request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
            )
            return DescribeAclsResponse(
                throttle_time=NO_THROTTLE, error_code=_DISABLED, error_message=_NOT_ASKED, resources=()
            )
        case CreateAclsRequest():
            for acl in request.creations:
                _check(acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type)
            created = AclCreationResult(error_code=_DISABLED, error_message=_NOT_CHANGED)
            return CreateAclsResponse(throttle_time=NO_THROTTLE, results=(created,) * len(request.creations))
        case DeleteAclsRequest():
            for one in request.filters:
                _check(one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)
            deleted = DeleteAclsFilterResult(error_code=_DISABLED, error_message=_NOT_CHANGED, matching_acls=())
            return DeleteAclsResponse(throttle_time=NO_THROTTLE, filter_results=(deleted,) * len(request.filters))


def _check(*enumerations: int) -> None:
    if _UNKNOWN in enumerations:
        raise CorruptData("expected a resource type, pattern type, operation and permission type, found UNKNOWN (0)")
