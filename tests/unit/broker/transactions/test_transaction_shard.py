"""Transactions of one coordinator: every step there is, who is fenced by it, and what a retry is told.

The rules are those of Apache Kafka 4.3's TransactionCoordinator (KIP-98, KIP-360, KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from transaction_puppet import (
    ABORT_INTERVAL_MS,
    CONFIG,
    EXPIRATION_INTERVAL_MS,
    EXPIRATION_MS,
    ID,
    P0,
    P1,
    TIMEOUT_MS,
    PuppetTransactionLog,
    TransactionPuppet,
)

from penstock.broker.coordination.effects import Effect, ScheduleTimer
from penstock.broker.transactions.effects import (
    AwaitCommit,
    ChangeRecord,
    CompletionRetry,
    ExpirationCheck,
    LoadedRecords,
    RequestProducerId,
    TimeoutCheck,
    WriteMarkers,
)
from penstock.broker.transactions.markers import MarkerOrder
from penstock.broker.transactions.transaction import EPOCH_MAX, LAST_CLIENT_EPOCH, NOT_STARTED, Transaction
from penstock.broker.transactions.transaction_records import record_of
from penstock.broker.transactions.transaction_shard import Producer
from penstock.broker.transactions.transaction_state import PREVIOUS_STATES, TransactionState
from penstock.protocol.batches import NO_PRODUCER_ID
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.structs import replace

V1, V2 = 0, 2


def error_of(ask: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        ask()
    return caught.value.code


def in_state(state: TransactionState, *, epoch: int = 5, client_version: int = V2, **fields: object) -> Transaction:
    has_partitions = not state.is_over
    stands = Transaction(
        id=ID,
        producer_id=7,
        previous_producer_id=7,
        producer_epoch=epoch,
        timeout_ms=TIMEOUT_MS,
        state=state,
        partitions=frozenset({P0}) if has_partitions else frozenset(),
        started_ms=NOT_STARTED if state is TransactionState.EMPTY else 1_000_000,
        updated_ms=1_000_000,
        client_version=client_version,
    )
    return replace(stands, **fields)  # type: ignore[arg-type]


def loaded(transaction: Transaction, *, feature_level: int = 2) -> TransactionPuppet:
    """A coordinator that has found the transaction in its log."""
    log = PuppetTransactionLog()
    log.append([record_of(transaction, 2)])
    return TransactionPuppet(log, feature_level=feature_level)


# InitProducerId.


def test_the_first_producer_has_epoch_0_and_the_next_fences_it() -> None:
    puppet = TransactionPuppet()
    first = puppet.init()
    assert first == Producer(1000, 0)
    assert puppet.init() == Producer(1000, 1)
    assert error_of(lambda: puppet.add(first)) is ErrorCode.PRODUCER_FENCED
    assert puppet.state == "Empty"


@pytest.mark.parametrize("timeout_ms", [0, -1, CONFIG.transaction_max_timeout_ms + 1])
def test_timeouts_have_bounds(timeout_ms: int) -> None:
    puppet = TransactionPuppet()
    assert error_of(lambda: puppet.init(timeout_ms=timeout_ms)) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert puppet.init(timeout_ms=CONFIG.transaction_max_timeout_ms) == Producer(1000, 0)


@pytest.mark.parametrize("state", [state for state in TransactionState if state.is_over])
def test_a_producer_may_begin_again_when_nothing_is_open(state: TransactionState) -> None:
    puppet = loaded(in_state(state))
    assert puppet.init() == Producer(7, 6)
    assert puppet.transaction.started_ms == NOT_STARTED
    assert puppet.state == "Empty"


def test_a_producer_says_who_it_was_kip_360() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    raised = puppet.init(producer)
    assert raised == Producer(producer.id, 1)
    # The answer was lost: it is told the same.
    assert puppet.init(producer) == raised
    assert puppet.init(raised) == Producer(producer.id, 2)
    assert error_of(lambda: puppet.init(producer)) is ErrorCode.PRODUCER_FENCED
    assert error_of(lambda: puppet.init(Producer(999, 2))) is ErrorCode.PRODUCER_FENCED


def test_another_producer_makes_an_end_of_retries_kip_360() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.init(producer)
    puppet.init()
    assert error_of(lambda: puppet.init(producer)) is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_id_has_expired_begins_anew_kip_360() -> None:
    puppet = TransactionPuppet()
    assert puppet.init(Producer(999, 12)) == Producer(1000, 0)


def test_used_up_epochs_bring_another_producer_id() -> None:
    puppet = loaded(in_state(TransactionState.COMPLETE_COMMIT, epoch=LAST_CLIENT_EPOCH))
    old = Producer(7, LAST_CLIENT_EPOCH)
    assert puppet.init(old) == Producer(1000, 0)
    # A retry names the producer that it was before.
    assert puppet.init(old) == Producer(1000, 0)
    assert puppet.init() == Producer(1000, 1)
    assert error_of(lambda: puppet.init(old)) is ErrorCode.PRODUCER_FENCED


def test_the_last_epoch_is_given_and_a_retry_is_told_of_it() -> None:
    puppet = loaded(in_state(TransactionState.EMPTY, epoch=LAST_CLIENT_EPOCH - 1))
    before = Producer(7, LAST_CLIENT_EPOCH - 1)
    assert puppet.init(before) == Producer(7, LAST_CLIENT_EPOCH)
    assert puppet.init(before) == Producer(7, LAST_CLIENT_EPOCH)
    assert puppet.init() == Producer(1000, 0)


@pytest.mark.parametrize(("feature_level", "fence"), [(0, 6), (1, 6), (2, 6)])
def test_an_open_transaction_is_aborted_before_another_producer_begins(feature_level: int, fence: int) -> None:
    puppet = loaded(in_state(TransactionState.ONGOING, client_version=0), feature_level=feature_level)
    assert error_of(puppet.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (puppet.state, puppet.transaction.producer_epoch) == ("PrepareAbort", fence)
    assert error_of(puppet.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = puppet.orders
    assert (order.is_commit, order.coordinator_epoch, order.transaction.producer_epoch) == (False, 5, fence)
    assert order.transaction.client_version == (2 if feature_level == 2 else 0)
    puppet.mark_all()
    # The epoch of the fence was never given to a producer.
    assert puppet.init() == Producer(7, fence + 1)


@pytest.mark.parametrize("feature_level", [1, 2])
def test_a_fence_of_the_last_epoch_leaves_the_next_producer_another_id(feature_level: int) -> None:
    ongoing = in_state(TransactionState.ONGOING, epoch=LAST_CLIENT_EPOCH)
    puppet = loaded(ongoing, feature_level=feature_level)
    asked = error_of(lambda: puppet.init_with_id(1000))
    assert asked is ErrorCode.CONCURRENT_TRANSACTIONS
    assert puppet.transaction.producer_epoch == EPOCH_MAX
    puppet.mark_all()
    puppet.next_producer_id = 1001
    begun = puppet.init()
    assert begun == (Producer(1000, 1) if feature_level == 2 else Producer(1001, 0))


# AddPartitionsToTxn.


def test_partitions_are_added_and_the_transaction_began_with_the_first() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.timers.wait(1_000)
    puppet.add(producer, [P0])
    started_ms = puppet.timers.now_ms
    puppet.timers.wait(1_000)
    puppet.add(producer, [P1])
    assert puppet.shard.describe(ID)[1] == {P0, P1}
    assert puppet.transaction.started_ms == started_ms
    record_count = len(puppet.log.records)
    puppet.add(producer, [P0, P1])
    assert len(puppet.log.records) == record_count, "what is there already is not written again"


def test_only_the_producer_that_there_is_adds_partitions() -> None:
    puppet = TransactionPuppet()
    assert error_of(lambda: puppet.add(Producer(1, 0))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer = puppet.init()
    assert error_of(lambda: puppet.add(Producer(1, 0))) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(lambda: puppet.add(producer._replace(epoch=1))) is ErrorCode.PRODUCER_FENCED
    puppet.add(producer)
    raised = puppet.end(producer)
    assert error_of(lambda: puppet.add(raised)) is ErrorCode.CONCURRENT_TRANSACTIONS
    puppet.mark_all()
    puppet.add(raised)


def test_verification_tells_of_each_partition_kip_890() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer, [P0])
    verify = puppet.shard.verify_partitions
    assert verify(ID, producer, [P0, P1]) == {P0: ErrorCode.NONE, P1: ErrorCode.TRANSACTION_ABORTABLE}
    assert error_of(lambda: verify("other", producer, [P0])) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(lambda: verify(ID, Producer(1, 0), [P0])) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(lambda: verify(ID, producer._replace(epoch=3), [P0])) is ErrorCode.PRODUCER_FENCED
    raised = puppet.end(producer)
    assert error_of(lambda: verify(ID, raised, [P0])) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error_of(lambda: verify(ID, producer, [P0])) is ErrorCode.PRODUCER_FENCED
    puppet.mark_all()
    assert verify(ID, raised, [P0]) == {P0: ErrorCode.TRANSACTION_ABORTABLE}


# EndTxn, up to version 1 of transactions.


@pytest.mark.parametrize("is_commit", [True, False])
def test_version_1_keeps_the_epoch(is_commit: bool) -> None:
    puppet = TransactionPuppet(feature_level=1)
    producer = puppet.init()
    puppet.add(producer, [P0, P1], V1)
    assert puppet.end(producer, is_commit=is_commit, client_version=V1) == producer
    assert puppet.state == ("PrepareCommit" if is_commit else "PrepareAbort")
    (order,) = puppet.orders
    assert (order.is_commit, order.transaction.producer_epoch) == (is_commit, producer.epoch)
    puppet.mark_all()
    assert puppet.state == ("CompleteCommit" if is_commit else "CompleteAbort")
    # What may be a retry is told that it was done, and the opposite is refused.
    assert puppet.end(producer, is_commit=is_commit, client_version=V1) == producer
    opposite = error_of(lambda: puppet.end(producer, is_commit=not is_commit, client_version=V1))
    assert opposite is ErrorCode.INVALID_TXN_STATE


def test_version_1_cannot_tell_a_late_end_from_the_next_transactions_kafka_17754() -> None:
    puppet = TransactionPuppet(feature_level=1)
    producer = puppet.init()
    puppet.add(producer, [P0], V1)
    puppet.end(producer, is_commit=True, client_version=V1)
    puppet.mark_all()
    puppet.add(producer, [P1], V1)
    # The commit of the first transaction, sent twice by the network, ends the second one.
    puppet.end(producer, is_commit=True, client_version=V1)
    assert puppet.state == "PrepareCommit"


def test_version_2_refuses_a_late_end_kafka_17754() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer, [P0])
    raised = puppet.end(producer)
    puppet.mark_all()
    puppet.add(raised, [P1])
    assert error_of(lambda: puppet.end(producer)) is ErrorCode.PRODUCER_FENCED
    assert puppet.state == "Ongoing"


@pytest.mark.parametrize("is_commit", [True, False])
def test_version_1_ends_nothing_that_has_not_begun(is_commit: bool) -> None:
    puppet = TransactionPuppet(feature_level=1)
    producer = puppet.init()
    refused = error_of(lambda: puppet.end(producer, is_commit=is_commit, client_version=V1))
    assert refused is ErrorCode.INVALID_TXN_STATE


# EndTxn of version 2, in each state: the answer for each epoch.

NEW, OLD, LATER = 0, -1, 1


@pytest.mark.parametrize(
    ("state", "is_commit", "epoch", "told"),
    [
        (TransactionState.ONGOING, True, NEW, Producer(7, 6)),
        (TransactionState.ONGOING, False, NEW, Producer(7, 6)),
        (TransactionState.ONGOING, True, OLD, ErrorCode.PRODUCER_FENCED),
        (TransactionState.ONGOING, True, LATER, ErrorCode.PRODUCER_FENCED),
        (TransactionState.EMPTY, True, NEW, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.EMPTY, False, NEW, Producer(7, 6)),
        (TransactionState.EMPTY, False, OLD, ErrorCode.PRODUCER_FENCED),
        (TransactionState.COMPLETE_COMMIT, True, OLD, Producer(7, 5)),
        (TransactionState.COMPLETE_COMMIT, False, OLD, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_COMMIT, True, NEW, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_COMMIT, False, NEW, Producer(7, 6)),
        (TransactionState.COMPLETE_COMMIT, False, LATER, ErrorCode.PRODUCER_FENCED),
        (TransactionState.COMPLETE_ABORT, False, OLD, Producer(7, 5)),
        (TransactionState.COMPLETE_ABORT, True, OLD, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_ABORT, True, NEW, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_ABORT, False, NEW, Producer(7, 6)),
        (TransactionState.COMPLETE_ABORT, True, LATER, ErrorCode.PRODUCER_FENCED),
        (TransactionState.PREPARE_COMMIT, True, OLD, ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_COMMIT, False, OLD, ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_ABORT, False, OLD, ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_ABORT, False, NEW, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_version_2_in_every_state(
    state: TransactionState, is_commit: bool, epoch: int, told: Producer | ErrorCode
) -> None:
    puppet = loaded(in_state(state))
    producer = Producer(7, 5 + epoch)
    if isinstance(told, ErrorCode):
        assert error_of(lambda: puppet.end(producer, is_commit=is_commit)) is told
    else:
        assert puppet.end(producer, is_commit=is_commit) == told
        puppet.mark_all()
        assert puppet.end(producer, is_commit=is_commit) == told, "a retry is told the same"
    assert error_of(lambda: puppet.end(Producer(9, 5))) in (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )


@pytest.mark.parametrize("is_commit", [True, False])
def test_version_2_takes_no_end_of_version_1_for_its_own(is_commit: bool) -> None:
    puppet = TransactionPuppet()
    fenced = puppet.init()
    other = puppet.init()
    puppet.add(other, [P0], V1)
    puppet.end(other, is_commit=is_commit, client_version=V1)
    puppet.mark_all()
    # One epoch behind, as a retry would be.
    assert error_of(lambda: puppet.end(fenced, is_commit=is_commit)) is ErrorCode.PRODUCER_FENCED


def test_an_empty_abort_raises_the_epoch_and_needs_no_marker_kip_890() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    raised = puppet.end(producer, is_commit=False)
    assert raised == Producer(producer.id, 1)
    assert (puppet.state, puppet.orders) == ("CompleteAbort", [])
    assert puppet.transaction.started_ms == puppet.timers.now_ms


def test_the_end_of_the_last_epoch_brings_another_producer_id_kip_890() -> None:
    puppet = loaded(in_state(TransactionState.ONGOING, epoch=LAST_CLIENT_EPOCH))
    last = Producer(7, LAST_CLIENT_EPOCH)
    assert puppet.end(last) == Producer(1000, 0)
    # Until the markers are written it is the old producer that they are of.
    assert (puppet.transaction.producer_id, puppet.transaction.producer_epoch) == (7, EPOCH_MAX)
    assert puppet.transaction.next_producer_id == 1000
    puppet = puppet.restarted()
    (order,) = puppet.orders
    assert (order.transaction.producer_id, order.transaction.producer_epoch) == (7, EPOCH_MAX)
    puppet.mark_all()
    assert puppet.end(last) == Producer(1000, 0), "a retry"
    assert (puppet.transaction.previous_producer_id, puppet.transaction.next_producer_id) == (7, NO_PRODUCER_ID)
    puppet.add(Producer(1000, 0))
    assert error_of(lambda: puppet.end(last)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert puppet.end(Producer(1000, 0)) == Producer(1000, 1)


def test_a_client_of_version_1_goes_on_where_one_of_version_2_was() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    raised = puppet.end(producer)
    puppet.mark_all()
    puppet.add(raised, client_version=V1)
    assert puppet.end(raised, client_version=V1) == raised
    puppet.mark_all()
    assert (puppet.state, puppet.transaction.client_version) == ("CompleteCommit", V1)


# What is not committed yet.


def test_nothing_follows_before_what_it_rests_on_is_committed() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    puppet.log.is_committing = False
    raised = puppet.end(producer)
    assert puppet.orders == [], "no marker before the decision is sure"
    for ask in (
        puppet.init,
        lambda: puppet.add(raised),
        lambda: puppet.end(producer),
        lambda: puppet.end(raised, is_commit=False),
    ):
        assert error_of(ask) is ErrorCode.CONCURRENT_TRANSACTIONS
    puppet.log.commit()
    assert len(puppet.orders) == 1
    puppet.log.is_committing = False
    puppet.mark_all()
    assert puppet.state == "CompleteCommit"
    assert error_of(lambda: puppet.add(raised)) is ErrorCode.CONCURRENT_TRANSACTIONS
    puppet.log.commit()
    puppet.add(raised)


def test_what_the_log_refuses_has_not_happened() -> None:
    puppet = TransactionPuppet()
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(puppet.init) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(lambda: puppet.shard.describe(ID)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    producer = puppet.init()
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(lambda: puppet.add(producer)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert puppet.state == "Empty"
    puppet.add(producer)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(lambda: puppet.end(producer)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert puppet.state == "Ongoing"
    assert puppet.end(producer) == Producer(producer.id, 1)


def test_a_completion_that_the_log_refuses_is_tried_again() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    raised = puppet.end(producer)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    puppet.mark_all()
    assert puppet.state == "PrepareCommit"
    puppet.timers.wait(1_000)
    assert puppet.state == "CompleteCommit"
    puppet.add(raised)


# Markers.


def test_a_transaction_is_complete_when_its_last_marker_is_written() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer, [P0, P1])
    puppet.end(producer)
    (order,) = puppet.orders
    puppet.mark(order, [P0])
    assert puppet.shard.describe(ID)[1] == {P1}
    assert puppet.state == "PrepareCommit"
    puppet.mark(order, [P1])
    assert puppet.state == "CompleteCommit"
    assert puppet.shard.describe(ID)[1] == frozenset()


def test_markers_of_the_raised_epoch_are_written() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    puppet.end(producer)
    (order,) = puppet.orders
    assert (order.transaction.producer_epoch, order.transaction.client_version) == (producer.epoch + 1, 2)


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_next_coordinator_writes_the_markers_again(is_commit: bool) -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer, [P0, P1])
    raised = puppet.end(producer, is_commit=is_commit)
    (first,) = puppet.orders
    puppet.mark(first, [P0])
    puppet.log.leader_epoch = 6
    before, puppet = puppet, puppet.restarted()
    assert before.cancelled == [first]
    puppet.mark(first, [P0, P1])
    (order,) = puppet.orders
    assert order.transaction.partitions == {P0, P1}
    assert (order.is_commit, order.coordinator_epoch) == (is_commit, 6)
    assert error_of(lambda: puppet.add(raised)) is ErrorCode.CONCURRENT_TRANSACTIONS
    puppet.mark_all()
    assert puppet.end(producer, is_commit=is_commit) == raised, "a retry at another coordinator"


def test_the_next_coordinator_waits_until_a_decision_is_sure() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    puppet.log.is_committing = False
    puppet.end(producer)
    puppet = puppet.restarted()
    assert puppet.orders == []
    puppet.log.commit()
    assert len(puppet.orders) == 1


def test_a_fenced_coordinator_leaves_the_transaction_alone() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    puppet.end(producer)
    (order,) = puppet.orders
    puppet.fence(order)
    puppet.mark(order, [P0])
    assert puppet.state == "PrepareCommit"


def test_a_report_of_an_order_that_was_replaced_changes_nothing() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    raised = puppet.end(producer)
    (first,) = puppet.orders
    puppet.mark_all()
    puppet.add(raised)
    puppet.end(raised)
    (second,) = puppet.orders
    assert first != second
    puppet.fence(first)
    puppet.mark(first, [P0])
    assert (puppet.state, puppet.shard.describe(ID)[1]) == ("PrepareCommit", frozenset({P0}))
    puppet.mark(second, [P0])
    assert puppet.state == "CompleteCommit"


def test_a_report_of_an_id_that_is_not_known_changes_nothing() -> None:
    puppet = TransactionPuppet()
    order = MarkerOrder(in_state(TransactionState.PREPARE_COMMIT), 5)
    puppet.mark(order, [P0])
    puppet.fence(order)
    assert (list(puppet.shard), puppet.log.records) == ([], [])


def test_a_report_of_an_equal_order_of_another_coordinator_changes_nothing() -> None:
    puppet = loaded(in_state(TransactionState.PREPARE_COMMIT))
    (order,) = puppet.orders
    puppet.mark(MarkerOrder(order.transaction, order.coordinator_epoch), [P0])
    assert puppet.state == "PrepareCommit"


def test_a_coordinator_that_is_unloaded_cancels_the_orders_that_it_waits_for() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    raised = puppet.end(producer)
    puppet.mark_all()
    puppet.add(raised)
    puppet.end(raised)
    (order,) = puppet.orders
    puppet.unload()
    assert puppet.cancelled == [order], "the first has ended"


# Effects.


def test_effects_of_a_transaction_come_in_their_order() -> None:
    puppet = TransactionPuppet()
    puppet.log.is_committing = False

    def applied(step: Callable[[], object]) -> list[Effect]:
        puppet.applied.clear()
        step()
        return puppet.applied[:]

    producers: list[Producer] = []
    assert applied(lambda: producers.append(puppet.init())) == [
        AwaitCommit(ChangeRecord(ID, 0)),
        ScheduleTimer(ExpirationCheck(), EXPIRATION_INTERVAL_MS),
    ]
    assert applied(puppet.log.commit) == []
    puppet.log.is_committing = False
    assert applied(lambda: puppet.add(producers[0])) == [
        AwaitCommit(ChangeRecord(ID, 1)),
        ScheduleTimer(TimeoutCheck(), ABORT_INTERVAL_MS),
    ]
    assert applied(puppet.log.commit) == []
    puppet.log.is_committing = False
    assert applied(lambda: puppet.end(producers[0])) == [AwaitCommit(ChangeRecord(ID, 2))]
    ordered = applied(puppet.log.commit)
    assert ordered == [WriteMarkers(puppet.orders[0])]
    puppet.log.is_committing = False
    assert applied(puppet.mark_all) == [AwaitCommit(ChangeRecord(ID, 3))]
    assert applied(puppet.log.commit) == []


def test_an_end_that_is_refused_leaves_the_effects_of_the_abort_that_it_began() -> None:
    puppet = TransactionPuppet()
    puppet.add(puppet.init())
    puppet.applied.clear()
    assert error_of(puppet.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert puppet.applied == [AwaitCommit(ChangeRecord(ID, 2)), WriteMarkers(puppet.orders[0])]


def test_the_commit_of_another_record_of_the_id_changes_nothing() -> None:
    puppet = TransactionPuppet()
    producer = puppet.init()
    puppet.add(producer)
    puppet.log.is_committing = False
    puppet.end(producer)
    for offset in (0, 1, 3):
        puppet.commit(ChangeRecord(ID, offset))
        assert puppet.orders == []
        assert error_of(puppet.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    puppet.commit(ChangeRecord(ID, 2))
    puppet.commit(ChangeRecord(ID, 2))
    assert len(puppet.orders) == 1, "markers are ordered once"


def test_the_commit_of_a_record_before_the_id_expired_changes_nothing() -> None:
    puppet = TransactionPuppet()
    puppet.init()
    puppet.timers.wait(EXPIRATION_MS + EXPIRATION_INTERVAL_MS)
    puppet.commit(ChangeRecord(ID, 0))
    assert list(puppet.shard) == []
    puppet.log.is_committing = False
    puppet.init()
    puppet.commit(ChangeRecord(ID, 0))
    assert error_of(puppet.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    puppet.log.commit()
    puppet.init()


def test_a_decision_that_is_loaded_is_carried_out_once() -> None:
    puppet = loaded(in_state(TransactionState.PREPARE_COMMIT))
    puppet.commit(LoadedRecords())
    assert len(puppet.orders) == 1


def test_a_completion_is_not_retried_while_markers_of_the_next_transaction_are_written() -> None:
    puppet = TransactionPuppet()
    puppet.timer(CompletionRetry(ID))
    producer = puppet.init()
    puppet.add(producer)
    puppet.end(producer)
    puppet.timer(CompletionRetry(ID))
    assert puppet.state == "PrepareCommit"
    puppet.mark_all()
    assert puppet.state == "CompleteCommit"


def test_a_timer_without_a_rule_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no timer has the key"):
        TransactionPuppet().timer("another")


# Timeouts and expiration.


@pytest.mark.parametrize("feature_level", [1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(feature_level: int) -> None:
    puppet = TransactionPuppet(feature_level=feature_level)
    producer = puppet.init()
    puppet.add(producer)
    puppet.timers.wait(TIMEOUT_MS)
    assert puppet.state == "Ongoing"
    puppet.timers.wait(ABORT_INTERVAL_MS)
    assert puppet.state == "PrepareAbort"
    assert puppet.transaction.producer_epoch == producer.epoch + 1
    puppet.mark_all()
    for ask in (lambda: puppet.add(producer), lambda: puppet.end(producer, client_version=V1)):
        assert error_of(ask) is ErrorCode.PRODUCER_FENCED
    # Where ends raise the epoch, the late commit looks like a retry of an end that was another.
    late = ErrorCode.INVALID_TXN_STATE if feature_level == 2 else ErrorCode.PRODUCER_FENCED
    assert error_of(lambda: puppet.end(producer)) is late
    assert puppet.init() == Producer(producer.id, producer.epoch + 2)


def test_a_timeout_of_the_last_epoch_brings_another_producer_id() -> None:
    puppet = loaded(in_state(TransactionState.ONGOING, epoch=LAST_CLIENT_EPOCH))
    puppet.timers.wait(TIMEOUT_MS + ABORT_INTERVAL_MS)
    assert (puppet.transaction.next_producer_id, puppet.transaction.producer_epoch) == (1000, EPOCH_MAX)
    puppet.mark_all()
    assert puppet.init() == Producer(1000, 1)


def test_a_producer_id_that_does_not_come_is_asked_for_again_by_the_next_check() -> None:
    puppet = loaded(in_state(TransactionState.ONGOING, epoch=LAST_CLIENT_EPOCH))
    puppet.are_ids_given = False
    puppet.timers.wait(TIMEOUT_MS + ABORT_INTERVAL_MS)
    assert puppet.applied[-2:] == [RequestProducerId(ID), ScheduleTimer(TimeoutCheck(), ABORT_INTERVAL_MS)]
    assert puppet.state == "Ongoing"
    puppet.are_ids_given = True
    puppet.timers.wait(ABORT_INTERVAL_MS)
    assert (puppet.state, puppet.transaction.next_producer_id) == ("PrepareAbort", 1000)


def test_a_producer_id_that_comes_after_the_end_changes_nothing() -> None:
    puppet = loaded(in_state(TransactionState.ONGOING, epoch=LAST_CLIENT_EPOCH))
    puppet.are_ids_given = False
    puppet.timers.wait(TIMEOUT_MS + ABORT_INTERVAL_MS)
    puppet.end(Producer(7, LAST_CLIENT_EPOCH))
    puppet.give_id(ID)
    assert (puppet.state, puppet.transaction.next_producer_id) == ("PrepareCommit", 1000)
    puppet.give_id("other")
    assert [transaction.id for transaction in puppet.shard] == [ID]


def test_a_timeout_that_fails_unexpectedly_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    puppet = TransactionPuppet()
    puppet.add(puppet.init())
    puppet.timers.wait(TIMEOUT_MS)

    def fail(_: object) -> int:
        raise MemoryError

    with monkeypatch.context() as patches:
        patches.setattr(puppet.log, "append", fail)
        with pytest.raises(MemoryError):
            puppet.timers.wait(ABORT_INTERVAL_MS)
    puppet.timers.wait(ABORT_INTERVAL_MS)
    assert puppet.state == "PrepareAbort"


def test_a_timeout_that_the_log_refuses_is_tried_again() -> None:
    puppet = TransactionPuppet()
    puppet.add(puppet.init())
    puppet.timers.wait(TIMEOUT_MS)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    puppet.timers.wait(ABORT_INTERVAL_MS)
    assert puppet.state == "Ongoing"
    puppet.timers.wait(ABORT_INTERVAL_MS)
    assert puppet.state == "PrepareAbort"


@pytest.mark.parametrize("state", [state for state in TransactionState if state.is_over])
def test_unused_transactional_ids_expire(state: TransactionState) -> None:
    puppet = loaded(in_state(state))
    puppet.timers.wait(EXPIRATION_MS + EXPIRATION_INTERVAL_MS)
    assert error_of(lambda: puppet.shard.describe(ID)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert puppet.log.records[-1].value is None
    assert error_of(lambda: puppet.restarted().shard.describe(ID)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert puppet.init() == Producer(1000, 0)


def test_prepared_transactions_never_expire() -> None:
    puppet = loaded(in_state(TransactionState.PREPARE_COMMIT))
    puppet.timers.wait(2 * EXPIRATION_MS)
    assert puppet.state == "PrepareCommit"


def test_expiration_that_the_log_refuses_is_tried_again() -> None:
    puppet = loaded(in_state(TransactionState.EMPTY))
    puppet.timers.wait(EXPIRATION_MS - EXPIRATION_INTERVAL_MS)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaError):
        puppet.timers.wait(EXPIRATION_INTERVAL_MS)
    assert puppet.state == "Empty"
    puppet.timers.wait(EXPIRATION_INTERVAL_MS)
    assert error_of(lambda: puppet.shard.describe(ID)) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


# Steps.


@pytest.mark.parametrize("before", list(TransactionState))
@pytest.mark.parametrize("after", list(TransactionState))
def test_there_are_no_other_steps(before: TransactionState, after: TransactionState) -> None:
    steps: dict[TransactionState, Callable[[Transaction], Transaction]] = {
        TransactionState.EMPTY: lambda one: one.with_next_epoch(None, TIMEOUT_MS, 0),
        TransactionState.ONGOING: lambda one: one.with_partitions(frozenset({P0}), V2, 0),
        TransactionState.PREPARE_COMMIT: lambda one: one.prepared(is_commit=True, client_version=V2, now_ms=0),
        TransactionState.PREPARE_ABORT: lambda one: one.prepared(is_commit=False, client_version=V2, now_ms=0),
    }
    if after not in steps:
        return
    step = steps[after]
    if before in PREVIOUS_STATES[after]:
        assert step(in_state(before)).state is after
    else:
        with pytest.raises(AssertionError):
            step(in_state(before))


def test_what_is_no_record_of_a_transaction_is_not_taken_for_one() -> None:
    puppet = TransactionPuppet()
    with pytest.raises(CorruptData):
        puppet.shard.replay(0, None, b"")
    # Of a later version.
    puppet.shard.replay(0, b"\0\7later", b"")
    puppet.shard.replay_end_transaction(7, is_commit=True)
    assert list(puppet.shard) == []
