"""What the shell of transaction coordinators makes of their effects: commits, markers and producer ids come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from transaction_puppet import CONFIG, ID, TIMEOUT_MS

from penstock.broker.coordinators import transaction_coordinator
from penstock.broker.coordinators.transaction_coordinator import TRANSACTIONS_TOPIC, TransactionCoordinator
from penstock.broker.transactions.effects import TimeoutCheck
from penstock.broker.transactions.transaction import LAST_CLIENT_EPOCH, Transaction, TransactionPartition
from penstock.broker.transactions.transaction_records import record_of
from penstock.broker.transactions.transaction_shard import Producer, TransactionShard
from penstock.broker.transactions.transaction_state import TransactionState
from penstock.client.clock import wait_until
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.messages import Request, Response
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.features import TRANSACTION_VERSION
from penstock.quorum.metadata.records import FeatureLevelRecord

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

P0 = TransactionPartition("flights", 0)


class Peers:
    """Keep what they are asked, and are out of reach."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def request(self, broker_id: int, message: Request) -> Response:
        self.asked.append(message)
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"broker {broker_id} is out of reach")


class World:
    def __init__(self, node: DataNode) -> None:
        self.node = node
        self.peers = Peers()
        self.id_count = 0
        self.id_error: ErrorCode | None = None
        self.may_have_id = asyncio.Event()
        self.may_have_id.set()
        self.answers: list[Producer | ErrorCode] = []
        self.transactions = TransactionCoordinator(
            node.partitions, CONFIG, self.peers, self._next_id, runtime=node.runtime
        )
        node.on_internal_change = self.transactions.coordinators.on_leadership

    async def _next_id(self) -> int:
        await self.may_have_id.wait()
        if self.id_error is not None:
            raise KafkaError(self.id_error)
        self.id_count += 1
        return 999 + self.id_count

    def create_topics(self) -> None:
        self.node.publish(FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=2))
        self.node.create_topic("flights")
        self.node.create_topic(TRANSACTIONS_TOPIC, replicas=(1, 2))
        self.until(lambda: self.state() is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def until(self, condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            self.wait(1)
            return condition()

        assert wait_until(holds, timeout_s=10, interval_s=0), "not within 10 s"

    def wait(self, milliseconds: int) -> None:
        self.node.loop.run_until_complete(asyncio.sleep(milliseconds / 1000))

    def commit(self) -> None:
        """The other replica has all, or is out of sync, which comes to the same here."""
        self.node.publish_isr(TRANSACTIONS_TOPIC, 1)

    def await_replicas(self) -> None:
        """Nothing more is committed."""
        self.node.publish_isr(TRANSACTIONS_TOPIC, 1, 2)

    def ask(self, operation: Callable[[TransactionShard, int | None], Producer | ErrorCode]) -> None:
        def answer_error(error: ErrorCode) -> Producer | ErrorCode:
            return error

        self.transactions.ask(ID, operation, self.answers.append, answer_error)

    def begin(self) -> Producer:
        """A producer with an open transaction, which is committed."""
        self.commit()
        self.ask(lambda shard, new_id: shard.init_producer_id(ID, TIMEOUT_MS, None, new_id))
        self.until(lambda: bool(self.answers))
        producer = self.answers.pop()
        assert isinstance(producer, Producer)

        def add(shard: TransactionShard, _new_id: int | None) -> ErrorCode:
            shard.add_partitions(ID, producer, [P0], 2)
            return ErrorCode.NONE

        self.ask(add)
        assert self.answers.pop() is ErrorCode.NONE
        return producer

    def end(self, producer: Producer) -> None:
        self.ask(
            lambda shard, new_id: shard.end(ID, producer, is_commit=True, client_version=2, new_producer_id=new_id)
        )

    def state(self) -> str | ErrorCode:
        try:
            return self.transactions.get(ID).shard.describe(ID)[0].state.value
        except KafkaError as error:
            return error.code

    def stop(self) -> None:
        self.node.loop.run_until_complete(self.transactions.close())


@pytest.fixture
def world(node: DataNode) -> World:
    return World(node)


def test_markers_are_sent_when_the_decision_is_committed(world: World) -> None:
    world.create_topics()
    producer = world.begin()
    world.await_replicas()
    world.end(producer)
    world.wait(20)
    assert (world.answers, world.peers.asked) == ([], [])
    world.commit()
    assert world.answers == [producer._replace(epoch=1)]
    world.until(lambda: bool(world.peers.asked))
    world.stop()


def test_a_commit_that_comes_after_the_time_of_a_reply_is_followed_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_coordinator, "REQUEST_TIMEOUT_MS", 10)
    world.create_topics()
    producer = world.begin()
    world.await_replicas()
    world.end(producer)
    world.until(lambda: bool(world.answers))
    assert world.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.wait(30)
    assert world.peers.asked == []
    world.commit()
    world.until(lambda: bool(world.peers.asked))
    world.stop()


def test_a_decision_of_a_coordinator_that_is_unloaded_is_not_carried_out(world: World) -> None:
    world.create_topics()
    producer = world.begin()
    world.await_replicas()
    world.end(producer)
    world.node.elect(TRANSACTIONS_TOPIC, 2)
    assert world.answers == [ErrorCode.NOT_COORDINATOR]
    world.commit()
    world.wait(50)
    assert world.peers.asked == []
    world.stop()


def test_markers_of_a_coordinator_that_is_unloaded_are_sent_no_more(world: World) -> None:
    world.create_topics()
    world.end(world.begin())
    world.until(lambda: bool(world.peers.asked))
    world.node.elect(TRANSACTIONS_TOPIC, 2)
    world.wait(5)
    world.peers.asked.clear()
    # A change of the metadata sends at once what waits for a retry.
    world.transactions.publish(None, world.node.image)  # type: ignore[arg-type]
    world.wait(50)
    assert world.peers.asked == []
    world.stop()


def test_partitions_that_are_gone_complete_the_transaction(world: World) -> None:
    world.create_topics()
    producer = world.begin()
    world.node.delete_topic("flights")
    world.end(producer)
    assert world.answers == [producer._replace(epoch=1)]
    assert world.state() == "CompleteCommit"
    world.stop()


def last_epoch(state: TransactionState) -> Transaction:
    return Transaction(
        id=ID,
        producer_id=7,
        previous_producer_id=7,
        producer_epoch=LAST_CLIENT_EPOCH,
        timeout_ms=TIMEOUT_MS,
        state=state,
        partitions=frozenset({P0}),
        started_ms=0,
        updated_ms=0,
        client_version=2,
    )


def load(world: World, transaction: Transaction) -> None:
    """The coordinator finds the transaction in its log."""
    world.create_topics()
    world.node.elect(TRANSACTIONS_TOPIC, 2)
    record = record_of(transaction, 2)
    partition = world.node.hosted(TRANSACTIONS_TOPIC)
    batch = write_batch(
        [Record(0, world.node.now_ms, record.key, record.value)], leader_epoch=partition.state.leader_epoch
    )
    partition.append_as_follower(memoryview(batch), 0)
    world.node.elect(TRANSACTIONS_TOPIC, 1)
    world.until(lambda: world.state() is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def test_what_is_loaded_is_carried_out_when_it_is_committed(world: World) -> None:
    load(world, last_epoch(TransactionState.PREPARE_COMMIT))
    world.wait(20)
    assert world.peers.asked == []
    world.commit()
    world.until(lambda: bool(world.peers.asked))
    world.stop()


def test_a_request_that_needs_a_producer_id_is_answered_with_it(world: World) -> None:
    load(world, last_epoch(TransactionState.ONGOING))
    world.commit()
    world.may_have_id.clear()
    world.end(Producer(7, LAST_CLIENT_EPOCH))
    world.wait(5)
    assert (world.answers, world.state()) == ([], "Ongoing")
    world.may_have_id.set()
    world.until(lambda: bool(world.answers))
    assert world.answers == [Producer(1000, 0)]
    world.stop()


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT])
def test_a_request_that_gets_no_producer_id_gets_the_error(world: World, error: ErrorCode) -> None:
    load(world, last_epoch(TransactionState.ONGOING))
    world.commit()
    world.id_error = error
    world.end(Producer(7, LAST_CLIENT_EPOCH))
    world.until(lambda: bool(world.answers))
    assert world.answers == [error]
    assert world.state() == "Ongoing"
    world.stop()


def test_a_request_that_waits_for_a_producer_id_is_answered_when_its_coordinator_is_unloaded(world: World) -> None:
    load(world, last_epoch(TransactionState.ONGOING))
    world.commit()
    world.may_have_id.clear()
    world.end(Producer(7, LAST_CLIENT_EPOCH))
    world.wait(5)
    world.node.elect(TRANSACTIONS_TOPIC, 2)
    world.may_have_id.set()
    world.until(lambda: bool(world.answers))
    assert world.answers == [ErrorCode.NOT_COORDINATOR]
    world.stop()


def test_a_request_that_waits_for_a_producer_id_is_answered_when_the_node_stops(world: World) -> None:
    load(world, last_epoch(TransactionState.ONGOING))
    world.commit()
    world.may_have_id.clear()
    world.end(Producer(7, LAST_CLIENT_EPOCH))
    world.wait(5)
    world.stop()
    assert world.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_a_timeout_that_needs_a_producer_id_aborts_when_it_has_come(world: World) -> None:
    load(world, last_epoch(TransactionState.ONGOING))
    world.commit()
    world.id_error = ErrorCode.NOT_CONTROLLER
    check_timeouts(world)
    world.wait(5)
    assert world.state() == "Ongoing"
    world.id_error = None
    check_timeouts(world)
    world.until(lambda: world.state() == "PrepareAbort")
    world.until(lambda: bool(world.peers.asked))
    world.stop()


def check_timeouts(world: World) -> None:
    """As the timer does."""
    with world.transactions.get(ID).event() as shard:
        shard.on_timer(TimeoutCheck())
