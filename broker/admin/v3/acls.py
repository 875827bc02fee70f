"""`/v3/…/acls`: without an authorizer there are none, in Apache Kafka's words."""

from __future__ import annotations

from typing import Final

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.acls import AclQuery
from ..operation import Call, Operation
from . import links

_PATH: Final = "/v3/clusters/{cluster_id}/acls"
_TAG: Final = "ACL"


async def _refuse(call: Call) -> None:
    links.cluster_id(call)
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


OPERATIONS: Final = (
    Operation(
        name="searchAcls",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="ACLs: 501 until there is an authorizer",
        run=_refuse,
        query=AclQuery,
    ),
    Operation(
        name="createAcl",
        method="POST",
        path=_PATH,
        tag=_TAG,
        summary="Create an ACL: 501 until there is an authorizer",
        run=_refuse,
        status=201,
    ),
    Operation(
        name="deleteAcls",
        method="DELETE",
        path=_PATH,
        tag=_TAG,
        summary="Delete ACLs: 501 until there is an authorizer",
        run=_refuse,
        query=AclQuery,
    ),
    Operation(
        name="createAcls",
        method="POST",
        path=_PATH + ":batch",
        tag=_TAG,
        summary="Create several ACLs: 501 until there is an authorizer",
        run=_refuse,
        status=201,
    ),
)
