"""Transactions that hang: their records are in a log, and no coordinator knows of them (KIP-664)."""

from __future__ import annotations

from typing import Any

from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import TopicName, TransactionalId
from kio.static.primitive import Records, i16, i32
from memory_node import MINUTE

from penstock.client.connection import Connection
from penstock.protocol.records import Record, write_batch

HANGING_PRODUCER_ID = 900


async def leave_open(connection: Connection, topic: str, timestamp_ms: int = 0) -> None:
    """A batch of a transaction of which no coordinator knows."""
    batch = write_batch(
        [Record(offset=0, timestamp_ms=timestamp_ms, key=None, value=b"x", headers=())],
        producer_id=HANGING_PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    # The version before leaders add partitions to transactions by themselves (KIP-890).
    data = PartitionProduceData(index=i32(0), records=Records(batch))
    request = ProduceRequest(
        transactional_id=TransactionalId("x"),
        acks=i16(-1),
        timeout=MINUTE,
        topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(data,)),),
    )
    answer: Any = await connection.call(request)
    assert answer.responses[0].partition_responses[0].error_code == 0
