"""What a client must be allowed for each API of transactions, and what it does not see: `KafkaApis` of Apache Kafka
4.3.1."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i16, i32, i32Timedelta
from memory_node import World, create_topic, ready_coordinator, run
from permission_cases import (
    Administrator,
    Case,
    Codes,
    check_case,
    cluster,
    group,
    guarded_node,
    of_partitions,
    top_level,
    topic,
    transactional_id,
)

from penstock.client.connection import Connection
from penstock.protocol.acls import AclOperation
from penstock.protocol.errors import ErrorCode

NONE = ErrorCode.NONE
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
T = TransactionalId("t")
OFFSETS_TOPIC = "__consumer_offsets"
WRITES = transactional_id(WRITE, "t")
NO_PRODUCER = [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


def of_markers(answer: Any) -> Codes:
    return [
        ErrorCode(int(one.error_code))
        for marker in answer.markers
        for of_topic in marker.topics
        for one in of_topic.partitions
    ]


def of_additions(answer: Any) -> Codes:
    return [
        ErrorCode(int(one.partition_error_code))
        for result in answer.results_by_transaction
        for of_topic in result.topic_results
        for one in of_topic.results_by_partition
    ]


def initialize(name: TransactionalId | None) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout=i32Timedelta.parse(timedelta(minutes=1)))


def init_transactional() -> Case:
    return Case(
        request=initialize(T),
        codes_of=top_level,
        refused=[TRANSACTION],
        steps=[
            (cluster(AclOperation.IDEMPOTENT_WRITE), [TRANSACTION]),
            (transactional_id(DESCRIBE, "t"), [TRANSACTION]),
            (WRITES, [NONE]),
        ],
    )


def init_idempotent_by_the_cluster() -> Case:
    return Case(
        request=initialize(None),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(WRITES, [CLUSTER]), (cluster(AclOperation.IDEMPOTENT_WRITE), [NONE])],
    )


def init_idempotent_by_some_topic() -> Case:
    return Case(
        request=initialize(None),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(topic(READ, "x"), [CLUSTER]), (topic(WRITE, "unheard of"), [NONE])],
    )


def add_partitions(*names: str) -> AddPartitionsToTxnRequest:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=T,
        producer_id=ProducerId(77),
        producer_epoch=i16(0),
        topics=tuple(AddPartitionsToTxnTopic(name=TopicName(name), partitions=(i32(0),)) for name in names),
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


def add_partitions_of_client() -> Case:
    skipped = ErrorCode.OPERATION_NOT_ATTEMPTED
    return Case(
        request=add_partitions("a", "b", "missing"),
        version=3,
        codes_of=of_additions,
        refused=[TRANSACTION] * 3,
        steps=[
            (topic(WRITE, "a"), [TRANSACTION] * 3),
            (WRITES, [skipped, TOPIC, TOPIC]),
            (topic(READ, "b"), [skipped, TOPIC, TOPIC]),
            (topic(WRITE, "missing"), [skipped, TOPIC, UNKNOWN]),
        ],
    )


def add_permitted_partitions() -> Case:
    return Case(
        request=add_partitions("a", "b"),
        version=3,
        codes_of=of_additions,
        refused=[TRANSACTION] * 2,
        steps=[
            (WRITES, [TOPIC] * 2),
            (topic(WRITE, "*"), NO_PRODUCER * 2),
        ],
    )


def add_partitions_of_an_internal_topic() -> Case:
    return Case(
        request=add_partitions(OFFSETS_TOPIC),
        version=3,
        codes_of=of_additions,
        refused=[TRANSACTION],
        steps=[(WRITES, [TOPIC]), (topic(AclOperation.ALL, "*"), [TOPIC])],
    )


def add_partitions_as_a_broker() -> Case:
    return Case(
        request=add_partitions("a"),
        codes_of=top_level,
        refused=[CLUSTER],
        steps=[(WRITES, [CLUSTER]), (topic(WRITE, "a"), [CLUSTER])],
    )


def add_offsets() -> Case:
    return Case(
        request=AddOffsetsToTxnRequest(
            transactional_id=T, producer_id=ProducerId(77), producer_epoch=i16(0), group_id=GroupId("g")
        ),
        codes_of=top_level,
        refused=[TRANSACTION],
        steps=[
            (group(READ, "g"), [TRANSACTION]),
            (WRITES, NO_PRODUCER),
        ],
    )


def add_offsets_of_a_group_that_may_not_be_read() -> Case:
    return Case(
        request=AddOffsetsToTxnRequest(
            transactional_id=T, producer_id=ProducerId(77), producer_epoch=i16(0), group_id=GroupId("g")
        ),
        codes_of=top_level,
        refused=[TRANSACTION],
        steps=[(WRITES, [GROUP]), (group(DESCRIBE, "g"), [GROUP])],
    )


def end() -> Case:
    return Case(
        request=EndTxnRequest(transactional_id=T, producer_id=ProducerId(77), producer_epoch=i16(0), committed=True),
        codes_of=top_level,
        refused=[TRANSACTION],
        steps=[(transactional_id(DESCRIBE, "t"), [TRANSACTION]), (WRITES, NO_PRODUCER)],
    )


def abort(*, is_commit: bool = False) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=ProducerId(77),
        producer_epoch=i16(0),
        transaction_result=is_commit,
        topics=(WritableTxnMarkerTopic(name=TopicName("a"), partition_indexes=(i32(0),)),),
        coordinator_epoch=i32(0),
    )
    return WriteTxnMarkersRequest(markers=(marker,))


def abort_by_hand() -> Case:
    return Case(
        request=abort(),
        codes_of=of_markers,
        refused=[CLUSTER],
        steps=[(topic(WRITE, "a"), [CLUSTER]), (cluster(AclOperation.ALTER), [NONE])],
    )


def abort_as_a_broker() -> Case:
    return Case(
        request=abort(),
        codes_of=of_markers,
        refused=[CLUSTER],
        steps=[(cluster(AclOperation.CLUSTER_ACTION), [NONE])],
    )


def commit_by_hand() -> Case:
    return Case(
        request=abort(is_commit=True),
        codes_of=of_markers,
        refused=[CLUSTER],
        steps=[(cluster(AclOperation.ALL), [CLUSTER])],
    )


def describe_producers() -> Case:
    names = ("a", "missing", "not/a/name")
    request = DescribeProducersRequest(
        topics=tuple(TopicRequest(name=TopicName(name), partition_indexes=(i32(0),)) for name in names)
    )
    invalid = ErrorCode.INVALID_TOPIC_EXCEPTION
    return Case(
        request=request,
        codes_of=of_partitions,
        refused=[TOPIC, TOPIC, invalid],
        steps=[
            (topic(DESCRIBE, "a"), [TOPIC, TOPIC, invalid]),
            (topic(READ, "a"), [NONE, TOPIC, invalid]),
            (topic(READ, "missing"), [NONE, UNKNOWN, invalid]),
        ],
    )


def describe_transactions() -> Case:
    return Case(
        request=DescribeTransactionsRequest(transactional_ids=(T, TransactionalId("u"))),
        codes_of=lambda answer: [ErrorCode(int(one.error_code)) for one in answer.transaction_states],
        refused=[TRANSACTION] * 2,
        steps=[(transactional_id(DESCRIBE, "u"), [TRANSACTION, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND])],
    )


CASES: list[Callable[[], Case]] = [
    init_transactional,
    init_idempotent_by_the_cluster,
    init_idempotent_by_some_topic,
    add_partitions_of_client,
    add_permitted_partitions,
    add_partitions_of_an_internal_topic,
    add_partitions_as_a_broker,
    add_offsets,
    add_offsets_of_a_group_that_may_not_be_read,
    end,
    abort_by_hand,
    abort_as_a_broker,
    commit_by_hand,
    describe_producers,
    describe_transactions,
]


async def prepare(administrator: Administrator, connection: Connection) -> None:
    """Create topics and the coordinators' topics."""
    await administrator.allow(cluster(AclOperation.CREATE), group(READ, "g"), WRITES)
    for name in ("a", "b"):
        assert await create_topic(connection, name) is NONE
    for key_type, key in ((0, "g"), (1, "t")):
        await ready_coordinator(connection, key, key_type)


@pytest.mark.parametrize("make_case", CASES, ids=lambda make_case: make_case.__name__)
def test_each_request_needs_its_permissions(make_case: Callable[[], Case]) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await prepare(administrator, connection)
            await check_case(make_case(), administrator, connection)

    run(scenario)


def test_transactions_and_their_topics_are_seen_that_may_be_described() -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await prepare(administrator, connection)
            await administrator.allow(topic(WRITE, "a"), topic(WRITE, "b"))
            producer: Any = await connection.call(initialize(T))
            begun = EndTxnRequest(
                transactional_id=T,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                committed=False,
            )
            request = add_partitions("a", "b")
            (transaction,) = request.transactions
            connection.versions = {**connection.versions, request.__api_key__: (3, 3)}
            added = await connection.call(
                AddPartitionsToTxnRequest(
                    transactions=(
                        AddPartitionsToTxnTransaction(
                            transactional_id=T,
                            producer_id=producer.producer_id,
                            producer_epoch=producer.producer_epoch,
                            topics=transaction.topics,
                        ),
                    )
                )
            )
            assert of_additions(added) == [NONE] * 2

            async def seen() -> tuple[list[str], list[str]]:
                listed: Any = await connection.call(ListTransactionsRequest())
                assert listed.error_code == NONE
                answer: Any = await connection.call(DescribeTransactionsRequest(transactional_ids=(T,)))
                (told,) = answer.transaction_states
                return [one.transactional_id for one in listed.transaction_states], [one.topic for one in told.topics]

            assert await seen() == (["t"], ["a", "b"])
            await administrator.forbid_all()
            assert await seen() == ([], [])
            await administrator.allow(transactional_id(DESCRIBE, "t"), topic(DESCRIBE, "b"))
            assert await seen() == (["t"], ["b"])
            await administrator.allow(WRITES)
            assert top_level(await connection.call(begun)) == [NONE]

    run(scenario)


def test_no_client_adds_an_internal_topic_even_without_an_authorizer() -> None:
    async def scenario() -> None:
        properties = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
        async with World(**properties).running() as (_, connection):
            for key_type, key in ((0, "g"), (1, "t")):
                await ready_coordinator(connection, key, key_type)
            request = add_partitions(OFFSETS_TOPIC)
            connection.versions = {**connection.versions, request.__api_key__: (3, 3)}
            assert of_additions(await connection.call(request)) == [TOPIC]

    run(scenario)
