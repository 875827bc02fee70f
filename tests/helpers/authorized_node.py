"""A node with an authorizer, asked in the name of any principal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.static.primitive import i8
from memory_node import World, create_topic, describe

from penstock.broker.network.own_requests import OwnRequests
from penstock.broker.network.request import RequestContext
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import TopicId

ALICE = "User:alice"
HOST = "10.0.0.1"
PROPERTIES = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The tests' own connection proves nothing.
    "super_users": "User:ANONYMOUS;User:admin",
}


class AuthorizedNode:
    """`connection` is a super user's."""

    def __init__(self, node: Node, connection: Connection) -> None:
        self.node = node
        self.connection = connection
        self._own = OwnRequests(node.parts.handlers, asyncio.get_running_loop())

    def client(self, principal: str = ALICE) -> RequestContext:
        return RequestContext(
            listener_name="PLAINTEXT",
            peer_host=HOST,
            client_id="client",
            principal=principal,
            authorizer=self.node.parts.authorizer,
        )

    async def ask(self, message: Any, principal: str = ALICE) -> Any:
        return await self.ask_as(message, self.client(principal))

    async def ask_as(self, message: Any, context: RequestContext) -> Any:
        return await self._own.ask(message, context)

    async def allow(
        self,
        resource_type: ResourceType,
        name: str,
        *operations: AclOperation,
        principal: str = ALICE,
        pattern: PatternType = PatternType.LITERAL,
        permission: PermissionType = PermissionType.ALLOW,
    ) -> None:
        creations = tuple(
            AclCreation(
                resource_type=i8(resource_type),
                resource_name=name,
                resource_pattern_type=i8(pattern),
                principal=principal,
                host="*",
                operation=i8(operation),
                permission_type=i8(permission),
            )
            for operation in operations
        )
        answer: Any = await self.connection.call(CreateAclsRequest(creations=creations))
        assert [result.error_code for result in answer.results] == [ErrorCode.NONE] * len(operations)

    async def allow_in_cluster(self, *operations: AclOperation) -> None:
        await self.allow(ResourceType.CLUSTER, CLUSTER_NAME, *operations)

    async def create_topic(self, name: str) -> TopicId:
        assert await create_topic(self.connection, name) == ErrorCode.NONE
        topic_id = (await describe(self.connection, name)).topics[0].topic_id
        assert topic_id is not None
        return TopicId(topic_id)


@asynccontextmanager
async def authorized_node(**properties: str) -> AsyncIterator[AuthorizedNode]:
    async with World(**{**PROPERTIES, **properties}).running() as (node, connection):
        yield AuthorizedNode(node, connection)
