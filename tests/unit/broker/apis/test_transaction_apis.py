"""What requests of transactions come to on a whole node, version by version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import World, create_topic, run
from produced_batches import produced
from waiting import ask_until

from penstock.broker.coordination.key_partitions import partition_of_key
from penstock.broker.coordinators.transaction_coordinator import TRANSACTIONS_TOPIC
from penstock.client.connection import Connection
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.image import ConfigResource, ConfigResourceType
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

MINUTE = i32Timedelta.parse(timedelta(minutes=1))


@contextmanager
def served(connection: Connection, api_key: ApiKey, version: int) -> Iterator[None]:
    """As if the node served that version alone."""
    before = connection.versions
    connection.versions = {**before, int(api_key): (version, version)}
    yield
    connection.versions = before


NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class Producer:
    def __init__(self, connection: Connection, name: str = "mover") -> None:
        self.connection = connection
        self.name = TransactionalId(name)
        self.id = ProducerId(-1)
        self.epoch = i16(-1)

    async def begin(self) -> Any:
        """As a client does: the first one makes the topic, whose partition is loaded some time later."""

        async def ask() -> Any:
            await self.connection.call(FindCoordinatorRequest(key_type=i8(1), coordinator_keys=(self.name,)))
            return await self.connection.call(
                InitProducerIdRequest(transactional_id=self.name, transaction_timeout=MINUTE)
            )

        answer = await ask_until(ask, lambda answer: answer.error_code not in NOT_YET, "a coordinator")
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    async def add(self, *topics: tuple[str, tuple[int, ...]], version: int = 3) -> Any:
        with served(self.connection, ApiKey.ADD_PARTITIONS_TO_TXN, version):
            return await self.connection.call(
                AddPartitionsToTxnRequest(
                    transactions=(
                        AddPartitionsToTxnTransaction(
                            transactional_id=self.name,
                            producer_id=self.id,
                            producer_epoch=self.epoch,
                            topics=tuple(
                                AddPartitionsToTxnTopic(name=TopicName(topic), partitions=tuple(map(i32, indexes)))
                                for topic, indexes in topics
                            ),
                        ),
                    )
                )
            )

    async def end(self, version: int, *, is_commit: bool = True) -> Any:
        with served(self.connection, ApiKey.END_TXN, version):
            return await self.connection.call(
                EndTxnRequest(
                    transactional_id=self.name,
                    producer_id=self.id,
                    producer_epoch=self.epoch,
                    committed=is_commit,
                )
            )


def added(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, int(one.partition_index)): ErrorCode(int(one.partition_error_code))
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for one in topic.results_by_partition
    }


def test_the_topic_of_one_node_can_be_written_by_one_node() -> None:
    async def scenario() -> None:
        async with World(transaction_state_log_num_partitions="3").running() as (node, connection):
            assert (await Producer(connection).begin()).error_code == 0
            image = node.metadata.image
            topic = image.topics.by_name[TRANSACTIONS_TOPIC]
            assert [partition.replicas for partition in topic.partitions] == [(1,)] * 3
            found = image.configs.of(ConfigResource(ConfigResourceType.TOPIC, TRANSACTIONS_TOPIC))
            assert found == {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "1",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            }

    run(scenario)


def test_partitions_are_added_all_or_none() -> None:
    async def scenario() -> None:
        world = World()
        world.now_ms += 123
        async with world.running() as (_, connection):
            assert await create_topic(connection, "flights", 2) is ErrorCode.NONE
            producer = Producer(connection)
            await producer.begin()
            refused = await producer.add(("flights", (0, 7)), ("none", (0,)))
            assert added(refused) == {
                ("flights", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
                ("flights", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            assert added(await producer.add(("flights", (0, 1)))) == {
                ("flights", 0): ErrorCode.NONE,
                ("flights", 1): ErrorCode.NONE,
            }
            described: Any = await connection.call(
                DescribeTransactionsRequest(transactional_ids=(producer.name, TransactionalId("none")))
            )
            found, missing = described.transaction_states
            assert found.transaction_start_time.timestamp() == pytest.approx(world.now_ms / 1000)
            assert (found.transaction_state, found.topics[0].topic, found.topics[0].partitions) == (
                "Ongoing",
                "flights",
                (0, 1),
            )
            assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    run(scenario)


def test_only_brokers_ask_in_versions_of_brokers_kip_890() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            await create_topic(connection, "flights")
            producer = Producer(connection)
            await producer.begin()
            for version in (4, 5):
                answer = await producer.add(("flights", (0,)), version=version)
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario)


@pytest.mark.parametrize(("version", "told"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_older_clients_are_told_that_their_epoch_is_invalid(version: int, told: ErrorCode) -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            await create_topic(connection, "flights")
            producer, other = Producer(connection), Producer(connection)
            await producer.begin()
            await other.begin()
            assert added(await producer.add(("flights", (0,)), version=version)) == {("flights", 0): told}
            assert (await producer.end(version)).error_code == told
            with served(connection, ApiKey.ADD_OFFSETS_TO_TXN, version):
                answer: Any = await connection.call(
                    AddOffsetsToTxnRequest(
                        transactional_id=producer.name,
                        producer_id=producer.id,
                        producer_epoch=producer.epoch,
                        group_id=GroupId("group"),
                    )
                )
            assert answer.error_code == told

    run(scenario)


def test_offsets_of_a_group_are_a_partition_too() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            producer = Producer(connection)
            await producer.begin()
            answer: Any = await connection.call(
                AddOffsetsToTxnRequest(
                    transactional_id=producer.name,
                    producer_id=producer.id,
                    producer_epoch=producer.epoch,
                    group_id=GroupId("group"),
                )
            )
            assert answer.error_code == ErrorCode.NONE
            described: Any = await connection.call(DescribeTransactionsRequest(transactional_ids=(producer.name,)))
            (topic,) = described.transaction_states[0].topics
            # "group".hashCode() % 50, before there is such a topic.
            assert (topic.topic, topic.partitions) == ("__consumer_offsets", (47,))
            # There is no such topic, so there is nothing to mark.
            assert (await producer.end(4)).error_code == ErrorCode.NONE

    run(scenario)


def test_version_5_raises_the_epoch_and_tells_of_it_kip_890() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            producer = Producer(connection)
            await producer.begin()
            aborted = await producer.end(5, is_commit=False)
            assert (aborted.producer_id, aborted.producer_epoch) == (producer.id, producer.epoch + 1)
            assert (await producer.end(4, is_commit=False)).error_code == ErrorCode.PRODUCER_FENCED

    run(scenario)


def test_transactional_ids_have_names() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            producer = Producer(connection)
            assert (await producer.begin()).error_code == ErrorCode.NONE
            begun: Any = await connection.call(DescribeTransactionsRequest(transactional_ids=(producer.name,)))
            assert begun.transaction_states[0].transaction_start_time is None
            nameless = Producer(connection, "")
            assert (await nameless.end(5)).error_code == ErrorCode.INVALID_REQUEST
            described: Any = await connection.call(DescribeTransactionsRequest(transactional_ids=(nameless.name,)))
            assert described.transaction_states[0].error_code == ErrorCode.INVALID_REQUEST

    run(scenario)


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (ListTransactionsRequest(), ["mover-1", "mover-2", "other"]),
        (ListTransactionsRequest(state_filters=("Ongoing",)), ["mover-2"]),
        (ListTransactionsRequest(state_filters=("Ongoing", "Sleeping")), ["mover-2"]),
        (ListTransactionsRequest(state_filters=("Sleeping",)), []),
        (ListTransactionsRequest(transactional_id_pattern="mover"), []),
        (ListTransactionsRequest(transactional_id_pattern="mover.*"), ["mover-1", "mover-2"]),
        (ListTransactionsRequest(transactional_id_pattern=""), ["mover-1", "mover-2", "other"]),
        (ListTransactionsRequest(duration_filter=i64(0), state_filters=("Ongoing",)), []),
    ],
)
def test_transactions_are_listed_by_what_is_asked_for(request_: ListTransactionsRequest, names: list[str]) -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            await create_topic(connection, "flights")
            producers = [Producer(connection, name) for name in ("mover-1", "mover-2", "other")]
            for producer in producers:
                await producer.begin()
            await producers[1].add(("flights", (0,)))
            answer: Any = await connection.call(request_)
            assert sorted(one.transactional_id for one in answer.transaction_states) == names
            assert answer.unknown_state_filters == tuple(name for name in request_.state_filters if name == "Sleeping")

    run(scenario)


def test_transactions_are_listed_by_their_producers() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            producers = [Producer(connection, name) for name in ("mover-1", "mover-2", "other")]
            for producer in producers:
                await producer.begin()
            first, _, last = (producer.id for producer in producers)
            answer: Any = await connection.call(ListTransactionsRequest(producer_id_filters=(first, last)))
            assert sorted(one.transactional_id for one in answer.transaction_states) == ["mover-1", "other"]

    run(scenario)


def test_transactions_are_listed_without_those_of_a_partition_that_cannot_be_read() -> None:
    async def scenario() -> None:
        world = World(transaction_state_log_num_partitions="2")
        async with world.running() as (_, connection):
            assert (await Producer(connection).begin()).error_code == ErrorCode.NONE
        spoil(world, 1 - partition_of_key("mover", 2))
        async with world.running() as (_, connection):
            answer: Any = await ask_until(
                lambda: connection.call(ListTransactionsRequest()),
                lambda answer: answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "a coordinator that has read its log",
            )
            assert answer.error_code == ErrorCode.NONE
            assert [one.transactional_id for one in answer.transaction_states] == ["mover"]

    run(scenario)


def spoil(world: World, index: int) -> None:
    """A record without a key, which no coordinator writes."""
    log = Log.open(
        world.files,
        f"/data/{TRANSACTIONS_TOPIC}-{index}",
        topic=TRANSACTIONS_TOPIC,
        partition=index,
        topic_id=None,
        is_identified=True,
        config=LogConfig(),
        is_clean=True,
        now_ms=world.now_ms,
    )
    log.append_as_leader(
        produced(write_batch([Record(0, world.now_ms, None, b"")])), leader_epoch=0, now_ms=world.now_ms
    )
    log.flush()
    log.close()


def test_a_pattern_that_is_none_is_refused_kip_1152() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            answer: Any = await connection.call(ListTransactionsRequest(transactional_id_pattern="("))
            assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    run(scenario)
