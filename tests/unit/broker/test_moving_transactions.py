"""Transactions whose coordinator moves between every two requests, from node to node of three."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.produce.v12.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import BrokerId, GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import Records, i8, i16, i32, i64
from moving_coordinators import GROUP, MINUTE, TOPIC, TRY_AGAIN, World, run
from waiting import ask_until

from penstock.broker.coordinators.group_coordinator import OFFSETS_TOPIC
from penstock.broker.coordinators.transaction_coordinator import TRANSACTIONS_TOPIC
from penstock.client.connection import connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.batches import read_header
from penstock.protocol.errors import ErrorCode
from penstock.protocol.fetch import READ_COMMITTED
from penstock.protocol.records import Record, control_type, read_records, write_batch

ID = TransactionalId("mover")
LATEST = -1
NOW_MS = 1_700_000_000_000
"""The clock of these nodes stands: timestamps far apart would be in segments of their own."""
PARTITIONS = (0, 1)
NOT_YET = TRY_AGAIN | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""What a producer asks again after; NOT_ENOUGH_REPLICAS is what older ones are told of a coordinator on the move."""


class Producer:
    """Follows the rules of a producer of one version of transactions."""

    def __init__(self, world: World, version: int, *, is_moving: bool = True) -> None:
        self.world = world
        self.version = version
        self.is_moving = is_moving
        self.id = ProducerId(-1)
        self.epoch = i16(-1)
        self.sequences: defaultdict[int, int] = defaultdict(int)

    async def begin(self) -> None:
        answer = await self._ask_coordinator(
            InitProducerIdRequest(transactional_id=ID, transaction_timeout=MINUTE),
            lambda answer: answer.error_code,
        )
        assert answer.error_code == 0, answer
        self._become(answer)

    async def write(self, partition: int, value: bytes) -> ErrorCode:
        if self.version == 1:
            added = await self._ask_coordinator(
                AddPartitionsToTxnRequest(
                    transactions=(
                        AddPartitionsToTxnTransaction(
                            transactional_id=ID,
                            producer_id=self.id,
                            producer_epoch=self.epoch,
                            topics=(AddPartitionsToTxnTopic(name=TopicName(TOPIC), partitions=(i32(partition),)),),
                        ),
                    )
                ),
                lambda answer: (
                    answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code
                ),
                (ApiKey.ADD_PARTITIONS_TO_TXN, 3),
            )
            code = added.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code
            if code:
                return ErrorCode(int(code))
        await self._maybe_move()
        batch = write_batch(
            [Record(0, NOW_MS, b"k", value)],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences[partition],
            is_transactional=True,
        )
        data = (PartitionProduceData(index=i32(partition), records=Records(batch)),)
        request = ProduceRequest(
            transactional_id=ID,
            acks=i16(-1),
            timeout=MINUTE,
            topic_data=(TopicProduceData(name=TopicName(TOPIC), partition_data=data),),
        )

        async def ask() -> ErrorCode:
            answer = await self._ask(self._leader(partition), request, (ApiKey.PRODUCE, 10 + self.version))
            return ErrorCode(int(answer.responses[0].partition_responses[0].error_code))

        error = await ask_until(ask, lambda error: error not in NOT_YET, "a leader that takes the batch")
        if error is ErrorCode.NONE:
            self.sequences[partition] += 1
        return error

    async def commit_offset(self, offset: int) -> ErrorCode:
        """Of partition 0, for the group. In version 2 the group's coordinator adds itself to the transaction."""
        if self.version == 1:
            added = await self._ask_coordinator(
                AddOffsetsToTxnRequest(
                    transactional_id=ID, producer_id=self.id, producer_epoch=self.epoch, group_id=GroupId(GROUP)
                ),
                lambda answer: answer.error_code,
                (ApiKey.ADD_OFFSETS_TO_TXN, 3),
            )
            if added.error_code:
                return ErrorCode(int(added.error_code))
        await self._maybe_move()
        place = TxnOffsetCommitRequestPartition(
            partition_index=i32(0), committed_offset=i64(offset), committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GroupId(GROUP),
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=TopicName(TOPIC), partitions=(place,)),),
        )

        async def ask() -> ErrorCode:
            answer = await self._ask(
                offsets_leader(self.world), request, (ApiKey.TXN_OFFSET_COMMIT, 3 if self.version == 1 else 5)
            )
            return ErrorCode(int(answer.topics[0].partitions[0].error_code))

        return await ask_until(ask, lambda error: error not in NOT_YET, "a coordinator of the group that takes offsets")

    async def end(self, *, is_commit: bool) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=ID, producer_id=self.id, producer_epoch=self.epoch, committed=is_commit
        )
        answer = await self._ask_coordinator(
            request, lambda answer: answer.error_code, (ApiKey.END_TXN, 3 + self.version)
        )
        if self.version == 2 and not answer.error_code:
            self._become(answer)
        return ErrorCode(int(answer.error_code))

    def _become(self, answer: Any) -> None:
        if (self.id, self.epoch) != (answer.producer_id, answer.producer_epoch):
            self.sequences.clear()
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    async def _maybe_move(self) -> None:
        if self.is_moving:
            await self.world.move()

    async def _ask_coordinator(self, request: Any, error_of: Any, version: tuple[int, int] | None = None) -> Any:
        await self._maybe_move()
        return await ask_until(
            lambda: self._ask(self.world.leader(), request, version),
            lambda answer: ErrorCode(int(error_of(answer))) not in NOT_YET,
            "a coordinator that answers",
        )

    async def _ask(self, node_id: int, request: Any, version: tuple[int, int] | None) -> Any:
        port = self.world.nodes[node_id].bound_ports["PLAINTEXT"]
        async with await connect("127.0.0.1", port) as connection:
            if version is not None:
                connection.versions = {**connection.versions, int(version[0]): (version[1], version[1])}
            return await connection.call(request)

    def _leader(self, partition: int) -> int:
        found = self.world.nodes[1].metadata.image.topics.partition(TOPIC, partition)
        assert found is not None
        return found.leader


def offsets_leader(world: World) -> int:
    """The node that coordinates the group; -1 before there is one."""
    found = world.nodes[1].metadata.image.topics.partition(OFFSETS_TOPIC, 0)
    return -1 if found is None else found.leader


async def committed_offset(world: World) -> int:
    """Of partition 0, once no transaction may change it any more."""
    topic_id = world.nodes[1].metadata.image.topics.by_name[TOPIC].topic_id
    wanted = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(i32(0),))
    group = OffsetFetchRequestGroup(group_id=GroupId(GROUP), member_id=None, member_epoch=i32(-1), topics=(wanted,))

    async def ask() -> tuple[int, int]:
        answer = await world.ask(offsets_leader(world), OffsetFetchRequest(groups=(group,), require_stable=True))
        told = answer.groups[0].topics[0].partitions[0]
        return int(told.error_code), int(told.committed_offset)

    return (await ask_until(ask, lambda told: told[0] == 0, "an offset that no transaction may change"))[1]


async def stable_end(world: World, leader: int, partition: int, isolation_level: int) -> int:
    wanted = ListOffsetsPartition(partition_index=i32(partition), timestamp=i64(LATEST))
    answer = await world.ask(
        leader,
        ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(isolation_level),
            topics=(ListOffsetsTopic(name=TopicName(TOPIC), partitions=(wanted,)),),
            timeout=MINUTE,
        ),
    )
    return int(answer.topics[0].partitions[0].offset)


async def committed_values(world: World, partition: int) -> list[bytes]:
    """As a reader of committed records sees them, once no transaction is open any more."""
    image = world.nodes[1].metadata.image
    found = image.topics.partition(TOPIC, partition)
    assert found is not None

    async def ends() -> tuple[int, int]:
        stable = await stable_end(world, found.leader, partition, READ_COMMITTED)
        return stable, await stable_end(world, found.leader, partition, 0)

    await ask_until(ends, lambda ends: ends[0] == ends[1], "the end of all transactions")
    wanted = FetchPartition(partition=i32(partition), fetch_offset=i64(0), partition_max_bytes=i32(1 << 24))
    topic = FetchTopic(topic_id=image.topics.by_name[TOPIC].topic_id, partitions=(wanted,))
    answer = await world.ask(
        found.leader,
        FetchRequest(
            max_wait=MINUTE,
            min_bytes=i32(1),
            max_bytes=i32(1 << 24),
            isolation_level=i8(READ_COMMITTED),
            topics=(topic,),
            forgotten_topics_data=(),
        ),
    )
    told = answer.responses[0].partitions[0]
    waiting = sorted((int(one.first_offset), int(one.producer_id)) for one in told.aborted_transactions or ())
    aborting: set[int] = set()
    values: list[bytes] = []
    raw = bytes(told.records)
    position = 0
    while position < len(raw):
        header = read_header(raw, position)
        while waiting and waiting[0][0] < header.next_offset:
            aborting.add(waiting.pop(0)[1])
        for record in read_records(memoryview(raw)[position : position + header.size_bytes], header):
            if header.is_control:
                if control_type(record) == 0:
                    aborting.discard(header.producer_id)
            elif header.producer_id not in aborting:
                assert record.value is not None
                values.append(record.value)
        position += header.size_bytes
    return values


def run_moving(scenario: Callable[[World], Awaitable[None]], seed: int) -> None:
    run(scenario, seed=seed, partition_count=len(PARTITIONS), internal_topic=TRANSACTIONS_TOPIC)


@pytest.mark.thorough
@pytest.mark.parametrize("version", [1, 2])
def test_a_transaction_is_whole_wherever_its_coordinator_went(version: int) -> None:
    async def scenario(world: World) -> None:
        producer = Producer(world, version)
        await producer.begin()
        expected: list[bytes] = []
        for number in range(6):
            is_commit = number % 3 != 1
            value = b"%d" % number
            for partition in PARTITIONS:
                assert await producer.write(partition, value) is ErrorCode.NONE
            assert await producer.end(is_commit=is_commit) is ErrorCode.NONE
            if is_commit:
                expected.append(value)
        for partition in PARTITIONS:
            assert await committed_values(world, partition) == expected

    run_moving(scenario, version)


@pytest.mark.thorough
@pytest.mark.parametrize("version", [1, 2])
def test_an_open_transaction_is_aborted_for_the_next_producer_wherever_it_begins(version: int) -> None:
    async def scenario(world: World) -> None:
        zombie = Producer(world, version)
        await zombie.begin()
        for partition in PARTITIONS:
            assert await zombie.write(partition, b"lost") is ErrorCode.NONE
        producer = Producer(world, version)
        # It is told CONCURRENT_TRANSACTIONS by one coordinator, and may be answered by another.
        await producer.begin()
        late = await zombie.write(0, b"late")
        assert late in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED), late
        assert await zombie.end(is_commit=True) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        for partition in PARTITIONS:
            assert await producer.write(partition, b"kept") is ErrorCode.NONE
        assert await producer.end(is_commit=True) is ErrorCode.NONE
        for partition in PARTITIONS:
            assert await committed_values(world, partition) == [b"kept"]

    run_moving(scenario, version)


@pytest.mark.thorough
def test_a_commit_that_is_sent_again_elsewhere_is_the_same_commit_kip_890() -> None:
    async def scenario(world: World) -> None:
        producer = Producer(world, 2)
        await producer.begin()
        assert await producer.write(0, b"once") is ErrorCode.NONE
        before = producer.id, producer.epoch
        assert await producer.end(is_commit=True) is ErrorCode.NONE
        raised = producer.id, producer.epoch
        producer.id, producer.epoch = before
        assert await producer.end(is_commit=True) is ErrorCode.NONE
        assert (producer.id, producer.epoch) == raised
        producer.id, producer.epoch = before
        assert await producer.end(is_commit=False) is ErrorCode.INVALID_TXN_STATE
        assert await committed_values(world, 0) == [b"once"]

    run_moving(scenario, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("version", [1, 2])
def test_offsets_and_records_of_a_transaction_count_together_wherever_its_coordinator_went(version: int) -> None:
    """Redpanda #6018: the next coordinator did not know that the transaction had begun, and ended what came later."""

    async def scenario(world: World) -> None:
        await world.ask(1, FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(GROUP,)))

        async def leader() -> int:
            return offsets_leader(world)

        await ask_until(leader, lambda node_id: node_id >= 0, "a coordinator of the group")
        producer = Producer(world, version)
        await producer.begin()
        for number, is_commit in enumerate((True, False, True, False), start=1):
            assert await producer.write(0, b"%d" % number) is ErrorCode.NONE
            assert await producer.commit_offset(number) is ErrorCode.NONE
            assert await producer.write(1, b"%d" % number) is ErrorCode.NONE
            assert await producer.end(is_commit=is_commit) is ErrorCode.NONE
            expected = number if is_commit else number - 1
            assert await committed_offset(world) == expected
        for partition in PARTITIONS:
            assert await committed_values(world, partition) == [b"1", b"3"]

    run_moving(scenario, version)
