"""Fetch: what is read, when it is answered, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from produced_batches import produced

from penstock.protocol.batches import iterate_headers
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.control_records import write_end_transaction_marker
from penstock.storage.log.rules.transaction_verification import UNVERIFIED

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode, Exchange


def batch(count: int = 1, value: bytes = b"v") -> bytes:
    return write_batch([Record(number, 1_700_000_000_000, b"k", value) for number in range(count)])


def append_in_transaction(node: DataNode, sequence: int) -> None:
    records = write_batch(
        [Record(0, 1_700_000_000_000, b"k", b"v")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    node.hosted().append(produced(records), node.now_ms, verification=UNVERIFIED)


SIZE = len(batch())


def offsets(answer: Any) -> list[int]:
    return [header.base_offset for _, header in iterate_headers(answer.records)]


def partitions(exchange: Exchange) -> list[Any]:
    return [partition for topic in exchange.answer.responses for partition in topic.partitions]


@pytest.fixture
def filled(node: DataNode) -> DataNode:
    """Topic `a` with two partitions; the first has offsets 0, 1, and 2 to 4 in one batch."""
    node.create_topic(partition_count=2)
    for count in (1, 1, 3):
        node.produce(batch(count))
    return node


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_reads_by_name(filled: DataNode, version: int) -> None:
    answer = filled.fetch((0, 0), version=version)
    assert offsets(answer) == [0, 1, 2]
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 5)


@pytest.mark.parametrize("version", range(13, 19))
def test_versions_from_13_on_read_by_id_kip_516(filled: DataNode, version: int) -> None:
    topic_id = filled.hosted().topic_id
    assert offsets(filled.fetch((0, 0), topic=topic_id, version=version)) == [0, 1, 2]


def test_fetch_inside_a_batch_returns_the_whole_batch(filled: DataNode) -> None:
    assert offsets(filled.fetch((0, 4))) == [2]


def test_first_batch_is_returned_however_large_kip_74(filled: DataNode) -> None:
    assert offsets(filled.fetch((0, 0), max_bytes=1, partition_max_bytes=1)) == [0]


def test_limits_hold_behind_the_first_batch(filled: DataNode) -> None:
    assert len(filled.fetch((0, 0), partition_max_bytes=SIZE).records) == SIZE
    filled.produce(index=1)
    answers = partitions(filled.begin_fetch((0, 0), (1, 0), max_bytes=SIZE))
    assert [len(answer.records) for answer in answers] == [SIZE, 0]


def test_nothing_is_read_at_the_end(filled: DataNode) -> None:
    answer = filled.fetch((0, 5))
    assert (answer.error_code, answer.records, answer.high_watermark) == (ErrorCode.NONE, b"", 5)


@pytest.mark.parametrize("offset", [-5, 6, 100])
def test_offset_out_of_range_is_answered_without_offsets(filled: DataNode, offset: int) -> None:
    answer = filled.fetch((0, offset), max_wait_ms=500)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)


def test_below_the_log_start_is_out_of_range(filled: DataNode) -> None:
    filled.hosted().log.increment_log_start_offset(2)
    assert filled.fetch((0, 1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert filled.fetch((0, 2)).log_start_offset == 2


def test_consumers_read_up_to_the_high_watermark(filled: DataNode) -> None:
    filled.configure("a", flush_messages=1)
    filled.begin_produce(batch())
    assert offsets(filled.fetch((0, 4))) == [2]
    assert filled.fetch((0, 5)).records == b""
    assert offsets(filled.fetch((0, 5), replica_id=-3)) == [5]


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_consumers_of_a_debugger_read_as_others_do(filled: DataNode, isolation_level: int) -> None:
    filled.configure("a", flush_messages=1)
    filled.begin_produce(batch())
    answer = filled.fetch((0, 0), replica_id=-2, isolation_level=isolation_level)
    assert offsets(answer)[-1] < answer.high_watermark == 5
    assert answer.aborted_transactions == (() if isolation_level else None)
    assert filled.fetch((0, 5), replica_id=-2, isolation_level=isolation_level).records == b""


def test_read_committed_names_aborted_transactions(filled: DataNode) -> None:
    assert filled.fetch((0, 0)).aborted_transactions is None
    assert filled.fetch((0, 0), isolation_level=1).aborted_transactions == ()


def test_read_committed_names_no_transaction_far_behind_what_is_read(filled: DataNode) -> None:
    partition = filled.hosted()
    for sequence in range(200):
        append_in_transaction(filled, sequence)
        marker = write_end_transaction_marker(7, 0, is_commit=False, coordinator_epoch=0, now_ms=filled.now_ms)
        partition.append_of_coordinator(marker, filled.now_ms)
    answer = filled.fetch((0, 5), partition_max_bytes=1, isolation_level=1)
    assert offsets(answer) == [5]
    assert [one.first_offset for one in answer.aborted_transactions[:2]] == [5, 7]
    assert len(answer.aborted_transactions) < 50
    everything = filled.fetch((0, 5), isolation_level=1)
    assert len(everything.aborted_transactions) == 200


def test_fetch_waits_for_the_append_that_brings_records(filled: DataNode) -> None:
    exchange = filled.begin_fetch((0, 5), (1, 0))
    assert not exchange.is_answered
    filled.produce(index=1)
    assert [offsets(answer) for answer in partitions(exchange)] == [[], [0]]
    assert filled.data_path.fetches.statistics().parked_count == 0


def test_fetch_waits_for_the_high_watermark_not_for_the_append(filled: DataNode) -> None:
    filled.configure("a", flush_messages=1)
    exchange = filled.begin_fetch((0, 5))
    filled.begin_produce(batch())
    assert not exchange.is_answered
    filled.flusher.finish()
    assert offsets(partitions(exchange)[0]) == [5]


def test_fetch_waits_for_min_bytes(filled: DataNode) -> None:
    exchange = filled.begin_fetch((0, 5), min_bytes=2 * SIZE + 1)
    filled.produce(batch())
    filled.produce(batch())
    assert not exchange.is_answered
    filled.produce(batch())
    assert offsets(partitions(exchange)[0]) == [5, 6, 7]


def test_what_can_be_read_already_counts_for_min_bytes(filled: DataNode) -> None:
    exchange = filled.begin_fetch((0, 1), (1, 0), min_bytes=4 * SIZE)
    assert not exchange.is_answered
    filled.produce(index=1)
    filled.produce(index=1)
    assert [offsets(answer) for answer in partitions(exchange)] == [[1, 2], [0, 1]]


def test_what_was_appended_before_counts_for_min_bytes_when_it_is_committed(filled: DataNode) -> None:
    filled.configure("a", flush_messages=1)
    for _ in range(3):
        filled.begin_produce(batch())
    exchange = filled.begin_fetch((0, 5), min_bytes=3 * SIZE)
    assert not exchange.is_answered
    filled.flusher.finish()
    assert offsets(partitions(exchange)[0]) == [5, 6, 7]


def test_what_a_transaction_brought_counts_for_min_bytes_when_it_ends(filled: DataNode) -> None:
    partition = filled.hosted()
    for sequence in range(3):
        append_in_transaction(filled, sequence)
    exchange = filled.begin_fetch((0, 5), min_bytes=3 * SIZE, isolation_level=1)
    filled.produce(batch())
    assert not exchange.is_answered
    marker = write_end_transaction_marker(7, 0, is_commit=True, coordinator_epoch=0, now_ms=filled.now_ms)
    partition.append_of_coordinator(marker, filled.now_ms)
    filled.partitions.complete_fetches(partition)
    assert offsets(partitions(exchange)[0]) == [5, 6, 7, 8, 9]


def test_min_bytes_above_max_bytes_is_max_bytes(filled: DataNode) -> None:
    assert filled.begin_fetch((0, 0), min_bytes=1_000_000, max_bytes=SIZE).is_answered


@pytest.mark.parametrize("options", [{"max_wait_ms": 0}, {"min_bytes": 0}])
def test_fetch_that_does_not_wait_is_answered_at_once(filled: DataNode, options: dict[str, Any]) -> None:
    assert partitions(filled.begin_fetch((0, 5), **options))[0].records == b""


def test_deadline_answers_with_what_there_is(filled: DataNode) -> None:
    exchange = filled.begin_fetch((0, 4), min_bytes=10_000)
    filled.data_path.fetches.expire_all()
    assert offsets(partitions(exchange)[0]) == [2]


def test_unknown_partition_is_answered_at_once_when_it_is_alone(filled: DataNode) -> None:
    assert partitions(filled.begin_fetch((9, 0)))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.fetch((0, 0), topic="none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.fetch((0, 0), topic=UUID(int=9), version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert filled.fetch((0, 0), topic=UUID(int=0), version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_unknown_partition_does_not_end_the_wait_of_others(filled: DataNode) -> None:
    exchange = filled.begin_fetch((9, 0), (0, 5))
    assert not exchange.is_answered
    filled.produce()
    assert [answer.error_code for answer in partitions(exchange)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]


def test_error_ends_the_wait_at_once(filled: DataNode) -> None:
    assert filled.begin_fetch((0, 77), (1, 0)).is_answered


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_leader_epoch_of_the_client_is_compared_kip_320(filled: DataNode, epoch: int, error: ErrorCode) -> None:
    filled.elect("a", leader=1)
    assert filled.fetch((0, 0), current_leader_epoch=epoch).error_code == error


def test_fenced_client_is_told_the_leader_kip_951(filled: DataNode) -> None:
    filled.elect("a", leader=1)
    answer = filled.begin_fetch((0, 0), topic=filled.hosted().topic_id, version=16, current_leader_epoch=0).answer
    current = answer.responses[0].partitions[0].current_leader
    assert (current.leader_id, current.leader_epoch) == (1, 1)
    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(1, 9001)]


def test_divergence_is_told_by_the_last_fetched_epoch(filled: DataNode) -> None:
    filled.elect("a", leader=1)
    filled.elect("a", leader=1)
    filled.produce()
    diverging = filled.fetch((0, 6), last_fetched_epoch=1, version=12).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 5)
    assert filled.fetch((0, 5), last_fetched_epoch=0, version=12).diverging_epoch.epoch == -1
    assert filled.fetch((0, 5), last_fetched_epoch=9, version=12).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_lost_leadership_ends_the_wait(filled: DataNode) -> None:
    filled.reassign("a", 1, 2)
    exchange = filled.begin_fetch((0, 5), version=10)
    filled.elect("a", leader=2)
    assert partitions(exchange)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_serves_consumers_up_to_its_own_high_watermark_kip_392(filled: DataNode) -> None:
    filled.reassign("a", 1, 2)
    filled.elect("a", leader=2)
    partition = filled.hosted().state
    assert filled.fetch((0, 0)).high_watermark == partition.high_watermark == 5
    waiting = filled.begin_fetch((0, 5))
    assert filled.fetch((0, 0), version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    hosted = filled.hosted()
    hosted.append_as_follower(memoryview(write_batch([Record(5, 0, None, b"")], leader_epoch=2)), 0)
    filled.partitions.complete_waiting(hosted)
    assert not waiting.is_answered
    assert hosted.on_leader_offsets(high_watermark=9, log_start_offset=0)
    filled.partitions.complete_waiting(hosted)
    assert partitions(waiting)[0].high_watermark == 6


def test_new_leader_epoch_ends_the_wait_of_clients_that_named_the_old_one(filled: DataNode) -> None:
    named = filled.begin_fetch((0, 5), current_leader_epoch=0)
    unnamed = filled.begin_fetch((0, 5))
    filled.elect("a", leader=1)
    assert partitions(named)[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert not unnamed.is_answered


def test_deleted_topic_ends_the_wait(filled: DataNode) -> None:
    exchange = filled.begin_fetch((0, 5))
    filled.delete_topic("a")
    assert partitions(exchange)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("version", "error"), [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_failed_directory_ends_the_wait(filled: DataNode, version: int, error: ErrorCode) -> None:
    exchange = filled.begin_fetch((0, 5), version=version)
    filled.fail_directory()
    assert partitions(exchange)[0].error_code == error


def test_zstd_topics_need_version_10_kip_110(filled: DataNode) -> None:
    filled.configure("a", compression_type="zstd")
    assert filled.fetch((0, 0), version=9).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert filled.fetch((0, 0), version=10).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [11, 18])
def test_followers_are_refused_on_connections_of_others(filled: DataNode, version: int) -> None:
    topic = filled.hosted().topic_id if version >= 13 else "a"
    answer = filled.begin_fetch((0, 0), topic=topic, version=version, replica_id=2).answer
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert [topic.partitions[0].error_code for topic in answer.responses] == (
        [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] if version == 11 else []
    )


def test_session_leaves_out_what_did_not_change_kip_227(filled: DataNode) -> None:
    first = filled.begin_fetch((0, 5), (1, 0), session_epoch=0, max_wait_ms=0).answer
    assert len(first.responses[0].partitions) == 2
    session = {"session_id": first.session_id, "max_wait_ms": 0}
    assert filled.begin_fetch(session_epoch=1, **session).answer.responses == ()
    filled.produce(index=1)
    answer = filled.begin_fetch(session_epoch=2, **session).answer
    assert [partition.partition_index for partition in answer.responses[0].partitions] == [1]


def test_session_fetch_waits_for_its_partitions(filled: DataNode) -> None:
    first = filled.begin_fetch((0, 5), (1, 0), session_epoch=0, max_wait_ms=0).answer
    exchange = filled.begin_fetch(session_epoch=1, session_id=first.session_id)
    assert not exchange.is_answered
    filled.produce()
    assert [offsets(answer) for answer in partitions(exchange)] == [[5]]


def test_next_request_of_a_session_ends_the_wait_of_the_one_before(filled: DataNode) -> None:
    first = filled.begin_fetch((0, 5), session_epoch=0, max_wait_ms=0).answer
    waiting = filled.begin_fetch(session_epoch=1, session_id=first.session_id)
    following = filled.begin_fetch((0, 4), session_epoch=2, session_id=first.session_id)
    assert (waiting.answer.error_code, waiting.answer.responses) == (ErrorCode.NONE, ())
    assert offsets(partitions(following)[0]) == [2]
    assert filled.data_path.fetches.statistics().parked_count == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session_id": 5, "session_epoch": 1}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session_epoch": 9}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"session_epoch": 1, "version": 13}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_session_errors_are_told_at_the_top(filled: DataNode, options: dict[str, Any], error: ErrorCode) -> None:
    known = filled.begin_fetch((0, 5), session_epoch=0, max_wait_ms=0).answer.session_id
    assert known not in (0, 5)
    answer = filled.begin_fetch(**{"session_id": known, **options}).answer
    assert (answer.error_code, answer.session_id, answer.responses) == (error, 0, ())


def test_session_sees_a_topic_that_was_made_again(filled: DataNode) -> None:
    by_name = filled.begin_fetch((0, 5), session_epoch=0, max_wait_ms=0).answer.session_id
    topic_id = filled.hosted().topic_id
    by_id = filled.begin_fetch((0, 5), session_epoch=0, max_wait_ms=0, topic=topic_id, version=13).answer.session_id
    filled.delete_topic("a")
    filled.create_topic()
    named = filled.begin_fetch((0, 0), session_epoch=1, session_id=by_name, max_wait_ms=0)
    assert [(answer.error_code, answer.high_watermark) for answer in partitions(named)] == [(0, 0)]
    identified = filled.begin_fetch(session_epoch=1, session_id=by_id, version=13)
    assert partitions(identified)[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_session_finds_a_topic_that_appears_later(filled: DataNode) -> None:
    session_id = filled.begin_fetch((0, 0), topic="b", session_epoch=0, max_wait_ms=0).answer.session_id
    filled.create_topic("b")
    answer = partitions(filled.begin_fetch(session_epoch=1, session_id=session_id, max_wait_ms=0))[0]
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 0)


def test_parked_fetch_leaves_with_its_client(filled: DataNode) -> None:
    session_id = filled.begin_fetch((0, 5), session_epoch=0, max_wait_ms=0).answer.session_id
    exchange = filled.begin_fetch(session_epoch=1, session_id=session_id)
    exchange.disconnect()
    assert filled.data_path.fetches.statistics().parked_count == 0
    filled.produce()
    assert not exchange.is_answered
    assert filled.begin_fetch(session_epoch=2, session_id=session_id).is_answered


def test_append_answers_every_fetch_that_waits(filled: DataNode) -> None:
    exchanges = [filled.begin_fetch((0, 5)) for _ in range(3)]
    filled.produce()
    assert [offsets(partitions(exchange)[0]) for exchange in exchanges] == [[5]] * 3
