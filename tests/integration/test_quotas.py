"""Quotas of clients: throttle times as librdkafka meets them, a quota that is removed, and one that nodes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.types import TopicName
from kio.static.primitive import f64, i16, i32
from waiting import wait_for

from penstock.client.connection import connect
from penstock.local.cluster import LocalCluster
from penstock.protocol.errors import ErrorCode

pytestmark = pytest.mark.integration

VALUE = bytes(10_000)
COUNT = 60


def set_quota(bootstrap: str, client_id: str, key: str, value: float | None) -> None:
    """None removes it."""
    entry = EntryData(
        entity=(EntityData(entity_type="client-id", entity_name=client_id),),
        ops=(OpData(key=key, value=f64(value or 0.0), remove=value is None),),
    )

    async def alter() -> None:
        host, _, port = bootstrap.rpartition(":")
        async with await connect(host, int(port)) as connection:
            response = await connection.call(AlterClientQuotasRequest(entries=(entry,), validate_only=False))
            assert isinstance(response, AlterClientQuotasResponse)
            assert int(response.entries[0].error_code) == ErrorCode.NONE

    asyncio.run(alter())


class Throttles:
    """What a client was told."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def on_throttle(self, event: object) -> None:
        self.times_s.append(event.throttle_time)  # type: ignore[attr-defined]

    @property
    def is_seen(self) -> bool:
        return any(time_s > 0 for time_s in self.times_s)


def wait(client: Producer | Consumer, condition: Callable[[], bool]) -> None:
    def look() -> bool:
        client.poll(0.05)
        return condition()

    wait_for(look)


def test_a_producer_and_a_consumer_are_throttled_until_their_quotas_are_removed(bootstrap: str, topic: str) -> None:
    producing, consuming = Throttles(), Throttles()
    # Ten seconds' worth may be sent at once: half of it passes.
    byte_rate = COUNT * len(VALUE) / 20
    set_quota(bootstrap, topic, "producer_byte_rate", byte_rate)
    delivered: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": topic,
            # One record a request: throttle times are told one by one.
            "batch.num.messages": 1,
            "throttle_cb": producing.on_throttle,
        }
    )
    for _ in range(COUNT):
        producer.produce(topic, VALUE, on_delivery=lambda error, _message: delivered.append(error))
    wait(producer, lambda: producing.is_seen)
    set_quota(bootstrap, topic, "producer_byte_rate", None)
    wait(producer, lambda: len(delivered) == COUNT)
    assert delivered == [None] * COUNT

    set_quota(bootstrap, topic, "consumer_byte_rate", byte_rate)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "client.id": topic,
            # A response has a tenth of the records.
            "fetch.max.bytes": len(VALUE) * COUNT // 10,
            "max.partition.fetch.bytes": len(VALUE) * COUNT // 10,
            "message.max.bytes": len(VALUE) * COUNT // 10,
            "throttle_cb": consuming.on_throttle,
        }
    )
    received = 0
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

        def read(condition: Callable[[], bool]) -> None:
            def look() -> bool:
                nonlocal received
                received += len(consumer.consume(COUNT, 0.05))
                return condition()

            wait_for(look)

        read(lambda: consuming.is_seen)
        set_quota(bootstrap, topic, "consumer_byte_rate", None)
        read(lambda: received == COUNT)
    finally:
        consumer.close()


def create_partitions(address: str, client_id: str, name: str, count: int) -> tuple[int, float]:
    """The error code of a new topic, and the throttle time in seconds, as the node at this address answers."""
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(count), replication_factor=i16(1), assignments=(), configs=()
    )

    async def create() -> tuple[int, float]:
        host, _, port = address.rpartition(":")
        async with await connect(host, int(port), client_id=client_id) as connection:
            response = await connection.call(CreateTopicsRequest(topics=(topic,)))
            assert isinstance(response, CreateTopicsResponse)
            return int(response.topics[0].error_code), response.throttle_time.total_seconds()

    return asyncio.run(create())


def test_changes_of_topics_count_for_all_nodes_together(tmp_path: Path) -> None:
    """KIP-599: a client has one rate, whichever broker or controller it asks."""
    with LocalCluster(tmp_path, node_count=3) as cluster:
        brokers = cluster.bootstrap.split(",")
        set_quota(brokers[0], "limited", "controller_mutation_rate", 0.1)
        # More than eleven seconds bring: the debt is of 38.9 partitions.
        assert create_partitions(brokers[1], "limited", "first", 40) == (ErrorCode.NONE, 0)
        addresses = (*brokers, *cluster.controller_addresses)
        answers = [create_partitions(address, "limited", "second", 1) for address in addresses]
        assert sorted(code for code, _ in answers) == [
            *[ErrorCode.NOT_CONTROLLER] * 2,
            *[ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 4,
        ]
        assert all(0 < throttle_s <= 389 for code, throttle_s in answers if code != ErrorCode.NOT_CONTROLLER)
        assert create_partitions(brokers[2], "other", "second", 1) == (ErrorCode.NONE, 0)
        set_quota(brokers[2], "limited", "controller_mutation_rate", None)
        assert create_partitions(brokers[0], "limited", "third", 1) == (ErrorCode.NONE, 0)
