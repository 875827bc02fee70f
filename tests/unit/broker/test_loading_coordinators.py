"""Requests to a whole node whose coordinator is loading: they wait for the end of that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.offset_commit.v10.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i64
from memory_node import World, create_topic, describe, run

from penstock.broker.coordination.coordinator_shard import CoordinatorShard
from penstock.broker.coordinators import held_requests
from penstock.broker.coordinators.coordinator_loader import CoordinatorLoader
from penstock.broker.coordinators.held_requests import HeldRequests
from penstock.protocol.errors import ErrorCode

GROUP = GroupId("g")


class Gate:
    """Nothing is loaded before it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = asyncio.Event()
        self.has_waiting = asyncio.Event()
        load, wait = CoordinatorLoader.load, HeldRequests.wait

        async def load_later(loader: CoordinatorLoader, shard: CoordinatorShard) -> int:
            await self.opened.wait()
            return await load(loader, shard)

        def wait_and_tell(held: HeldRequests, begin: Callable[[], None]) -> None:
            wait(held, begin)
            self.has_waiting.set()

        monkeypatch.setattr(CoordinatorLoader, "load", load_later)
        monkeypatch.setattr(HeldRequests, "wait", wait_and_tell)


def commit(topic_id: UUID, count: int = 1) -> OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=i32(index), committed_offset=i64(5), committed_metadata=None)
        for index in range(count)
    )
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=i32(-1),
        member_id="",
        topics=(OffsetCommitRequestTopic(topic_id=topic_id, partitions=partitions),),
    )


def commit_much(topic_id: UUID) -> OffsetCommitRequest:
    """Read by a thread. Only the first partition exists."""
    return commit(topic_id, 2_000)


def commit_in_transaction(_topic_id: UUID, count: int = 1) -> TxnOffsetCommitRequest:
    partitions = tuple(
        TxnOffsetCommitRequestPartition(partition_index=i32(index), committed_offset=i64(5), committed_metadata=None)
        for index in range(count)
    )
    return TxnOffsetCommitRequest(
        transactional_id=TransactionalId("t"),
        group_id=GROUP,
        producer_id=ProducerId(7),
        producer_epoch=i16(0),
        topics=(TxnOffsetCommitRequestTopic(name=TopicName("t"), partitions=partitions),),
    )


def commit_much_in_transaction(topic_id: UUID) -> TxnOffsetCommitRequest:
    """Its records are encoded by a thread."""
    return commit_in_transaction(topic_id, 2_000)


def fetch(topic_id: UUID, *groups: str) -> OffsetFetchRequest:
    wanted = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(i32(0),))
    return OffsetFetchRequest(
        groups=tuple(
            OffsetFetchRequestGroup(group_id=GroupId(group), topics=(wanted,)) for group in groups or (GROUP,)
        ),
        require_stable=False,
    )


def heartbeat(_topic_id: UUID) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=i32(1), member_id="stranger")


def add_partition(_topic_id: UUID) -> AddPartitionsToTxnRequest:
    """As clients ask."""
    topics = (AddPartitionsToTxnTopic(name=TopicName("t"), partitions=(i32(0),)),)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=TransactionalId("t"),
        producer_id=ProducerId(7),
        producer_epoch=i16(0),
        verify_only=False,
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


def committed_code(response: Any) -> int:
    return int(response.topics[0].partitions[0].error_code)


def fetched_code(response: Any) -> int:
    return int(response.groups[0].error_code)


def added_code(response: Any) -> int:
    return int(response.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code)


def code(response: Any) -> int:
    return int(response.error_code)


async def ask(
    monkeypatch: pytest.MonkeyPatch, hold_s: float, request: Callable[[UUID], Any], *, is_opened: bool
) -> Any:
    monkeypatch.setattr(held_requests, "HOLD_S", hold_s)
    gate = Gate(monkeypatch)
    properties = {
        "offsets_topic_num_partitions": "1",
        "transaction_state_log_num_partitions": "1",
        "transaction_partition_verification_enable": "false",
    }
    async with World(**properties).running() as (_, connection):
        older = {int(one.__api_key__): (3, 3) for one in (TxnOffsetCommitRequest, AddPartitionsToTxnRequest)}
        connection.versions = {**connection.versions, **older}
        await create_topic(connection, "t")
        for key_type in (0, 1):
            await connection.call(FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(GROUP,)))
        topic_id = (await describe(connection, "t")).topics[0].topic_id
        assert topic_id is not None
        asked = asyncio.ensure_future(connection.call(request(topic_id)))
        if is_opened:
            await gate.has_waiting.wait()
            assert not asked.done()
            gate.opened.set()
        response = await asked
        gate.opened.set()
        return response


@pytest.mark.parametrize(
    ("request_of", "code_of", "expected"),
    [
        (commit, committed_code, ErrorCode.NONE),
        (commit_much, committed_code, ErrorCode.NONE),
        (commit_in_transaction, committed_code, ErrorCode.NONE),
        (commit_much_in_transaction, committed_code, ErrorCode.NONE),
        (fetch, fetched_code, ErrorCode.NONE),
        (heartbeat, code, ErrorCode.UNKNOWN_MEMBER_ID),
        (add_partition, added_code, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_a_request_is_answered_when_the_coordinator_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
    request_of: Callable[[UUID], Any],
    code_of: Callable[[Any], int],
    expected: ErrorCode,
) -> None:
    async def scenario() -> None:
        assert code_of(await ask(monkeypatch, 60.0, request_of, is_opened=True)) == expected

    run(scenario)


@pytest.mark.parametrize(
    ("request_of", "code_of"),
    [
        (commit, committed_code),
        (commit_much, committed_code),
        (commit_in_transaction, committed_code),
        (commit_much_in_transaction, committed_code),
        (fetch, fetched_code),
        (add_partition, added_code),
    ],
)
def test_a_request_is_told_of_it_when_loading_takes_longer(
    monkeypatch: pytest.MonkeyPatch, request_of: Callable[[UUID], Any], code_of: Callable[[Any], int]
) -> None:
    async def scenario() -> None:
        told = code_of(await ask(monkeypatch, 0.01, request_of, is_opened=False))
        assert told == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(scenario)


def test_of_several_groups_none_waits_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        response = await ask(monkeypatch, 60.0, lambda topic_id: fetch(topic_id, "g", "h"), is_opened=False)
        assert [int(group.error_code) for group in response.groups] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2

    run(scenario)
