"""A node with an authorizer: what its administrator permits, and what a client is told that may do just that.

The administrator asks the handlers; the client, `User:ANONYMOUS`, asks over a connection, in any version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.static.primitive import i8
from memory_node import World

from penstock.broker.network.own_requests import OwnRequests
from penstock.broker.network.request import ANONYMOUS, RequestContext
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from penstock.protocol.errors import ErrorCode

UNRESTRICTED = RequestContext(listener_name="PLAINTEXT", peer_host="10.0.0.1", client_id=None)
"""The context of a client of a node without an authorizer."""
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin",
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
}
_ANY = i8(1)
_ALL_ACLS = DeleteAclsFilter(
    resource_type_filter=_ANY,
    resource_name_filter=None,
    pattern_type_filter=_ANY,
    principal_filter=None,
    host_filter=None,
    operation=_ANY,
    permission_type=_ANY,
)

Codes: TypeAlias = Sequence[ErrorCode]
Permission: TypeAlias = tuple[AclOperation, ResourceType, str]


def cluster(operation: AclOperation) -> Permission:
    return operation, ResourceType.CLUSTER, CLUSTER_NAME


def topic(operation: AclOperation, name: str) -> Permission:
    return operation, ResourceType.TOPIC, name


def group(operation: AclOperation, name: str) -> Permission:
    return operation, ResourceType.GROUP, name


def transactional_id(operation: AclOperation, name: str) -> Permission:
    return operation, ResourceType.TRANSACTIONAL_ID, name


class Administrator:
    """A super user."""

    def __init__(self, node: Node) -> None:
        loop = asyncio.get_running_loop()
        self._own = OwnRequests(node.parts.handlers, loop)
        self._context = replace(UNRESTRICTED, principal="User:admin", authorizer=node.parts.authorizer)

    async def ask(self, message: Any) -> Any:
        return await self._own.ask(message, self._context)

    async def allow(self, *permissions: Permission) -> None:
        """To everyone."""
        answer = await self.ask(
            CreateAclsRequest(
                creations=tuple(
                    AclCreation(
                        resource_type=i8(resource_type),
                        resource_name=name,
                        resource_pattern_type=i8(PatternType.LITERAL),
                        principal=ANONYMOUS,
                        host="*",
                        operation=i8(operation),
                        permission_type=i8(PermissionType.ALLOW),
                    )
                    for operation, resource_type, name in permissions
                )
            )
        )
        assert [result.error_code for result in answer.results] == [ErrorCode.NONE] * len(permissions)

    async def forbid_all(self) -> None:
        await self.ask(DeleteAclsRequest(filters=(_ALL_ACLS,)))


@asynccontextmanager
async def guarded_node(**properties: str) -> AsyncIterator[tuple[Node, Administrator, Connection]]:
    """The connection is a client's that may do nothing yet."""
    async with World(**AUTHORIZER, **properties).running() as (node, connection):
        yield node, Administrator(node), connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request, and what it is told after each permission that the client gets, one after the other."""

    request: Any
    codes_of: Callable[[Any], Codes]
    """From the answer."""
    refused: Codes
    """Without any permission."""
    steps: Sequence[tuple[Permission, Codes]]
    version: int | None = None
    """None: the latest of the request's class."""

    @property
    def name(self) -> str:
        version = "" if self.version is None else f" {self.version}"
        return f"{type(self.request).__name__.removesuffix('Request')}{version}"


async def check_case(case: Case, administrator: Administrator, connection: Connection) -> None:
    await administrator.forbid_all()
    version = case.request.__version__ if case.version is None else case.version
    connection.versions = {**connection.versions, case.request.__api_key__: (version, version)}
    assert list(case.codes_of(await connection.call(case.request))) == list(case.refused), "without permission"
    for permission, codes in case.steps:
        await administrator.allow(permission)
        assert list(case.codes_of(await connection.call(case.request))) == list(codes), permission


def top_level(answer: Any) -> Codes:
    return [ErrorCode(int(answer.error_code))]


def of_partitions(answer: Any) -> Codes:
    """Of responses with topics that have partitions."""
    return [ErrorCode(int(one.error_code)) for of_topic in answer.topics for one in of_topic.partitions]
