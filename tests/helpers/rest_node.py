"""A whole node on a disk in memory, and a client of its HTTP administration."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from admin_http import asked
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.offset_commit.v10.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v10.response import OffsetCommitResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64
from memory_node import MINUTE, World

from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

BROKER: Final = 1
DEADLINE_S: Final = 100.0
PROBLEM: Final = "application/problem+json"


class RestNode:
    """Paths begin behind `/v3/clusters/ID`."""

    def __init__(self, node: Node, connection: Connection, session: aiohttp.ClientSession) -> None:
        self.node = node
        self.connection = connection
        self.session = session
        self.cluster_id = node.metadata.image.cluster_id
        self.root = f"/v3/clusters/{self.cluster_id}"

    async def ask(self, method: str, path: str, body: object = None, *, status: int = 200) -> Any:
        """The JSON of the answer, which has that status; that of a problem, too."""
        async with self.session.request(method, self.root + path, json=body) as answer:
            text = await answer.text()
            assert answer.status == status, (path, answer.status, text)
            if status >= 400:
                assert answer.content_type == PROBLEM
            return json.loads(text) if text else None

    async def get(self, path: str, *, status: int = 200) -> Any:
        return await self.ask("GET", path, status=status)

    async def refused(self, method: str, path: str, body: object = None, *, status: int) -> str:
        """The name of the error with which it is refused."""
        problem = await self.ask(method, path, body, status=status)
        assert problem["status"] == status
        return str(problem["title"])

    async def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        body = {
            "topic_name": topic,
            "partitions_count": partitions,
            "configs": [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()],
        }
        await self.ask("POST", "/topics", body, status=201)

    async def produce(self, topic: str, *records: object) -> list[Any]:
        """The results of records that are sent as one stream."""
        return await self.produce_bytes(topic, "\n".join(map(json.dumps, records)).encode())

    async def produce_bytes(self, topic: str, body: object) -> list[Any]:
        path = f"{self.root}/topics/{topic}/records"
        async with self.session.post(path, data=body, headers={"Content-Type": "application/json"}) as answer:
            text = await answer.text()
            assert answer.status == 200, text
            return [json.loads(line) for line in text.splitlines()]

    async def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """As a consumer without members of its group commits."""
        request = OffsetCommitRequest(
            group_id=GroupId(group),
            generation_id_or_member_epoch=i32(-1),
            member_id="",
            group_instance_id=None,
            topics=(
                OffsetCommitRequestTopic(
                    topic_id=self.node.metadata.image.topics.by_name[topic].topic_id,
                    partitions=tuple(
                        OffsetCommitRequestPartition(
                            partition_index=i32(index), committed_offset=i64(offset), committed_metadata=None
                        )
                        for index, offset in offsets.items()
                    ),
                ),
            ),
        )
        await self._find_coordinator(group)
        while True:
            answer = await self.connection.call(request)
            assert isinstance(answer, OffsetCommitResponse)
            codes = {ErrorCode(int(one.error_code)) for topic in answer.topics for one in topic.partitions}
            if codes == {ErrorCode.NONE}:
                return
            assert codes <= {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}, codes
            await asyncio.sleep(0)

    async def join(self, group: str, topic: str, member: str) -> None:
        """A member of a group of the consumer protocol."""
        await self._find_coordinator(group)
        while True:
            answer = await self.connection.call(
                ConsumerGroupHeartbeatRequest(
                    group_id=GroupId(group),
                    member_id=member,
                    member_epoch=i32(0),
                    instance_id=None,
                    rack_id=None,
                    rebalance_timeout=MINUTE,
                    subscribed_topic_names=(TopicName(topic),),
                    subscribed_topic_regex=None,
                    server_assignor=None,
                    topic_partitions=(),
                )
            )
            assert isinstance(answer, ConsumerGroupHeartbeatResponse)
            code = ErrorCode(int(answer.error_code))
            if code == ErrorCode.NONE:
                return
            assert code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), code
            await asyncio.sleep(0)

    async def _find_coordinator(self, group: str) -> None:
        """Creates the topic of the groups, as a client that looks for its coordinator does."""
        await self.connection.call(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(group,)))


@asynccontextmanager
async def rest_node(**properties: str) -> AsyncIterator[RestNode]:
    async with asked(World(**properties)) as (node, connection, session):
        yield RestNode(node, connection, session)


def run_with(test: Callable[[RestNode], Awaitable[None]], **properties: str) -> None:
    """Runs a test against a node with these properties."""

    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), rest_node(**properties) as node:
            await test(node)

    asyncio.run(main())


def names(answer: Any, key: str) -> Sequence[Any]:
    """One field of each resource of a list."""
    return [one[key] for one in answer["data"]]
