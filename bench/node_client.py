"""What a freshly started node is asked for: a connection, a topic, a record; again until it can.

A node that has just started, or a partition that was just made, refuses for a moment. That moment is part of what is
measured, so everything here tries again at once.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta

from ..client import clock
from ..client.connection import Connection, connect
from ..local.local_node import HOST, LocalNode
from ..protocol.records import Record, write_batch

DEADLINE_S: Final = 300.0
_RETRY_S: Final = 0.002
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=DEADLINE_S))


class NodeClient:
    """One connection to one node. Use with `async with`; raises NodeFailedError past the deadline."""

    def __init__(self, node: LocalNode, connection: Connection) -> None:
        self.connection = connection
        self._node = node

    @classmethod
    async def connect(cls, node: LocalNode) -> NodeClient:
        """Once the node listens and answers."""
        start_s = clock.monotonic_s()
        while True:
            try:
                return cls(node, await connect(HOST, node.port, timeout_ms=int(DEADLINE_S * 1000)))
            except ConnectionError:
                if not node.is_running or clock.monotonic_s() - start_s > DEADLINE_S:
                    raise node.failure("did not listen") from None
                await asyncio.sleep(_RETRY_S)

    async def create(self, name: str, partitions: int) -> UUID:
        """A topic with one replica; returns its id."""
        topic = CreatableTopic(
            name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(1), assignments=(), configs=()
        )
        request = CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False)
        answer = await self.connection.call(request)
        assert isinstance(answer, CreateTopicsResponse)
        created = answer.topics[0]
        if created.topic_id is None:
            raise self._node.failure(f"refused a topic of {partitions} partitions: {created.error_message}")
        return created.topic_id

    async def produce(self, topic_id: UUID, partition: int) -> None:
        """One record, acknowledged by all replicas."""
        batch = write_batch([Record(0, clock.now_ms(), None, b"record")])
        data = TopicProduceData(
            topic_id=topic_id, partition_data=(PartitionProduceData(index=i32(partition), records=Records(batch)),)
        )
        request = ProduceRequest(transactional_id=None, acks=i16(-1), timeout=_TIMEOUT, topic_data=(data,))
        start_s = clock.monotonic_s()
        while True:
            answer = await self.connection.call(request)
            assert isinstance(answer, ProduceResponse)
            error = answer.responses[0].partition_responses[0].error_code
            if error == 0:
                return
            if clock.monotonic_s() - start_s > DEADLINE_S:
                raise self._node.failure(f"refused a record: {error!r}")
            await asyncio.sleep(_RETRY_S)

    async def __aenter__(self) -> NodeClient:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.connection.close()
