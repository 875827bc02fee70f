"""Open transactions on a node whose wall clock jumps: they time out by the time that passes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.types import TopicName, TransactionalId
from kio.static.primitive import i8, i32, i32Timedelta
from memory_node import MINUTE, World, create_topic, run
from waiting import ask_until

from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

OPEN = "Ongoing"
SOON: i32Timedelta = i32Timedelta.parse(timedelta(milliseconds=1))
LOOKS_OFTEN = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "10"}
HOUR_MS = 3_600_000


async def call(connection: Connection, request: Any, version: int) -> Any:
    versions = connection.versions
    connection.versions = {**versions, request.__api_key__: (version, version)}
    try:
        return await connection.call(request)
    finally:
        connection.versions = versions


async def begin(connection: Connection, name: str, timeout: i32Timedelta) -> None:
    await connection.call(FindCoordinatorRequest(key_type=i8(1), coordinator_keys=(name,)))
    init = InitProducerIdRequest(transactional_id=TransactionalId(name), transaction_timeout=timeout)
    told = await ask_until(
        lambda: call(connection, init, 4),
        lambda told: int(told.error_code) != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        "a coordinator that has read its log",
    )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=TransactionalId(name),
        producer_id=told.producer_id,
        producer_epoch=told.producer_epoch,
        topics=(AddPartitionsToTxnTopic(name=TopicName("a"), partitions=(i32(0),)),),
    )
    answer = await call(connection, AddPartitionsToTxnRequest(transactions=(transaction,)), 3)
    (result,) = answer.results_by_transaction[0].topic_results[0].results_by_partition
    assert int(result.partition_error_code) == ErrorCode.NONE


async def state(connection: Connection, name: str) -> str:
    request = DescribeTransactionsRequest(transactional_ids=(TransactionalId(name),))
    (told,) = (await call(connection, request, 0)).transaction_states
    return str(told.transaction_state)


@pytest.mark.parametrize("jump_ms", [HOUR_MS // 2, -HOUR_MS // 2])
def test_a_transaction_times_out_by_the_time_that_passes(jump_ms: int) -> None:
    async def scenario() -> None:
        world = World(**LOOKS_OFTEN)
        async with world.running() as (_, connection):
            await create_topic(connection, "a")
            await begin(connection, "long", MINUTE)
            world.now_ms += jump_ms
            await begin(connection, "short", SOON)
            # The check that ends this one looks at the other as well.
            await ask_until(lambda: state(connection, "short"), lambda state: state != OPEN, "the time-out")
            assert await state(connection, "long") == OPEN

    run(scenario)
