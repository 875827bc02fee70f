"""A record for every partition of a topic, acknowledged by all replicas: again and again until each has taken one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.static.primitive import Records, i16, i32, i32Timedelta

from ..client import clock
from ..client.connection import Connection, connect
from ..client.leaders import TopicLeaders, topic_leaders
from ..local.errors import ClusterError
from ..local.local_node import HOST, LocalNode
from ..protocol.errors import CorruptData, KafkaError
from ..protocol.records import Record, write_batch

_RETRY_S: Final = 0.02
_ATTEMPT_MS: Final = 1_000
"""A replica that is gone and still counted as in sync holds an answer up for that long."""
_CONNECTION_TIMEOUT_MS: Final = 60_000
_DEADLINE_S: Final = 300.0
_TIMEOUT: Final = i32Timedelta.parse(timedelta(milliseconds=_ATTEMPT_MS))


class AllPartitions:
    """Those of one topic. Use with `async with`: connections to these nodes are made once."""

    def __init__(self, nodes: Iterable[LocalNode], topic: str, count: int) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._topic = topic
        self._count = count
        self._connections: dict[int, Connection] = {}

    async def __aenter__(self) -> AllPartitions:
        for node in self._nodes.values():
            self._connections[node.id] = await connect(HOST, node.port, timeout_ms=_CONNECTION_TIMEOUT_MS)
        return self

    async def __aexit__(self, *_error: object) -> None:
        for connection in self._connections.values():
            await connection.close()

    async def leaders(self) -> TopicLeaders:
        """As one of the nodes tells."""
        for connection in self._connections.values():
            try:
                return await topic_leaders(connection, self._topic)
            except (OSError, CorruptData, KafkaError):
                continue
        raise ClusterError("no node tells who leads")

    async def leave_out(self, node_id: int) -> None:
        """A node that is to be killed is neither asked nor written to."""
        await self._connections.pop(node_id).close()

    async def write(self) -> None:
        """Returns when every partition has taken a record. Raises ClusterError when one does not for five minutes."""
        waiting = set(range(self._count))
        deadline_s = clock.monotonic_s() + _DEADLINE_S
        while True:
            told = await self.leaders()
            led: dict[int, list[int]] = {}
            for index in waiting & told.partitions.keys():
                led.setdefault(told.partitions[index].leader_id, []).append(index)
            taken = await asyncio.gather(
                *[
                    self._write(self._connections[node_id], told.topic_id, indexes)
                    for node_id, indexes in led.items()
                    if node_id in self._connections
                ]
            )
            waiting.difference_update(*taken)
            if not waiting:
                return
            if clock.monotonic_s() > deadline_s:
                raise ClusterError(f"{len(waiting)} partitions of {self._topic} took no record for {_DEADLINE_S:g} s")
            await asyncio.sleep(_RETRY_S)

    async def _write(self, connection: Connection, topic_id: UUID | None, indexes: Sequence[int]) -> list[int]:
        """Which of them took it."""
        records = Records(write_batch([Record(0, clock.now_ms(), None, b"record")]))
        data = TopicProduceData(
            topic_id=topic_id,
            partition_data=tuple([PartitionProduceData(index=i32(index), records=records) for index in indexes]),
        )
        request = ProduceRequest(transactional_id=None, acks=i16(-1), timeout=_TIMEOUT, topic_data=(data,))
        answer = await connection.call(request)
        assert isinstance(answer, ProduceResponse)
        return [
            int(outcome.index)
            for topic in answer.responses
            for outcome in topic.partition_responses
            if not outcome.error_code
        ]
