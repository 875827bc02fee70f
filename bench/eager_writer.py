"""A producer that waits for nothing but the cluster: the loss of a leader costs it what it costs the cluster.

One record at a time, with acks=all, at a steady pace. When its connection ends or a broker refuses, it asks all nodes
at once who leads, every `RETRY_S`, and sends the same record there. Client libraries look for leaders when it suits
them, once a second in librdkafka; that hides what is measured here. Without a producer id a record whose
acknowledgement was lost is stored twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.static.primitive import Records, i16, i32, i32Timedelta

from ..chaos.checkers.records import Sent
from ..client import clock
from ..client.connection import Connection, connect
from ..client.leaders import NO_LEADER, TopicLeaders, topic_leaders
from ..local.errors import ClusterError
from ..local.local_node import HOST, LocalNode
from ..protocol.errors import CorruptData, KafkaError
from ..protocol.records import Record, write_batch

INTERVAL_S: Final = 0.01
RETRY_S: Final = 0.005
ATTEMPT_MS: Final = 2_000
"""For a connection, and for an answer: a node that stands still is given up after that."""
SETTINGS: Final = f"acks=all, 1 in flight, a record every {INTERVAL_S * 1000:g} ms, retry after {RETRY_S * 1000:g} ms"
_ABANDONED_S: Final = 120.0


class EagerWriter:
    """Of one topic with as many partitions as nodes. `acknowledged_s` are the times of the acknowledgements."""

    def __init__(self, nodes: Collection[LocalNode], topic: str, partitions: int) -> None:
        self.sent: list[list[Sent]] = [[] for _ in range(partitions)]
        self.acknowledged_s: list[float] = []
        self._nodes = tuple(nodes)
        self._topic = topic
        self._topic_id: UUID | None = None

    async def write(self, partition: int, count: int) -> None:
        """Write so many records. Raises ClusterError when one is not taken for two minutes."""
        connection: Connection | None = None
        next_s = clock.monotonic_s()
        try:
            for _ in range(count):
                number = len(self.sent[partition])
                value = f"eager {partition} {number}".encode()
                self.sent[partition].append(Sent(producer="eager", number=number, value=value))
                deadline_s = clock.monotonic_s() + _ABANDONED_S
                offset = None
                while offset is None:
                    if clock.monotonic_s() > deadline_s:
                        raise ClusterError(f"{self._topic}-{partition} took no record for {_ABANDONED_S:g} s")
                    try:
                        if connection is None:
                            connection = await self._connect_leader(partition)
                        offset = await self._produce(connection, partition, value)
                    except (OSError, CorruptData, KafkaError):
                        if connection is not None:
                            await connection.close()
                        connection = None
                        await asyncio.sleep(RETRY_S)
                self.acknowledged_s.append(clock.monotonic_s())
                self.sent[partition][number] = Sent(producer="eager", number=number, value=value, offset=offset)
                next_s += INTERVAL_S
                await asyncio.sleep(max(0.0, next_s - clock.monotonic_s()))
        finally:
            if connection is not None:
                await connection.close()

    async def _produce(self, connection: Connection, partition: int, value: bytes) -> int:
        batch = write_batch([Record(0, clock.now_ms(), None, value)])
        data = TopicProduceData(
            topic_id=self._topic_id,
            partition_data=(PartitionProduceData(index=i32(partition), records=Records(batch)),),
        )
        timeout = i32Timedelta.parse(timedelta(milliseconds=ATTEMPT_MS))
        request = ProduceRequest(transactional_id=None, acks=i16(-1), timeout=timeout, topic_data=(data,))
        answer = await connection.call(request)
        assert isinstance(answer, ProduceResponse)
        outcome = answer.responses[0].partition_responses[0]
        if outcome.error_code:
            raise ConnectionError(f"refused with {outcome.error_code!r}")
        return int(outcome.base_offset)

    async def _connect_leader(self, partition: int) -> Connection:
        """To the leader that the newest epoch among all nodes' answers names."""
        told = await asyncio.gather(*[self._ask(node) for node in self._nodes], return_exceptions=True)
        answers = [one.partitions[partition] for one in told if isinstance(one, TopicLeaders) and one.partitions]
        known = [one for one in answers if one.leader_id != NO_LEADER]
        if not known:
            raise ConnectionError("no node knows a leader")
        leader_id = max(known).leader_id
        (leader,) = [node for node in self._nodes if node.id == leader_id]
        return await connect(HOST, leader.port, timeout_ms=ATTEMPT_MS)

    async def _ask(self, node: LocalNode) -> TopicLeaders:
        async with await connect(HOST, node.port, timeout_ms=ATTEMPT_MS) as connection:
            told = await topic_leaders(connection, self._topic)
        self._topic_id = told.topic_id
        return told
