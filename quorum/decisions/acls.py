"""Creating and deleting ACLs. Kafka: `AclControlManager`.

CreateAcls and DeleteAcls, versions 1-3 (KIP-140, KIP-290, KIP-373). An ACL that exists already is created without a
record; items that are refused do not stop the others.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.static.primitive import i8

from ...protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE
from ..metadata.acls import Acl
from ..metadata.image import MetadataImage
from ..metadata.security_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from ..permissions.acl_filter import AclFilter
from .answers import wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest

if TYPE_CHECKING:
    from random import Random

_CONCRETE_PERMISSIONS = frozenset({PermissionType.ALLOW, PermissionType.DENY})
_CONCRETE_PATTERNS = frozenset({PatternType.LITERAL, PatternType.PREFIXED})


def create_acls(
    image: MetadataImage, request: CreateAclsRequest, context: DecisionContext
) -> ControllerResult[CreateAclsResponse]:
    """Create those of the ACLs that can be."""
    created: set[Acl] = set()
    records: list[AccessControlEntryRecord] = []
    results: list[AclCreationResult] = []
    for creation in request.creations:
        try:
            _check(creation)
        except KafkaError as error:
            results.append(AclCreationResult(error_code=wire_code(error.code), error_message=error.message))
            continue
        results.append(AclCreationResult(error_code=wire_code(ErrorCode.NONE), error_message=None))
        acl = acl_of(creation)
        if acl not in created and not image.acls.has(acl):
            created.add(acl)
            records.append(AccessControlEntryRecord(id=_new_id(image, context.random), **acl._asdict()))
    return ControllerResult(
        records=tuple(records), response=CreateAclsResponse(throttle_time=NO_THROTTLE, results=tuple(results))
    )


def delete_acls(
    image: MetadataImage, request: DeleteAclsRequest, _context: DecisionContext
) -> ControllerResult[DeleteAclsResponse]:
    """Delete what the filters match; an ACL that several match is in the answer of each."""
    removed: dict[UUID, None] = {}
    results: list[DeleteAclsFilterResult] = []
    for one in request.filters:
        matching = _matching(image.acls.by_id, filter_of(one))
        removed.update(dict.fromkeys(matching))
        results.append(
            DeleteAclsFilterResult(
                error_code=wire_code(ErrorCode.NONE),
                error_message=None,
                matching_acls=tuple(_matching_acl(acl) for acl in matching.values()),
            )
        )
    return ControllerResult(
        records=tuple(RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed),
        response=DeleteAclsResponse(throttle_time=NO_THROTTLE, filter_results=tuple(results)),
    )


def acl_of(creation: AclCreation) -> Acl:
    """Return the ACL that an item of CreateAcls names."""
    return Acl(
        resource_type=int(creation.resource_type),
        resource_name=creation.resource_name,
        pattern_type=int(creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=int(creation.operation),
        permission_type=int(creation.permission_type),
    )


def filter_of(one: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    """Return the filter that an item of DeleteAcls, or a DescribeAcls, names."""
    return AclFilter(
        resource_type=int(one.resource_type_filter),
        resource_name=one.resource_name_filter,
        pattern_type=int(one.pattern_type_filter),
        principal=one.principal_filter,
        host=one.host_filter,
        operation=int(one.operation),
        permission_type=int(one.permission_type),
    )


def _check(creation: AclCreation) -> None:
    """Raises KafkaError(INVALID_REQUEST)."""
    resource_type, pattern_type = int(creation.resource_type), int(creation.resource_pattern_type)
    operation, permission_type = int(creation.operation), int(creation.permission_type)
    problem = None
    if resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not creation.resource_name:
        problem = "Invalid empty resource name"
    elif resource_type == ResourceType.ANY or resource_type not in set(ResourceType):
        problem = f"Invalid resourceType {_name(ResourceType, resource_type)}"
    elif pattern_type not in _CONCRETE_PATTERNS:
        problem = f"Invalid patternType {_name(PatternType, pattern_type)}"
    elif operation == AclOperation.ANY or operation not in set(AclOperation):
        problem = f"Invalid operation {_name(AclOperation, operation)}"
    elif permission_type not in _CONCRETE_PERMISSIONS:
        problem = f"Invalid permissionType {_name(PermissionType, permission_type)}"
    elif ":" not in creation.principal:
        problem = (
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)


def _name(kind: type[ResourceType] | type[PatternType] | type[AclOperation] | type[PermissionType], number: int) -> str:
    return kind(number).name if number in set(kind) else "UNKNOWN"


def _new_id(image: MetadataImage, random: "Random") -> UUID:
    while True:
        acl_id = UUID(int=random.getrandbits(128), version=4)
        if acl_id not in image.acls.by_id:
            return acl_id


def _matching(acls: Mapping[UUID, Acl], wanted: AclFilter) -> dict[UUID, Acl]:
    return {acl_id: acl for acl_id, acl in acls.items() if wanted.matches(acl)}


def _matching_acl(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=wire_code(ErrorCode.NONE),
        error_message=None,
        resource_type=i8(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=i8(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=i8(acl.operation),
        permission_type=i8(acl.permission_type),
    )


CREATE_ACLS: Final = ControllerRequest(ApiKey.CREATE_ACLS, create_acls)
DELETE_ACLS: Final = ControllerRequest(ApiKey.DELETE_ACLS, delete_acls)
