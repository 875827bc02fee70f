"""Produce: what is appended, when it is answered, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from errno import ENOSPC
from typing import TYPE_CHECKING, NoReturn
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.batches import ASSIGNED_SIZE, read_header, with_offset_and_epoch
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.log import Log
from penstock.storage.log.rules.batch_admission import read_produced_batch
from penstock.storage.log.segment import Segment

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode


TIME_MS = 1_700_000_000_000
RECORD_TIME = datetime.fromtimestamp(TIME_MS // 1000, UTC)


def batch(*values: bytes, key: bytes | None = b"k", **options: int) -> bytes:
    records = [Record(number, TIME_MS, key, value) for number, value in enumerate(values or (b"v",))]
    return write_batch(records, **options)  # type: ignore[arg-type]


def of_producer(sequence: int, *, epoch: int = 0, is_transactional: bool = False) -> bytes:
    return batch(producer_id=7, producer_epoch=epoch, base_sequence=sequence, is_transactional=is_transactional)


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_is_answered_with_the_offset(node: DataNode, version: int) -> None:
    node.create_topic()
    node.produce(version=version)
    answer = node.produce(batch(b"a", b"b"), version=version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)
    assert node.hosted().log.log_end_offset == 3


def test_version_13_names_topics_by_id_kip_516(node: DataNode) -> None:
    topic_id = node.create_topic()
    assert node.produce(topic=topic_id).base_offset == 0
    assert node.produce(topic=UUID(int=99)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert node.produce(topic=UUID(int=0)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert node.produce(topic=topic_id, index=5).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("acks", [1, -1])
def test_answer_follows_the_append_of_a_single_replica(node: DataNode, acks: int) -> None:
    node.create_topic()
    assert node.begin_produce(batch(), acks=acks).is_answered


def test_acks_0_has_no_response(node: DataNode) -> None:
    node.create_topic()
    exchange = node.begin_produce(batch(), acks=0)
    assert exchange.request.answer == ()
    assert node.hosted().state.high_watermark == 1


def test_error_with_acks_0_closes_the_connection(node: DataNode) -> None:
    exchange = node.begin_produce(batch(), acks=0, topic="none")
    assert exchange.reason == "produce with acks=0 failed: UNKNOWN_TOPIC_OR_PARTITION for none-0"


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused(node: DataNode, acks: int) -> None:
    node.create_topic()
    assert node.produce(acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert node.hosted().log.log_end_offset == 0


def test_unknown_topic_comes_before_wrong_records_and_those_before_wrong_acks(node: DataNode) -> None:
    node.create_topic()
    assert node.produce(b"", topic="none", acks=2).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.produce(b"", acks=2).error_code == ErrorCode.INVALID_RECORD


def test_an_error_does_not_stop_the_next_partition(node: DataNode) -> None:
    node.create_topic(partition_count=2)
    answers = node.begin_produce(b"", more=((9, batch()), (1, batch()))).answer.responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]


MAGIC_1 = batch()[:16] + b"\x01" + batch()[17:]
CORRUPT = batch()[:-1] + b"\xff"


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (b"\0" * 10, ErrorCode.INVALID_RECORD),
        (b"\0" * 30, ErrorCode.CORRUPT_MESSAGE),
        (batch()[:-3], ErrorCode.INVALID_RECORD),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (batch() + b"\0" * 30, ErrorCode.CORRUPT_MESSAGE),
        (MAGIC_1, ErrorCode.INVALID_RECORD),
        (CORRUPT, ErrorCode.CORRUPT_MESSAGE),
        (batch() + b"torn", ErrorCode.NONE),
        (batch() + batch()[:40], ErrorCode.NONE),
    ],
)
def test_a_partition_takes_exactly_one_whole_batch(node: DataNode, records: bytes | None, error: ErrorCode) -> None:
    node.create_topic()
    answer = node.begin_produce(records).answer.responses[0].partition_responses[0]
    assert answer.error_code == error
    assert node.hosted().log.size_bytes == (0 if error else len(batch()))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (b"\0" * 30, "Record size 0 is less than the minimum record overhead (14)"),
        (batch()[:16] + b"\x03" + batch()[17:], "Invalid magic found in record: 3"),
        (batch()[:16] + b"\xff" + batch()[17:], "Invalid magic found in record: -1"),
        (MAGIC_1, None),
        (CORRUPT, None),
    ],
)
def test_what_cannot_be_a_batch_is_explained_as_in_apache_kafka(
    node: DataNode, records: bytes, message: str | None
) -> None:
    node.create_topic()
    assert node.produce(records).error_message == message


@given(st.binary(max_size=200), st.integers(0, 200), st.binary(max_size=40))
def test_whatever_comes_is_one_whole_batch_or_refused(garbage: bytes, cut: int, tail: bytes) -> None:
    for records in (garbage, batch()[:cut] + garbage + tail, batch() + tail):
        try:
            accepted = read_produced_batch(records, 9)
        except KafkaError:
            continue
        assert accepted.header == read_header(accepted.data, 0)
        assert accepted.header.size_bytes == len(accepted.data)
        assert records.startswith(bytes(accepted.data))


def test_zstd_needs_version_7_kip_110(node: DataNode) -> None:
    node.create_topic()
    assert node.produce(batch(compression=4), version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert node.produce(batch(compression=4), version=7).error_code == ErrorCode.NONE


def test_refused_records_are_named_kip_467(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", cleanup_policy=frozenset({"compact"}))
    answer = node.produce(batch(b"a", b"b", key=None))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.error_message is not None
    assert answer.log_start_offset == 0


def test_internal_topics_are_for_the_admin_client(node: DataNode) -> None:
    node.create_topic("__consumer_offsets")
    assert node.produce(topic="__consumer_offsets").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    node.client_id = "__admin_client"
    assert node.produce(topic="__consumer_offsets").error_code == ErrorCode.NONE


def test_duplicate_is_answered_with_the_first_offset_kip_98(node: DataNode) -> None:
    node.create_topic()
    node.produce()
    first = node.produce(of_producer(0))
    again = node.produce(of_producer(0))
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, first.base_offset)
    # Whatever kind of time the topic has.
    assert (first.log_append_time, again.log_append_time) == (None, RECORD_TIME)
    assert node.hosted().log.log_end_offset == 2


def test_retry_of_a_batch_that_retention_deleted_is_answered_with_its_offset_and_not_stored_again(
    node: DataNode,
) -> None:
    """Redpanda #5355: the offset that was remembered of a deleted segment could not be translated any more."""
    node.create_topic()
    # A segment for each batch.
    node.configure("a", segment_bytes=1 + len(of_producer(0)), retention_ms=1)
    offsets = [node.produce(of_producer(sequence)).base_offset for sequence in range(4)]
    log = node.hosted().log
    while log.delete_old_segments(3, TIME_MS + 60_000):
        pass
    assert log.log_start_offset == 3
    assert [node.produce(of_producer(sequence)).base_offset for sequence in range(4)] == offsets == [0, 1, 2, 3]
    assert log.log_end_offset == 4


def test_sequence_gap_is_refused_with_the_log_start_offset(node: DataNode) -> None:
    node.create_topic()
    node.produce(of_producer(0))
    answer = node.produce(of_producer(5))
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


def follower_that_is_elected(node: DataNode, _patches: pytest.MonkeyPatch) -> Callable[[], None]:
    node.elect("a", leader=2)
    return lambda: node.elect("a", leader=1)


def leader_that_lacks_replicas(node: DataNode, _patches: pytest.MonkeyPatch) -> Callable[[], None]:
    node.configure("a", min_insync_replicas=2)
    return lambda: node.configure("a", min_insync_replicas=1)


def leader_whose_disk_is_full(_node: DataNode, patches: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(ENOSPC, "no room")

    patches.setattr(Log, "append_as_leader", refuse)
    return patches.undo


def leader_whose_room_is_reserved(_node: DataNode, patches: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse(*_: object, **__: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The disk has no room for more records.")

    patches.setattr(Log, "append_as_leader", refuse)
    return patches.undo


def leader_whose_log_is_corrupt(_node: DataNode, patches: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse(*_: object) -> None:
        raise CorruptData("no batch where one should begin")

    patches.setattr(Segment, "should_roll", refuse)
    return patches.undo


@pytest.mark.parametrize("first", [0, 1, 7])
@pytest.mark.parametrize(
    ("prepare", "error"),
    [
        (follower_that_is_elected, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (leader_that_lacks_replicas, ErrorCode.NOT_ENOUGH_REPLICAS),
        (leader_whose_disk_is_full, ErrorCode.KAFKA_STORAGE_ERROR),
        (leader_whose_room_is_reserved, ErrorCode.KAFKA_STORAGE_ERROR),
        (leader_whose_log_is_corrupt, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_batch_behind_one_that_was_refused_in_passing_is_refused_so_too(
    node: DataNode,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[DataNode, pytest.MonkeyPatch], Callable[[], None]],
    error: ErrorCode,
    first: int,
) -> None:
    node.create_topic(replicas=(1, 2))
    node.publish_isr("a", 1)
    for sequence in range(first):
        node.produce(of_producer(sequence))
    mend = prepare(node, monkeypatch)
    for sequence in (first, first + 1):
        assert node.produce(of_producer(sequence)).error_code == error
    mend()
    node.publish_isr("a", 1)
    for sequence in (first + 1, first + 2):
        assert node.produce(of_producer(sequence)).error_code == error
    for sequence in (first, first + 1, first + 2):
        assert node.produce(of_producer(sequence)).error_code == ErrorCode.NONE
    assert node.produce(of_producer(first + 4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batch_behind_one_that_was_refused_in_passing_and_never_comes_again_is_out_of_order(
    node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic()
    node.produce(of_producer(0))
    make_room = leader_whose_disk_is_full(node, monkeypatch)
    assert node.produce(of_producer(1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    make_room()
    assert node.produce(of_producer(2)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    # A new epoch begins anew.
    assert node.produce(of_producer(0, epoch=1)).error_code == ErrorCode.NONE
    leader_whose_disk_is_full(node, monkeypatch)
    assert node.produce(of_producer(1, epoch=1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    node.now_ms += 5_001
    assert node.produce(of_producer(2, epoch=1)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("version", [12, 13])
def test_batch_behind_one_that_came_before_its_topic_is_refused_so_too(node: DataNode, version: int) -> None:
    """A new topic is known to one node before another; the partition would take the second batch for the first."""
    topic: str | UUID = "a" if version < 13 else UUID(int=100 + node.image.offset)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version < 13 else ErrorCode.UNKNOWN_TOPIC_ID
    for batch in (of_producer(0), of_producer(1), b"no batch"):
        assert node.produce(batch, topic=topic, version=version).error_code == unknown
    node.create_topic("a")
    assert node.produce(of_producer(2), topic=topic, version=version).error_code == unknown
    for sequence in (0, 1, 2):
        assert node.produce(of_producer(sequence), topic=topic, version=version).error_code == ErrorCode.NONE


def test_batch_behind_a_refused_one_is_refused_so_too_though_one_that_is_stored_was_refused_with_it(
    node: DataNode,
) -> None:
    """Sent again because its answer was lost, it comes with those that were never stored."""
    node.create_topic(replicas=(1, 2))
    node.publish_isr("a", 1)
    for sequence in (0, 1):
        node.produce(of_producer(sequence))
    allow = leader_that_lacks_replicas(node, pytest.MonkeyPatch())
    for sequence in (0, 1, 2):
        assert node.produce(of_producer(sequence)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    allow()
    node.publish_isr("a", 1)
    assert node.produce(of_producer(3)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    for sequence in (0, 1, 2, 3):
        assert node.produce(of_producer(sequence)).error_code == ErrorCode.NONE
    assert node.hosted().log.log_end_offset == 4
    assert node.produce(of_producer(5)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batch_in_order_is_taken_after_the_refused_one_came_again_to_another_leader(node: DataNode) -> None:
    node.create_topic(replicas=(1, 2))
    node.publish_isr("a", 1)
    node.produce(of_producer(0))
    node.elect("a", leader=2)
    for sequence in (1, 2):
        assert node.produce(of_producer(sequence)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    for offset in (1, 2):
        sent = of_producer(offset)
        size = read_header(sent, 0).batch_length
        stored = with_offset_and_epoch(offset, size, leader_epoch=1) + sent[ASSIGNED_SIZE:]
        node.hosted().append_as_follower(memoryview(stored), 0)
    node.elect("a", leader=1)
    assert node.produce(of_producer(4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for sequence in (3, 4):
        assert node.produce(of_producer(sequence)).error_code == ErrorCode.NONE


def test_transactional_batch_needs_a_transactional_id(node: DataNode) -> None:
    node.create_topic()
    answer = node.produce(of_producer(0, is_transactional=True), more=((0, batch()),))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert node.hosted().log.log_end_offset == 0


def test_transactional_batch_is_answered_to_be_tried_again(node: DataNode) -> None:
    node.create_topic()
    answer = node.produce(of_producer(0, is_transactional=True), transactional_id="t")
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert "COORDINATOR_NOT_AVAILABLE" in answer.error_message
    assert node.produce(transactional_id="t").error_code == ErrorCode.NONE


@pytest.mark.parametrize("acks", [1, -1])
def test_flush_messages_1_answers_after_the_sync(node: DataNode, acks: int) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch(), acks=acks)
    assert not exchange.is_answered
    assert node.hosted().state.high_watermark == 0
    node.flusher.finish()
    assert exchange.answer.responses[0].partition_responses[0].base_offset == 0
    assert node.hosted().state.high_watermark == 1
    assert node.produces.statistics().parked_count == 0


def test_duplicate_waits_as_the_original_does(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    exchanges = [node.begin_produce(of_producer(0)) for _ in range(2)]
    assert not any(exchange.is_answered for exchange in exchanges)
    node.flusher.finish()
    assert all(exchange.is_answered for exchange in exchanges)


def test_only_the_append_that_fills_flush_messages_waits(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=2)
    assert node.begin_produce(batch()).is_answered
    assert not node.begin_produce(batch()).is_answered


def test_deadline_answers_request_timed_out_with_the_offset(node: DataNode) -> None:
    node.create_topic(partition_count=2)
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch(), more=((9, batch()),))
    node.produces.expire_all()
    answers = exchange.answer.responses[0].partition_responses
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [
        (ErrorCode.REQUEST_TIMED_OUT, 0),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_lost_leadership_answers_what_is_open_with_the_new_leader_kip_951(node: DataNode) -> None:
    node.create_topic(replicas=(1, 2))
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch(), version=10)
    node.elect("a", leader=2)
    answer = exchange.answer
    partition = answer.responses[0].partition_responses[0]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 1)
    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(2, 9002)]
    node.flusher.finish()


def test_new_epoch_of_the_same_leader_ends_what_is_open(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch())
    node.elect("a", leader=1)
    assert exchange.answer.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.hosted().state.high_watermark == 0, "it is not synced yet"
    node.flusher.finish()
    assert node.hosted().state.high_watermark == 1


def test_deleted_topic_ends_what_is_open(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch())
    node.delete_topic("a")
    assert exchange.answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_failed_sync_takes_the_directory_offline(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch())
    node.flusher.finish(OSError(5, "Input/output error"))
    assert exchange.answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.produce().error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_corrupt_log_refuses_its_own_batches_only(node: DataNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic(partition_count=2)

    # The first of two that are asked in this request.
    asked = iter([CorruptData("no batch where one should begin")])

    def should_roll(*_args: object) -> bool:
        for error in asked:
            raise error
        return False

    monkeypatch.setattr(Segment, "should_roll", should_roll)
    answers = node.begin_produce(batch(), more=((1, batch()),)).answer.responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_other_leaders_partition_is_refused_with_a_hint_from_version_10_on(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(2,))
    answer = node.produce(version=10)
    assert (answer.error_code, answer.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    assert node.produce(version=9).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_parked_work_leaves_with_its_client_and_appends_stay(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", flush_messages=1)
    exchange = node.begin_produce(batch())
    exchange.disconnect()
    assert node.produces.statistics().parked_count == 0
    node.flusher.finish()
    assert not exchange.is_answered
    assert node.hosted().state.high_watermark == 1


def test_an_append_that_fails_is_tried_once(node: DataNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic()
    attempts: list[object] = []

    def refuse(log: Log, *_: object, **__: object) -> NoReturn:
        attempts.append(log)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    monkeypatch.setattr(Log, "append_as_leader", refuse)
    assert node.produce(of_producer(0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(attempts) == 1
