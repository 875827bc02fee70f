"""Produce in transactions: who is asked before the first batch, what is let in, and what waits behind it (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.control_records import write_end_transaction_marker

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode, Exchange

NOW = 1_700_000_000_000
PRODUCER = 7
COORDINATOR = 2
V1, V2 = 11, 12
"""Versions of Produce by producers of transactions version 1 and 2."""


def batch(sequence: int = 0, *, epoch: int = 0, producer_id: int = PRODUCER, is_transactional: bool = True) -> bytes:
    return write_batch(
        [Record(0, NOW, b"k", b"v")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


@pytest.fixture
def topic(node: DataNode) -> UUID:
    node.create_topic("__transaction_state", leader=COORDINATOR, replicas=(COORDINATOR,))
    return node.create_topic("a", partition_count=2)


def begin(node: DataNode, sequence: int = 0, *, epoch: int = 0, version: int = V1, index: int = 0) -> Exchange:
    exchange = node.begin_produce(batch(sequence, epoch=epoch), transactional_id="t", version=version, index=index)
    settle(node)
    return exchange


def settle(node: DataNode) -> None:
    for _ in range(6):
        node.turn()


def wait_for_question(node: DataNode) -> None:
    deadline_s = node.loop.time() + 10
    while not node.peers.asked:
        assert node.loop.time() < deadline_s, "no coordinator was asked"
        node.loop.call_later(0.001, node.loop.stop)
        node.loop.run_forever()


def answer(node: DataNode, error: ErrorCode = ErrorCode.NONE, index: int = 0) -> None:
    node.peers.answer({("a", index): error})
    settle(node)


def assert_waits(exchange: Exchange) -> None:
    """And nothing behind it on its connection may begin."""
    assert exchange.is_held_back
    assert not exchange.is_answered


def code(exchange: Exchange) -> ErrorCode:
    return ErrorCode(exchange.answer.responses[0].partition_responses[0].error_code)


def end(node: DataNode, epoch: int, version: int = 1, *, index: int = 0, is_commit: bool = False) -> None:
    marker = write_end_transaction_marker(PRODUCER, epoch, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW)
    node.hosted("a", index).append_of_coordinator(marker, NOW, transaction_version=version)


@pytest.mark.usefixtures("topic")
def test_first_batch_of_a_transaction_waits_for_its_coordinator(node: DataNode) -> None:
    exchange = begin(node)
    assert_waits(exchange)
    assert node.memory.used_bytes > 0
    assert node.hosted().log.log_end_offset == 0
    (broker_id, _, _) = node.peers.asked[0]
    asked = node.peers.answer()
    settle(node)
    assert broker_id == COORDINATOR
    (transaction,) = asked.transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("t", PRODUCER, 0)
    assert transaction.verify_only
    assert [(one.name, one.partitions) for one in transaction.topics] == [("a", (0,))]
    assert not exchange.is_held_back
    assert node.memory.used_bytes == 0
    assert code(exchange) is ErrorCode.NONE
    assert node.hosted().log.last_stable_offset(node.hosted().state.high_watermark) == 0


@pytest.mark.usefixtures("topic")
def test_version_2_adds_the_partition_by_the_same_question(node: DataNode) -> None:
    exchange = begin(node, version=V2)
    assert not node.peers.answer().transactions[0].verify_only
    settle(node)
    assert code(exchange) is ErrorCode.NONE


@pytest.mark.usefixtures("topic")
def test_later_batches_of_a_transaction_are_not_verified_again(node: DataNode) -> None:
    begin(node)
    answer(node)
    exchange = begin(node, 1)
    assert code(exchange) is ErrorCode.NONE
    assert not node.peers.asked
    begin(node, index=1)
    assert node.peers.asked, "another partition is another question"


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(
    ("told", "version", "expected"),
    [
        (ErrorCode.INVALID_TXN_STATE, V1, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, V1, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, V1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, V1, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CONCURRENT_TRANSACTIONS, V1, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, V1, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, V2, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, V2, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_producer_is_told_what_its_release_understands(
    node: DataNode, told: ErrorCode, version: int, expected: ErrorCode
) -> None:
    exchange = begin(node, version=version)
    answer(node, told)
    assert code(exchange) is expected
    assert node.hosted().log.log_end_offset == 0


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_error_of_the_whole_question_is_that_of_each_partition(
    node: DataNode, told: ErrorCode, expected: ErrorCode
) -> None:
    exchange = begin(node)
    node.peers.answer(top=told)
    settle(node)
    assert code(exchange) is expected


@pytest.mark.usefixtures("topic")
def test_coordinator_that_does_not_answer_makes_the_producer_try_again(node: DataNode) -> None:
    exchange = begin(node)
    node.peers.fail(ErrorCode.NETWORK_EXCEPTION)
    settle(node)
    assert code(exchange) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (node.data_path.verifier.failure_count, node.data_path.verifier.times.count) == (1, 1)
    again = begin(node)
    answer(node)
    assert code(again) is ErrorCode.NONE
    assert (node.data_path.verifier.failure_count, node.data_path.verifier.times.count) == (1, 2)


@pytest.mark.usefixtures("topic")
def test_refused_verifications_are_counted(node: DataNode) -> None:
    begin(node)
    answer(node, ErrorCode.INVALID_TXN_STATE)
    assert (node.data_path.verifier.failure_count, node.data_path.verifier.times.count) == (1, 1)


@pytest.mark.usefixtures("topic")
def test_defect_of_the_question_makes_the_producer_try_again(node: DataNode) -> None:
    exchange = begin(node)
    node.peers.asked.pop(0)[2].set_exception(RuntimeError("a defect"))
    settle(node)
    assert code(exchange) is ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.usefixtures("topic")
def test_version_2_waits_for_the_transaction_before_it(node: DataNode) -> None:
    exchange = begin(node, version=V2)
    answer(node, ErrorCode.CONCURRENT_TRANSACTIONS)
    wait_for_question(node)
    assert_waits(exchange)
    answer(node)
    assert code(exchange) is ErrorCode.NONE


@pytest.mark.usefixtures("topic")
def test_version_2_waits_not_for_long(node: DataNode) -> None:
    node.verification = node.verification._replace(retry_ms_max=0)
    exchange = begin(node, version=V2)
    answer(node, ErrorCode.CONCURRENT_TRANSACTIONS)
    assert code(exchange) is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.usefixtures("topic")
def test_abort_between_question_and_answer_keeps_the_batch_out(node: DataNode) -> None:
    exchange = begin(node)
    end(node, epoch=0)
    answer(node)
    assert code(exchange) is ErrorCode.INVALID_TXN_STATE
    assert node.hosted().log.log_end_offset == 1, "the marker alone"


@pytest.mark.usefixtures("topic")
def test_version_2_asks_again_when_the_transaction_before_it_ended_meanwhile(node: DataNode) -> None:
    begin(node, version=V2)
    answer(node)
    exchange = begin(node, epoch=1, version=V2)
    end(node, epoch=1, version=2, is_commit=True)
    answer(node)
    wait_for_question(node)
    answer(node)
    assert code(exchange) is ErrorCode.NONE


@pytest.mark.usefixtures("topic")
def test_version_2_is_told_to_send_again_when_the_transaction_before_it_ended_at_the_deadline(node: DataNode) -> None:
    node.verification = node.verification._replace(retry_ms_max=0)
    begin(node, version=V2)
    answer(node)
    exchange = begin(node, epoch=1, version=V2)
    end(node, epoch=1, version=2, is_commit=True)
    answer(node)
    assert code(exchange) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert node.hosted().log.log_end_offset == 2, "the first batch and the marker"
    again = begin(node, epoch=1, version=V2)
    answer(node)
    assert code(again) is ErrorCode.NONE


@pytest.mark.usefixtures("topic")
def test_version_2_of_an_ended_transaction_is_fenced_also_at_the_deadline(node: DataNode) -> None:
    node.verification = node.verification._replace(retry_ms_max=0)
    exchange = begin(node, version=V2)
    end(node, epoch=1, version=2)
    answer(node)
    assert code(exchange) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.usefixtures("topic")
def test_version_2_is_appended_at_the_deadline_when_another_batch_opened_its_transaction(node: DataNode) -> None:
    node.verification = node.verification._replace(retry_ms_max=0)
    first = begin(node, version=V2)
    second = begin(node, 1, version=V2)
    answer(node)
    answer(node)
    assert (code(first), code(second)) == (ErrorCode.NONE, ErrorCode.NONE)


@pytest.mark.usefixtures("topic")
def test_late_produce_after_an_abort_is_refused(node: DataNode) -> None:
    begin(node, version=V2)
    answer(node)
    end(node, epoch=1, version=2)
    late = begin(node, 1, version=V2)
    assert code(late) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert not node.peers.asked, "there is nothing to be asked"


@pytest.mark.usefixtures("topic")
def test_late_produce_of_version_1_is_refused_by_the_coordinator(node: DataNode) -> None:
    begin(node)
    answer(node)
    end(node, epoch=0)
    late = begin(node, 1)
    answer(node, ErrorCode.INVALID_TXN_STATE)
    assert code(late) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.usefixtures("topic")
def test_batch_that_failed_to_be_verified_is_not_overtaken_by_the_next(node: DataNode) -> None:
    first = begin(node, 0)
    answer(node, ErrorCode.NOT_COORDINATOR)
    second = begin(node, 1)
    answer(node)
    assert code(first) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert code(second) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    again = begin(node, 0)
    answer(node)
    assert code(again) is ErrorCode.NONE


@pytest.mark.usefixtures("topic")
def test_one_request_asks_for_all_its_partitions_at_once(node: DataNode) -> None:
    exchange = node.begin_produce(batch(), transactional_id="t", version=V1, more=((1, batch()),))
    settle(node)
    asked = node.peers.answer({("a", 1): ErrorCode.INVALID_TXN_STATE})
    settle(node)
    assert asked.transactions[0].topics[0].partitions == (0, 1)
    codes = [one.error_code for one in exchange.answer.responses[0].partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]


@pytest.mark.parametrize("version", [V1, V2])
def test_partition_that_was_not_verified_is_to_be_sent_again(node: DataNode, version: int) -> None:
    node.create_topic("__transaction_state", leader=COORDINATOR, replicas=(COORDINATOR,))
    node.create_topic("a")
    exchange = node.begin_produce(batch(), transactional_id="t", version=version, more=((1, batch()),))
    settle(node)
    node.add_partition("a", 1)
    settle(node)
    answer(node)
    codes = [one.error_code for one in exchange.answer.responses[0].partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert node.hosted("a", 1).log.log_end_offset == 0


@pytest.mark.usefixtures("topic")
def test_questions_to_one_node_go_together_and_an_id_asks_once_at_a_time(node: DataNode) -> None:
    exchanges = [
        node.begin_produce(batch(producer_id=number), transactional_id=name, version=V1, index=index)
        for number, (name, index) in enumerate([("t", 0), ("u", 0), ("v", 0), ("u", 1)])
    ]
    settle(node)
    assert [one.transactional_id for one in node.peers.answer().transactions] == ["t"]
    settle(node)
    assert [one.transactional_id for one in node.peers.answer().transactions] == ["u", "v"]
    settle(node)
    assert [one.transactional_id for one in node.peers.answer().transactions] == ["u"]
    settle(node)
    assert [code(one) for one in exchanges] == [ErrorCode.NONE] * 4


@pytest.mark.thorough
@pytest.mark.usefixtures("topic")
def test_long_names_of_some_do_not_make_a_question_too_large_for_a_node(node: DataNode) -> None:
    names = ["t", *(f"{number:032767}" for number in range(200)), "u"]
    exchanges = [
        node.begin_produce(batch(producer_id=number), transactional_id=name, version=V1)
        for number, name in enumerate(names)
    ]
    settle(node)
    asked: list[str] = []
    while node.peers.asked:
        ids = [one.transactional_id for one in node.peers.answer().transactions]
        assert sum(map(len, ids)) < 2 * 1024 * 1024
        asked += ids
        settle(node)
    assert asked == names
    assert {code(one) for one in exchanges} == {ErrorCode.NONE}


@pytest.mark.usefixtures("topic")
def test_request_of_two_producers_is_refused(node: DataNode) -> None:
    more = ((1, batch(producer_id=8)),)
    exchange = node.begin_produce(batch(), transactional_id="t", version=V1, more=more)
    codes = [one.error_code for one in exchange.answer.responses[0].partition_responses]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


@pytest.mark.usefixtures("topic")
def test_without_verification_the_coordinator_is_asked_only_to_add(node: DataNode) -> None:
    node.verification = node.verification._replace(is_enabled=False)
    assert code(begin(node)) is ErrorCode.NONE
    begin(node, index=1, version=V2)
    answer(node, index=1)
    assert node.hosted("a", 1).log.log_end_offset == 1


@pytest.mark.usefixtures("topic")
def test_acks_0_is_appended_after_the_answer(node: DataNode) -> None:
    exchange = node.begin_produce(batch(), transactional_id="t", version=V1, acks=0)
    settle(node)
    assert_waits(exchange)
    answer(node)
    assert exchange.is_answered
    assert node.hosted().log.log_end_offset == 1


@pytest.mark.usefixtures("topic")
def test_duplicate_is_answered_as_the_first_time_also_when_its_transaction_is_over(node: DataNode) -> None:
    begin(node)
    answer(node)
    end(node, epoch=0)
    late = begin(node, 0)
    answer(node)
    assert code(late) is ErrorCode.NONE
    assert node.hosted().log.log_end_offset == 2
