"""Markers find the leaders of their partitions, however often those change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kio.static.primitive import i32
from typed_ids import node_ids
from waiting import loop_until

from penstock.broker.coordinators.marker_sender import MarkerSender
from penstock.broker.transactions.markers import MarkerOrder
from penstock.broker.transactions.transaction import Transaction, TransactionPartition
from penstock.broker.transactions.transaction_state import TransactionState
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.messages import Request, Response
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.records import PartitionRecord, RegisterBrokerRecord, TopicRecord

TOPIC_ID = TopicId(UUID(int=1))
P0, P1, P2 = (TransactionPartition("flights", index) for index in range(3))


def image_of(leaders: Iterable[int], gone: Iterable[int] = ()) -> MetadataImage:
    """One topic, with the leader of each of its partitions, and brokers 1 to 3 but for those that are gone."""
    delta = MetadataDelta(EMPTY_IMAGE)
    for broker_id in {1, 2, 3} - set(gone):
        delta.replay(
            RegisterBrokerRecord(
                broker_id=NodeId(broker_id),
                incarnation_id=UUID(int=broker_id),
                broker_epoch=BrokerEpoch(1),
                is_fenced=False,
            )
        )
    delta.replay(TopicRecord(name="flights", topic_id=TOPIC_ID))
    for index, leader in enumerate(leaders):
        delta.replay(
            PartitionRecord(
                partition_id=index,
                topic_id=TOPIC_ID,
                replicas=node_ids(1, 2, 3),
                isr=node_ids(1, 2, 3),
                leader=NodeId(leader),
                leader_epoch=LeaderEpoch(1),
                partition_epoch=PartitionEpoch(1),
                directories=(UUID(int=7),) * 3,
            )
        )
    return delta.apply(offset=1, epoch=ControllerEpoch(1), timestamp_ms=0)


class Peers:
    """Writes markers down; `errors` is what the next asks for a partition are told, `unreached` who does not answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.errors: dict[TransactionPartition, list[ErrorCode]] = {}
        self.unreached: set[int] = set()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def request(self, broker_id: int, message: Request) -> Response:
        assert isinstance(message, WriteTxnMarkersRequest)
        self.asked.append((broker_id, message))
        await self.may_answer.wait()
        if broker_id in self.unreached:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "no broker is there")
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=self._error(str(topic.name), int(index))
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in message.markers
            )
        )

    def _error(self, topic: str, index: int) -> KioErrorCode:
        waiting = self.errors.get(TransactionPartition(topic, index))
        return KioErrorCode(int(waiting.pop(0) if waiting else ErrorCode.NONE))

    @property
    def brokers(self) -> list[int]:
        return [broker_id for broker_id, _ in self.asked]


class Case:
    def __init__(self, *leaders: int) -> None:
        self.image = image_of(leaders)
        self.peers = Peers()
        self.sender = MarkerSender(self.peers, lambda: self.image, asyncio.get_running_loop())
        self.written: set[tuple[int, TransactionPartition]] = set()
        self.fenced: list[int] = []

    def order(self, *partitions: TransactionPartition, producer_id: int = 7, is_commit: bool = True) -> MarkerOrder:
        transaction = Transaction(
            id=f"mover-{producer_id}",
            producer_id=producer_id,
            producer_epoch=5,
            timeout_ms=60_000,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            partitions=frozenset(partitions),
            updated_ms=0,
            client_version=2,
        )

        order = MarkerOrder(transaction, 9)
        self.sender.write(order, self)
        return order

    # As `MarkerReports`.

    def on_written(self, order: MarkerOrder, partitions: Collection[TransactionPartition]) -> None:
        reported = {(order.transaction.producer_id, one) for one in partitions}
        assert not reported & self.written, "each is reported once"
        self.written |= reported

    def on_fenced(self, order: MarkerOrder) -> None:
        self.fenced.append(order.transaction.producer_id)

    async def until(self, is_so: Callable[[], bool]) -> None:
        await loop_until(is_so, interval_s=0)

    def lead(self, *leaders: int, gone: Iterable[int] = ()) -> None:
        self.image = image_of(leaders, gone)
        self.sender.on_metadata()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await scenario()

    asyncio.run(main())


def test_each_leader_is_told_once_what_is_its() -> None:
    async def scenario() -> None:
        case = Case(1, 2, 1)
        case.order(P0, P1, P2)
        await case.until(lambda: case.written == {(7, P0), (7, P1), (7, P2)})
        asked = dict(case.peers.asked)
        assert sorted(case.peers.brokers) == [1, 2]
        (marker,) = asked[1].markers
        assert marker.topics[0].name == TopicName("flights")
        assert marker.topics[0].partition_indexes == (i32(0), i32(2))
        assert (marker.producer_id, marker.producer_epoch) == (ProducerId(7), 5)
        assert (marker.coordinator_epoch, marker.transaction_version, marker.transaction_result) == (9, 2, True)

    run(scenario)


def test_what_comes_while_a_broker_is_asked_goes_out_together() -> None:
    async def scenario() -> None:
        case = Case(1)
        case.peers.may_answer.clear()
        case.order(P0)
        await case.until(lambda: bool(case.peers.asked))
        case.order(P0, producer_id=8, is_commit=False)
        case.order(P0, producer_id=9)
        case.peers.may_answer.set()
        await case.until(lambda: len(case.written) == 3)
        assert [len(request.markers) for _, request in case.peers.asked] == [1, 2]
        assert [marker.transaction_result for marker in case.peers.asked[1][1].markers] == [False, True]

    run(scenario)


def test_what_a_broker_does_not_write_is_asked_again_of_the_leader() -> None:
    async def scenario() -> None:
        case = Case(1, 1)
        case.peers.errors[P0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
        case.order(P0, P1)
        await case.until(lambda: (7, P1) in case.written)
        case.lead(2, 1)
        await case.until(lambda: (7, P0) in case.written)
        assert case.peers.brokers == [1, 2, 2]

    run(scenario)


def test_an_answer_that_cannot_be_read_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        case = Case(1)
        request = case.peers.request

        async def answer_nonsense(broker_id: int, message: Request) -> Response:
            monkeypatch.setattr(case.peers, "request", request)
            return WriteTxnMarkersResponse(markers=None)  # type: ignore[arg-type]

        monkeypatch.setattr(case.peers, "request", answer_nonsense)
        case.order(P0)
        await case.until(lambda: (7, P0) in case.written)
        assert case.peers.brokers == [1]

    run(scenario)


def test_a_broker_that_is_gone_is_asked_until_another_leads() -> None:
    async def scenario() -> None:
        case = Case(1)
        case.peers.unreached = {1}
        case.order(P0)
        await case.until(lambda: len(case.peers.asked) == 3)
        case.lead(2)
        await case.until(lambda: case.written == {(7, P0)})
        assert case.peers.brokers[-1] == 2

    run(scenario)


def test_a_broker_that_is_silent_is_not_waited_for_when_it_is_gone() -> None:
    async def scenario() -> None:
        case = Case(1, 1)
        case.peers.may_answer.clear()
        case.order(P0)
        await case.until(lambda: bool(case.peers.asked))
        case.order(P1, producer_id=8)
        case.peers.may_answer.set()
        case.peers.may_answer.clear()
        case.lead(2, 3, gone=[1])
        case.peers.may_answer.set()
        await case.until(lambda: case.written == {(7, P0), (8, P1)})
        assert sorted(case.peers.brokers) == [1, 2, 3]

    run(scenario)


def test_markers_of_a_leaderless_partition_wait_for_a_leader() -> None:
    async def scenario() -> None:
        case = Case(-1)
        case.order(P0)
        await asyncio.sleep(0)
        assert case.peers.asked == []
        assert case.sender.unled_count == 1
        case.lead(-1)
        assert case.sender.unled_count == 1
        case.lead(3)
        assert case.sender.unled_count == 0
        await case.until(lambda: case.written == {(7, P0)})
        assert case.peers.brokers == [3]

    run(scenario)


def test_deleted_partitions_need_no_marker() -> None:
    async def scenario() -> None:
        case = Case(1)
        case.order(P0, P1)
        assert case.written == {(7, P1)}
        await case.until(lambda: (7, P0) in case.written)
        case.peers.errors[P0] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        case.order(P0, producer_id=8)
        await case.until(lambda: len(case.peers.asked) == 2)
        case.image = EMPTY_IMAGE
        await case.until(lambda: (8, P0) in case.written)

    run(scenario)


def test_a_partition_that_knows_a_later_epoch_needs_no_marker() -> None:
    async def scenario() -> None:
        case = Case(1)
        case.peers.errors[P0] = [ErrorCode.INVALID_PRODUCER_EPOCH]
        case.order(P0)
        await case.until(lambda: case.written == {(7, P0)})

    run(scenario)


def test_a_coordinator_that_is_fenced_goes_no_further() -> None:
    async def scenario() -> None:
        case = Case(1, 1)
        case.peers.errors[P0] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        case.order(P0, P1)
        await case.until(lambda: case.fenced == [7])
        assert case.written == set()

    run(scenario)


def test_what_is_cancelled_is_asked_no_more() -> None:
    async def scenario() -> None:
        case = Case(1, -1)
        case.peers.unreached = {1}
        order = case.order(P0, P1)
        await case.until(lambda: bool(case.peers.asked))
        case.sender.cancel(order)
        case.peers.unreached = set()
        case.lead(1, 1)
        case.order(P1, producer_id=8)
        await case.until(lambda: case.written == {(8, P1)})
        assert [marker.producer_id for _, request in case.peers.asked[1:] for marker in request.markers] == [8]
        await case.sender.close()

    run(scenario)


def test_an_order_that_is_fenced_by_one_leader_goes_to_no_other() -> None:
    async def scenario() -> None:
        case = Case(1, 2, -1)
        case.peers.errors[P0] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        case.peers.unreached = {2}
        case.peers.may_answer.clear()
        case.order(P0, P1, P2)
        await case.until(lambda: sorted(case.peers.brokers) == [1, 2])
        case.peers.may_answer.set()
        await case.until(lambda: case.fenced == [7])
        case.peers.unreached = set()
        case.peers.asked.clear()
        case.lead(1, 2, 2)
        case.order(P1, P2, producer_id=8)
        await case.until(lambda: case.written == {(8, P1), (8, P2)})
        assert [marker.producer_id for _, request in case.peers.asked for marker in request.markers] == [8]

    run(scenario)


def test_an_order_that_is_cancelled_while_a_broker_is_asked_reports_nothing() -> None:
    async def scenario() -> None:
        case = Case(1, 1)
        case.peers.errors[P1] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        case.peers.may_answer.clear()
        written, fenced = case.order(P0), case.order(P1, producer_id=8)
        await case.until(lambda: bool(case.peers.asked))
        case.sender.cancel(written)
        case.sender.cancel(fenced)
        case.peers.may_answer.set()
        case.order(P0, producer_id=9)
        await case.until(lambda: case.written == {(9, P0)})
        assert case.fenced == []

    run(scenario)


def test_orders_of_one_transaction_are_each_an_order_of_their_own() -> None:
    async def scenario() -> None:
        case = Case(-1)
        first, second = case.order(P0), case.order(P0)
        case.sender.cancel(first)
        case.lead(1)
        await case.until(lambda: case.written == {(7, P0)})
        assert [len(request.markers) for _, request in case.peers.asked] == [1]
        # It has ended.
        case.sender.cancel(second)

    run(scenario)


def test_a_node_that_stops_sends_no_markers() -> None:
    async def scenario() -> None:
        case = Case(1)
        case.peers.may_answer.clear()
        case.order(P0)
        await case.until(lambda: bool(case.peers.asked))
        await case.sender.close()
        case.order(P0, producer_id=8)
        await asyncio.sleep(0)
        assert case.peers.brokers == [1]

    run(scenario)
