"""`/v3/…/acls`: searched, created and deleted by Kafka's DescribeAcls, CreateAcls and DeleteAcls.

Without an authorizer there are none: SECURITY_DISABLED, in Apache Kafka's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.create_acls.v3.response import CreateAclsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsResponse
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_acls.v3.response import DescribeAclsResponse
from kio.static.primitive import i8
from msgspec.structs import asdict

from ....protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from ....protocol.errors import KafkaError, error_info
from ....protocol.rest.acls import Acl, AclList, AclQuery, CreateAcl, CreateAcls, DeleteAclsQuery, DeletedAcls
from ....protocol.rest.resources import ResourceMetadata
from ....quorum.metadata.acls import Acl as CommittedAcl
from ..operation import Answered, Call, Content, Operation
from ..rules.kafka_answers import check
from . import links, pages

_PATH: Final = "/v3/clusters/{cluster_id}/acls"
_TAG: Final = "ACL"
_FILTERS: Final = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")


async def _search(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    query: AclQuery = call.query
    last = pages.after(call, CommittedAcl)
    answer = await call.node.ask(DescribeAclsRequest(**_filter(query)), DescribeAclsResponse, call.context)
    check(answer.error_code, answer.error_message)
    found = sorted(acl for acl in _described(answer) if last is None or acl > last)
    asked = {name: value for name in _FILTERS if (value := getattr(query, name)) not in ("", "ANY")}
    items = ((acl, _resource(call, cluster_id, acl)) for acl in found)
    return await pages.page(call, "KafkaAclList", items, cluster_id, "acls", query=asked)


def _described(answer: DescribeAclsResponse) -> Iterable[CommittedAcl]:
    return (_acl(about, one) for about in answer.resources for one in about.acls)


async def _create(call: Call) -> Answered:
    cluster_id = links.cluster_id(call)
    (refusal,) = await _created(call, [call.body])
    if refusal is not None:
        raise refusal
    return Answered(value=None, headers={"Location": links.search(call, asdict(call.body), cluster_id, "acls")})


async def _create_some(call: Call) -> None:
    """Those that are refused do not stop the others; the first of them is the error."""
    links.cluster_id(call)
    body: CreateAcls = call.body
    for number, refusal in enumerate(await _created(call, body.data)):
        if refusal is not None:
            sentence = refusal.message or error_info(refusal.code).sentence
            raise KafkaError(refusal.code, f"data[{number}]: {sentence}")


async def _created(call: Call, acls: Sequence[CreateAcl]) -> list[KafkaError | None]:
    """Why each was refused, None for one that is there now."""
    request = CreateAclsRequest(
        creations=tuple(
            AclCreation(
                resource_type=i8(ResourceType[one.resource_type]),
                resource_name=one.resource_name,
                resource_pattern_type=i8(PatternType[one.pattern_type]),
                principal=one.principal,
                host=one.host,
                operation=i8(AclOperation[one.operation]),
                permission_type=i8(PermissionType[one.permission]),
            )
            for one in acls
        )
    )
    answer = await call.node.ask(request, CreateAclsResponse, call.context)
    return [_refusal(one) for one in answer.results]


async def _delete(call: Call) -> DeletedAcls:
    cluster_id = links.cluster_id(call)
    query: DeleteAclsQuery = call.query
    wanted = DeleteAclsFilter(**_filter(query))
    answer = await call.node.ask(DeleteAclsRequest(filters=(wanted,)), DeleteAclsResponse, call.context)
    (result,) = answer.filter_results
    check(result.error_code, result.error_message)
    deleted = sorted(_acl(one, one) for one in result.matching_acls)
    return DeletedAcls(data=[_resource(call, cluster_id, acl) async for acl in pages.in_turns(deleted)])


def _acl(about: Any, one: Any) -> CommittedAcl:
    """`about` names the resource, `one` the rest; DeleteAcls answers both in one."""
    return CommittedAcl(
        resource_type=int(about.resource_type),
        resource_name=about.resource_name,
        pattern_type=int(about.pattern_type),
        principal=one.principal,
        host=one.host,
        operation=int(one.operation),
        permission_type=int(one.permission_type),
    )


def _refusal(result: Any) -> KafkaError | None:
    try:
        check(result.error_code, result.error_message)
    except KafkaError as error:
        return error
    return None


def _filter(query: AclQuery | DeleteAclsQuery) -> Mapping[str, Any]:
    """The fields that DescribeAcls and an item of DeleteAcls both have."""
    return {
        "resource_type_filter": i8(ResourceType[query.resource_type]),
        "resource_name_filter": query.resource_name or None,
        "pattern_type_filter": i8(PatternType[query.pattern_type]),
        "principal_filter": query.principal or None,
        "host_filter": query.host or None,
        "operation": i8(AclOperation[query.operation]),
        "permission_type": i8(PermissionType[query.permission]),
    }


def _resource(call: Call, cluster_id: str, acl: CommittedAcl) -> Acl:
    fields: Mapping[str, Any] = {
        "resource_type": ResourceType(acl.resource_type).name,
        "resource_name": acl.resource_name,
        "pattern_type": PatternType(acl.pattern_type).name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": AclOperation(acl.operation).name,
        "permission": PermissionType(acl.permission_type).name,
    }
    metadata = ResourceMetadata(self_=links.search(call, fields, cluster_id, "acls"))
    return Acl(metadata=metadata, cluster_id=cluster_id, **fields)


OPERATIONS: Final = (
    Operation(
        name="searchAcls",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="The ACLs that a filter finds",
        description="501 (SECURITY_DISABLED) where the node has no authorizer, as for all that is about ACLs.",
        run=_search,
        query=AclQuery,
        answer=AclList,
    ),
    Operation(
        name="createAcl",
        method="POST",
        path=_PATH,
        tag=_TAG,
        summary="Create an ACL",
        run=_create,
        body=CreateAcl,
        status=201,
    ),
    Operation(
        name="deleteAcls",
        method="DELETE",
        path=_PATH,
        tag=_TAG,
        summary="Delete the ACLs that a filter finds",
        run=_delete,
        query=DeleteAclsQuery,
        answer=DeletedAcls,
    ),
    Operation(
        name="createAcls",
        method="POST",
        path=_PATH + ":batch",
        tag=_TAG,
        summary="Create several ACLs",
        description="One that is refused does not stop the others, and is the error.",
        run=_create_some,
        body=CreateAcls,
        status=201,
    ),
)
