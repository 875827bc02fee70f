"""aiokafka, unchanged, against one node."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, DEADLINE_S))


async def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        await admin.close()


async def read(bootstrap: str, partition: TopicPartition, count: int, offset: int = 0) -> list[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([partition])
        consumer.seek(partition, offset)
        records: list[Any] = []
        while len(records) < count:
            for batch in (await consumer.getmany(timeout_ms=1000)).values():
                records.extend(batch)
        return records
    finally:
        await consumer.stop()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_records_round_trip(bootstrap: str, topic: str, codec: str | None, idempotent: bool) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, enable_idempotence=idempotent, linger_ms=5
        )
        await producer.start()
        try:
            values = [f"value {i}".encode() for i in range(300)]
            sent = [await producer.send(topic, value, key=b"k", headers=[("h", b"1")], partition=0) for value in values]
            assert [(await future).offset for future in sent] == list(range(300))
        finally:
            await producer.stop()
        records = await read(bootstrap, TopicPartition(topic, 0), 300)
        assert [record.value for record in records] == values
        assert {record.key for record in records} == {b"k"}
        assert {record.headers for record in records} == {(("h", b"1"),)}

    run(scenario())


def test_offsets_by_time_beginning_and_end(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        try:
            for i in range(10):
                await producer.send_and_wait(topic, b"v", partition=0, timestamp_ms=1_000_000 + i * 10)
        finally:
            await producer.stop()
        partition = TopicPartition(topic, 0)
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        try:
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            found = await consumer.offsets_for_times({partition: 1_000_035})
            assert found[partition].offset == 4
        finally:
            await consumer.stop()
        assert [record.offset for record in await read(bootstrap, partition, 3, offset=7)] == [7, 8, 9]

    run(scenario())
