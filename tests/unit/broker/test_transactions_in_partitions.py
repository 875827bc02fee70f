"""The partition side of transactions on a whole node: batches and pending offsets, and the markers that end them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.produce.v12.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import BrokerId, GroupId, ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import Records, i8, i16, i32, i64
from memory_node import LATEST, MINUTE, World, create_topic, describe, ready_coordinator, run
from waiting import ask_until

from penstock.broker.coordination.key_partitions import partition_of_key
from penstock.broker.coordinators.rules.transaction_writer import Place
from penstock.broker.coordinators.transaction_verifier import TransactionVerifier
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode
from penstock.protocol.fetch import READ_COMMITTED
from penstock.protocol.records import Record, write_batch

GROUP = "g"
OFFSETS = "__consumer_offsets"
PARTITION = partition_of_key(GROUP, 50)
PRODUCER = 7
UNVERIFIED = {"transaction_partition_verification_enable": "false"}
"""Coordinators of transactions are not asked: these tests are about what comes after."""


async def call(connection: Connection, request: Any, version: int) -> Any:
    versions = connection.versions
    connection.versions = {**versions, request.__api_key__: (version, version)}
    try:
        return await connection.call(request)
    finally:
        connection.versions = versions


async def produce(connection: Connection, sequence: int = 0, *, epoch: int = 0, topic: str = "a") -> ErrorCode:
    batch = write_batch(
        [Record(0, 0, b"k", b"v")],
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    data = (PartitionProduceData(index=i32(0), records=Records(batch)),)
    response = await call(
        connection,
        ProduceRequest(
            transactional_id=TransactionalId("t"),
            acks=i16(-1),
            timeout=MINUTE,
            topic_data=(TopicProduceData(name=TopicName(topic), partition_data=data),),
        ),
        11,
    )
    return ErrorCode(int(response.responses[0].partition_responses[0].error_code))


def markers(
    *places: tuple[str, int], epoch: int = 0, is_commit: bool = False, coordinator_epoch: int = 0, version: int = 1
) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=(
            WritableTxnMarker(
                producer_id=ProducerId(PRODUCER),
                producer_epoch=i16(epoch),
                transaction_result=is_commit,
                topics=tuple(
                    WritableTxnMarkerTopic(name=TopicName(topic), partition_indexes=(i32(index),))
                    for topic, index in places
                ),
                coordinator_epoch=i32(coordinator_epoch),
                transaction_version=i8(version),
            ),
        )
    )


async def end(node: Node, *places: tuple[str, int], **options: Any) -> list[ErrorCode]:
    """As a coordinator on this node has it done."""
    response: Any = await node.parts.peer_channels[0].request(1, markers(*places, **options))
    return codes_of(response)


def codes_of(response: Any) -> list[ErrorCode]:
    return [
        ErrorCode(int(one.error_code))
        for marker in response.markers
        for topic in marker.topics
        for one in topic.partitions
    ]


async def stable_end(connection: Connection, isolation_level: int = READ_COMMITTED) -> int:
    wanted = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(LATEST))
    response: Any = await connection.call(
        ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(isolation_level),
            topics=(ListOffsetsTopic(name=TopicName("a"), partitions=(wanted,)),),
            timeout=MINUTE,
        )
    )
    return int(response.topics[0].partitions[0].offset)


async def fetch(connection: Connection, topic: str = "a") -> Any:
    described = await describe(connection, topic)
    wanted = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1 << 20))
    response: Any = await connection.call(
        FetchRequest(
            max_wait=MINUTE,
            min_bytes=i32(1),
            isolation_level=i8(READ_COMMITTED),
            topics=(FetchTopic(topic_id=described.topics[0].topic_id, partitions=(wanted,)),),
            forgotten_topics_data=(),
        )
    )
    return response.responses[0].partitions[0]


async def commit_offset(
    connection: Connection, offset: int, *, epoch: int = 0, generation: int = -1, member_id: str = "", version: int = 3
) -> ErrorCode:
    one = TxnOffsetCommitRequestPartition(
        partition_index=i32(0), committed_offset=i64(offset), committed_metadata="note"
    )
    response = await call(
        connection,
        TxnOffsetCommitRequest(
            transactional_id=TransactionalId("t"),
            group_id=GroupId(GROUP),
            producer_id=ProducerId(PRODUCER),
            producer_epoch=i16(epoch),
            generation_id=i32(generation),
            member_id=member_id,
            topics=(TxnOffsetCommitRequestTopic(name=TopicName("a"), partitions=(one,)),),
        ),
        version,
    )
    return ErrorCode(int(response.topics[0].partitions[0].error_code))


async def committed(connection: Connection, *, require_stable: bool = True) -> int | ErrorCode:
    described = await describe(connection, "a")
    wanted = OffsetFetchRequestTopics(topic_id=described.topics[0].topic_id, partition_indexes=(i32(0),))
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=GroupId(GROUP), member_id=None, topics=(wanted,)),),
        require_stable=require_stable,
    )
    # After a start the coordinator reads first what there is.
    response: Any = await ask_until(
        lambda: connection.call(request),
        lambda response: int(response.groups[0].error_code) != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        "a coordinator that has read its log",
    )
    one = response.groups[0].topics[0].partitions[0]
    return ErrorCode(int(one.error_code)) or int(one.committed_offset)


@pytest.mark.parametrize("is_commit", [True, False])
def test_marker_lets_readers_of_committed_records_on(*, is_commit: bool) -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            assert await produce(connection) is ErrorCode.NONE
            assert await stable_end(connection) == 0
            assert await stable_end(connection, 0) == 1
            assert await end(node, ("a", 0), is_commit=is_commit) == [ErrorCode.NONE]
            assert await stable_end(connection) == 2
            fetched = await fetch(connection)
            aborted = [] if is_commit else [(PRODUCER, 0)]
            assert [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions] == aborted

    run(scenario)


def test_marker_is_judged_as_apache_kafka_does() -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            await produce(connection, epoch=3)
            assert await end(node, ("a", 0), epoch=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
            assert await end(node, ("a", 0), epoch=3, version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
            assert await end(node, ("a", 0), epoch=4, version=2, coordinator_epoch=5) == [ErrorCode.NONE]
            assert await end(node, ("a", 0), epoch=4, version=2, coordinator_epoch=5) == [ErrorCode.NONE]
            fenced = await end(node, ("a", 0), epoch=4, coordinator_epoch=4)
            assert fenced == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
            assert await end(node, ("none", 0)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            assert await produce(connection, 1, epoch=3) is ErrorCode.INVALID_PRODUCER_EPOCH

    run(scenario)


def test_client_may_abort_what_hangs_and_commit_nothing_kip_664() -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (_, connection):
            await create_topic(connection, "a")
            await produce(connection)
            described: Any = await connection.call(
                DescribeProducersRequest(topics=(TopicRequest(name=TopicName("a"), partition_indexes=(i32(0),)),))
            )
            (producer,) = described.topics[0].partitions[0].active_producers
            assert (producer.producer_id, producer.current_txn_start_offset, producer.coordinator_epoch) == (7, 0, -1)
            for version in (1, 2):
                refused = await call(connection, markers(("a", 0), is_commit=True), version)
                assert codes_of(refused) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
            assert await stable_end(connection) == 0
            assert codes_of(await call(connection, markers(("a", 0)), 1)) == [ErrorCode.NONE]
            assert await stable_end(connection) == 2

    run(scenario)


def test_offset_of_a_transaction_counts_when_that_commits_kip_447() -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            await ready_coordinator(connection, GROUP)
            assert await commit_offset(connection, 5) is ErrorCode.NONE
            assert await committed(connection) is ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert await committed(connection, require_stable=False) == -1
            assert await end(node, (OFFSETS, PARTITION), is_commit=True) == [ErrorCode.NONE]
            assert await committed(connection) == 5
            assert await commit_offset(connection, 6) is ErrorCode.NONE
            assert await end(node, (OFFSETS, PARTITION)) == [ErrorCode.NONE]
            assert await committed(connection) == 5

    run(scenario)


@pytest.mark.thorough
def test_offset_that_waits_for_its_transaction_outlives_the_coordinator() -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (_, connection):
            await create_topic(connection, "a")
            await ready_coordinator(connection, GROUP)
            assert await commit_offset(connection, 5) is ErrorCode.NONE
        async with world.running() as (node, connection):
            assert await committed(connection) is ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert await end(node, (OFFSETS, PARTITION), is_commit=True) == [ErrorCode.NONE]
            assert await committed(connection) == 5
        async with world.running() as (_, connection):
            assert await committed(connection) == 5

    run(scenario)


def test_offset_of_a_transaction_is_refused_to_who_is_no_member_or_an_older_epoch() -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            await ready_coordinator(connection, GROUP)
            assert await commit_offset(connection, 5, generation=1, member_id="m") is ErrorCode.ILLEGAL_GENERATION
            assert await commit_offset(connection, 5, epoch=2) is ErrorCode.NONE
            assert await commit_offset(connection, 6, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH
            assert await end(node, (OFFSETS, PARTITION), epoch=2, is_commit=True) == [ErrorCode.NONE]
            assert await committed(connection) == 5

    run(scenario)


def test_offset_is_committed_with_no_coordinator_of_its_transaction_to_ask() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            await create_topic(connection, "a")
            await ready_coordinator(connection, GROUP)
            for version in (0, 3, 5):
                assert await commit_offset(connection, 5, version=version) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (4, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (5, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_offset_behind_a_transaction_that_ends_is_to_be_sent_again_by_clients_of_all_versions(
    monkeypatch: pytest.MonkeyPatch, version: int, expected: ErrorCode
) -> None:
    def ask(_verifier: Any, _writer: Any, places: Iterable[Place], on_answer: Any) -> None:
        on_answer(dict.fromkeys(places, ErrorCode.CONCURRENT_TRANSACTIONS))

    async def scenario() -> None:
        async with World(add_partitions_to_txn_retry_backoff_max_ms="0").running() as (_, connection):
            await create_topic(connection, "a")
            await ready_coordinator(connection, GROUP)
            monkeypatch.setattr(TransactionVerifier, "ask", ask)
            assert await commit_offset(connection, 5, version=version) is expected

    run(scenario)


@pytest.mark.parametrize("is_ending", [True, False])
def test_offset_whose_verification_the_end_of_the_transaction_before_drops_is_to_be_sent_again(
    monkeypatch: pytest.MonkeyPatch, *, is_ending: bool
) -> None:
    """Transactions of version 2: their end has the epoch of the next one."""

    async def scenario() -> None:
        async with World(add_partitions_to_txn_retry_backoff_max_ms="0").running() as (node, connection):
            await create_topic(connection, "a")
            await ready_coordinator(connection, GROUP)

            def ask(_verifier: Any, _writer: Any, _places: Iterable[Place], on_answer: Any) -> None:
                async def answer() -> None:
                    if is_ending:
                        ended = await end(node, (OFFSETS, PARTITION), epoch=1, version=2, is_commit=True)
                        assert ended == [ErrorCode.NONE]
                    on_answer({})

                answers.append(asyncio.ensure_future(answer()))

            answers: list[asyncio.Future[None]] = []
            monkeypatch.setattr(TransactionVerifier, "ask", ask)
            expected = ErrorCode.CONCURRENT_TRANSACTIONS if is_ending else ErrorCode.NONE
            assert await commit_offset(connection, 5, epoch=1, version=5) is expected
            await asyncio.gather(*answers)

    run(scenario)


def test_open_transaction_survives_a_restart_and_a_loss_of_power() -> None:
    async def scenario() -> None:
        world = World(log_flush_interval_messages="1", **UNVERIFIED)
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            await produce(connection)
            await end(node, ("a", 0))
            await produce(connection, 1)
            await world.lose_power(node)
        async with world.running() as (node, connection):
            assert await stable_end(connection) == 2
            assert await produce(connection, 2) is ErrorCode.NONE
            assert await end(node, ("a", 0), is_commit=True) == [ErrorCode.NONE]
            assert await stable_end(connection) == 5
            fetched = await fetch(connection)
            assert [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions] == [(PRODUCER, 0)]

    run(scenario)


def test_a_torn_transaction_index_hides_nothing_from_readers_of_committed_records() -> None:
    async def scenario() -> None:
        world = World(**UNVERIFIED)
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            await produce(connection)
            await end(node, ("a", 0))
        async with world.running() as (_, connection):
            assert aborted_in(await fetch(connection)) == [(PRODUCER, 0)]
        torn(world)
        async with world.running() as (_, connection):
            # It is made anew at the start.
            assert aborted_in(await fetch(connection)) == [(PRODUCER, 0)]

    run(scenario)


def torn(world: World) -> None:
    (path,) = [f"/data/a-0/{name}" for name in world.files.list_directory("/data/a-0") if name.endswith(".txnindex")]
    file = world.files.open(path)
    file.truncate(file.size - 1)
    file.close()


def aborted_in(fetched: Any) -> list[tuple[int, int]]:
    return [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions]


def test_producer_ids_expire_by_what_is_configured_now() -> None:
    async def scenario() -> None:
        world = World()
        async with world.running() as (node, connection):
            await create_topic(connection, "a")
            change = AlterableConfig(name="producer.id.expiration.ms", config_operation=i8(0), value="1000")
            resource = AlterConfigsResource(resource_type=i8(4), resource_name="", configs=(change,))
            await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
            await create_topic(connection, "b")
            for topic in ("a", "b"):
                partition = node.parts.partitions.find(topic, 0)
                assert partition is not None
                assert partition.log.producers.expiration_ms == 1000

    run(scenario)
