"""A node from its process start to the first acknowledged record, and the memory it holds when nothing is asked of it.

The node starts with default properties in an empty folder. Apache Kafka's folder is formatted before the clock starts,
by a program of its own; Penstock formats inside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta

from ...chaos.local_node import HOST, LocalNode
from ...client import clock
from ...client.connection import Connection, connect
from ...protocol.records import Record, write_batch
from ..target import Target
from ..usage import cpu_s, resident_mib

DEADLINE_S: Final = 120.0
SETTLE_S: Final = 2.0
"""Before idle memory is read: whatever a node does once after its start is over by then."""
_RETRY_S: Final = 0.002
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=30))
_TOPIC: Final = TopicName("first")


def startup(target: Target) -> Mapping[str, float | None]:
    """Start a fresh node, measure, and stop it."""
    assert target.fresh_node is not None, "only asked of targets that can be started"
    with target.fresh_node() as node:
        start_s = clock.monotonic_s()
        node.start()
        listening_s, acknowledged_s = asyncio.run(_first_record(node, start_s))
        assert node.process is not None, "it has answered"
        pids = (node.process.pid,)
        start_cpu_s = cpu_s(pids)
        clock.pause(SETTLE_S)
        return {
            "startup_s": acknowledged_s,
            "listening_s": listening_s,
            "startup_cpu_s": start_cpu_s,
            "idle_mib": resident_mib(pids),
        }


async def _first_record(node: LocalNode, start_s: float) -> tuple[float, float]:
    """Seconds since then until a client was answered, and until its record was acknowledged."""
    connection = await _connect(node, start_s)
    listening_s = clock.monotonic_s() - start_s
    async with connection:
        topic = CreatableTopic(
            name=_TOPIC, num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        created = await connection.call(CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False))
        assert isinstance(created, CreateTopicsResponse)
        topic_id = created.topics[0].topic_id
        if topic_id is None:
            raise node.failure(f"refused its first topic: {created.topics[0].error_message}")
        while (error := await _produce(connection, topic_id)) != 0:
            # The topic is there, and its leader hears of it a moment later.
            if clock.monotonic_s() - start_s > DEADLINE_S:
                raise node.failure(f"refused its first record: {error!r}")
            await asyncio.sleep(_RETRY_S)
        return listening_s, clock.monotonic_s() - start_s


async def _produce(connection: Connection, topic_id: UUID) -> int:
    batch = write_batch([Record(0, clock.now_ms(), None, b"first")])
    data = TopicProduceData(
        topic_id=topic_id, partition_data=(PartitionProduceData(index=i32(0), records=Records(batch)),)
    )
    request = ProduceRequest(transactional_id=None, acks=i16(-1), timeout=_TIMEOUT, topic_data=(data,))
    answer = await connection.call(request)
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0].error_code


async def _connect(node: LocalNode, start_s: float) -> Connection:
    while True:
        try:
            return await connect(HOST, node.port)
        except ConnectionError:
            if not node.is_running or clock.monotonic_s() - start_s > DEADLINE_S:
                raise node.failure("did not listen") from None
            await asyncio.sleep(_RETRY_S)
