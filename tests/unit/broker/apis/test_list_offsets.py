"""ListOffsets: offsets by position and by time, as Apache Kafka 4.3.1 answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from produced_batches import produced

from penstock.broker.apis.list_offsets import OffsetQuestion, told_topics
from penstock.broker.cluster.rules.offset_questions import OffsetTime
from penstock.protocol.errors import ErrorCode
from penstock.protocol.list_offsets import AskedPartition, AskedTopic, ListOffsetsRequest
from penstock.protocol.records import Record, write_batch

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

NOW = 1_700_000_000_000
NOT_FOUND = (ErrorCode.NONE, -1, -1, -1)


def ask(
    node: DataNode,
    *wanted: tuple[int, int],
    topic: str = "a",
    version: int = 11,
    epoch: int = -1,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> list[tuple[int, int, int, int]]:
    """`wanted` has (partition, timestamp); answers (error, offset, timestamp, leader epoch)."""
    partitions = [AskedPartition(index, epoch, timestamp) for index, timestamp in wanted]
    request = ListOffsetsRequest(replica_id, isolation_level, [AskedTopic(topic, partitions)])
    question = OffsetQuestion(node.partitions, request, version)
    (told,) = told_topics(question.asked, map(question.answer, question.asked))
    return [(one.error_code, one.offset, one.timestamp, one.leader_epoch) for one in told.partitions]


@pytest.fixture
def filled(node: DataNode) -> DataNode:
    """Offsets 0 to 3 at times 10, 30, 20 and 25 after now, the last two in one batch; then epoch 1."""
    node.create_topic()
    for times in ((10,), (30,), (20, 25)):
        node.produce(write_batch([Record(number, NOW + time, b"k", b"v") for number, time in enumerate(times)]))
    node.elect("a", leader=1)
    return node


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (OffsetTime.LATEST, (0, 4, -1, 1)),
        (OffsetTime.EARLIEST, (0, 0, -1, 0)),
        (OffsetTime.MAX_TIMESTAMP, (0, 1, NOW + 30, 0)),
        (OffsetTime.EARLIEST_LOCAL, (0, 0, -1, 0)),
        (OffsetTime.LATEST_TIERED, NOT_FOUND),
        (OffsetTime.EARLIEST_PENDING_UPLOAD, NOT_FOUND),
        (0, (0, 0, NOW + 10, 0)),
        (NOW + 11, (0, 1, NOW + 30, 0)),
        (NOW + 31, NOT_FOUND),
    ],
)
def test_offset_of_a_time(filled: DataNode, timestamp: int, expected: tuple[int, int, int, int]) -> None:
    assert ask(filled, (0, timestamp)) == [expected]


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [
        (OffsetTime.MAX_TIMESTAMP, 7),
        (OffsetTime.EARLIEST_LOCAL, 8),
        (OffsetTime.LATEST_TIERED, 9),
        (OffsetTime.EARLIEST_PENDING_UPLOAD, 11),
        (-7, 12),
    ],
)
def test_special_times_need_their_version(filled: DataNode, timestamp: int, first_version: int) -> None:
    for version in range(1, 12):
        expected = ErrorCode.NONE if version >= first_version else ErrorCode.UNSUPPORTED_VERSION
        assert ask(filled, (0, timestamp), version=version)[0][0] == expected


def test_earliest_has_no_epoch_when_the_first_records_epoch_is_unknown(filled: DataNode) -> None:
    filled.hosted().log.leader_epochs.clear()
    filled.hosted().log.leader_epochs.assign(1, 3)
    assert ask(filled, (0, OffsetTime.EARLIEST)) == [(0, 0, -1, -1)]


def test_empty_partition(node: DataNode) -> None:
    node.create_topic()
    times = (OffsetTime.LATEST, OffsetTime.EARLIEST, OffsetTime.MAX_TIMESTAMP, 5)
    assert [ask(node, (0, time))[0] for time in times] == [(0, 0, -1, 0), (0, 0, -1, 0), NOT_FOUND, NOT_FOUND]


def test_clients_see_nothing_above_the_high_watermark(filled: DataNode) -> None:
    filled.configure("a", flush_messages=1)
    filled.begin_produce(write_batch([Record(0, NOW + 99, b"k", b"v")]))
    assert ask(filled, (0, OffsetTime.LATEST))[0][1] == 4
    assert ask(filled, (0, OffsetTime.LATEST), isolation_level=1)[0][1] == 4
    assert ask(filled, (0, NOW + 99)) == [NOT_FOUND]
    assert ask(filled, (0, OffsetTime.MAX_TIMESTAMP)) == [NOT_FOUND]
    assert ask(filled, (0, OffsetTime.LATEST), replica_id=2)[0][1] == 5
    assert ask(filled, (0, NOW + 99), replica_id=-2)[0][1] == 4


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_latest_is_not_available_before_the_epoch_has_begun_kip_207(
    filled: DataNode, version: int, error: ErrorCode
) -> None:
    # Of its follower a new leader knows nothing yet.
    filled.reassign("a", 1, 2)
    filled.hosted().append(produced(filled.batch()), NOW)
    filled.elect("a", leader=1)
    assert ask(filled, (0, OffsetTime.LATEST), version=version)[0][0] == error
    assert ask(filled, (0, NOW + 31), version=version)[0][0] == error
    assert ask(filled, (0, OffsetTime.EARLIEST), version=version)[0][0] == ErrorCode.NONE
    assert ask(filled, (0, 0), version=version)[0][0] == ErrorCode.NONE
    assert ask(filled, (0, OffsetTime.LATEST), version=version, replica_id=2)[0][0] == ErrorCode.NONE


def test_partition_named_twice_is_refused_once(filled: DataNode) -> None:
    assert ask(filled, (0, OffsetTime.LATEST), (0, OffsetTime.EARLIEST)) == [(ErrorCode.INVALID_REQUEST, -1, -1, -1)]


def test_unknown_partitions_and_epochs(filled: DataNode) -> None:
    assert ask(filled, (9, OffsetTime.LATEST))[0][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(filled, (0, OffsetTime.LATEST), topic="none")[0][0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(filled, (0, OffsetTime.LATEST), epoch=0)[0][0] == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(filled, (0, OffsetTime.LATEST), epoch=2)[0][0] == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_only_the_leader_answers_but_for_debuggers(filled: DataNode) -> None:
    filled.reassign("a", 1, 2)
    filled.elect("a", leader=2)
    assert ask(filled, (0, OffsetTime.LATEST))[0][0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(filled, (0, OffsetTime.LATEST), replica_id=-2)[0][:2] == (ErrorCode.NONE, 4)


def test_topics_are_answered_once_and_only_with_partitions(filled: DataNode) -> None:
    once, empty = AskedTopic("a", [AskedPartition(0, -1, -1)]), AskedTopic("a", [])
    for topics, expected in (((empty,), []), ((once, once), [ErrorCode.INVALID_REQUEST])):
        question = OffsetQuestion(filled.partitions, ListOffsetsRequest(-1, 0, topics), 11)
        told = told_topics(question.asked, map(question.answer, question.asked))
        assert [one.error_code for topic in told for one in topic.partitions] == expected
