"""Records of commits, held to what is written record by record."""

from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.groups.classic.records import OffsetCommitValue, offset_commit_key, offset_commit_value
from penstock.broker.groups.offset_records import OffsetRecords, TopicOffsets, encode_offsets
from penstock.broker.groups.offset_store import CommittedOffset
from penstock.protocol.batches import NO_TIMESTAMP
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, batch_of, write_batch

NOW_MS = 1_700_000_000_000
METADATA_BYTES_MAX = 10
TOPIC_ID = UUID(int=7)

PARTITIONS = st.lists(
    st.tuples(
        st.integers(-1, 12),
        st.integers(0, 2**63 - 1),
        st.integers(-1, 2**31 - 1),
        st.none() | st.text(max_size=METADATA_BYTES_MAX + 2),
    )
)
TOPICS = st.lists(
    st.builds(TopicOffsets, st.text(max_size=80), st.none() | st.uuids(), st.integers(0, 10), PARTITIONS), max_size=4
)


def encode(group: str, topics: list[TopicOffsets]) -> OffsetRecords:
    return encode_offsets(group, topics, now_ms=NOW_MS, metadata_bytes_max=METADATA_BYTES_MAX)


def one_by_one(group: str, topics: list[TopicOffsets]) -> list[Record]:
    """Those without an error."""
    records: list[Record] = []
    for topic, topic_id, partition_count, partitions in topics:
        for partition, offset, leader_epoch, metadata in partitions:
            if 0 <= partition < partition_count and len(metadata or "") <= METADATA_BYTES_MAX:
                value = OffsetCommitValue(offset, leader_epoch, metadata or "", NOW_MS, NO_TIMESTAMP, topic_id)
                key = offset_commit_key(group, topic, partition)
                records.append(Record(len(records), NOW_MS, key, offset_commit_value(value)))
    return records


@pytest.mark.thorough
@given(group=st.text(max_size=80), topics=TOPICS)
def test_records_are_those_that_are_written_one_by_one(group: str, topics: list[TopicOffsets]) -> None:
    encoded = encode(group, topics).encoded
    expected = one_by_one(group, topics)
    assert encoded.record_count == len(expected)
    if expected:
        assert batch_of(encoded, NOW_MS) == write_batch(expected)


def test_records_of_many_partitions_are_those_that_are_written_one_by_one() -> None:
    topics = [TopicOffsets("topic", TOPIC_ID, 20_000, [(partition, 5, 1, None) for partition in range(20_000)])]
    assert batch_of(encode("group", topics).encoded, NOW_MS) == write_batch(one_by_one("group", topics))


@pytest.mark.thorough
@given(topics=TOPICS)
def test_what_is_committed_is_what_the_records_say(topics: list[TopicOffsets]) -> None:
    """The last of several for one partition."""
    offsets = count(100)
    expected = [
        {
            partition: CommittedOffset(
                offset, leader_epoch, metadata or "", NOW_MS, NO_TIMESTAMP, topic_id, next(offsets)
            )
            for partition, offset, leader_epoch, metadata in partitions
            if 0 <= partition < partition_count and len(metadata or "") <= METADATA_BYTES_MAX
        }
        for _, topic_id, partition_count, partitions in topics
    ]
    found = list(encode("group", topics).committed(100))
    assert [committed for _, committed in found] == [of_topic for of_topic in expected if of_topic]
    names = [topic.topic for topic, of_topic in zip(topics, expected, strict=True) if of_topic]
    assert [name for name, _ in found] == names


def test_a_partition_that_is_unknown_and_metadata_that_is_too_long_are_told() -> None:
    unknown = TopicOffsets("u", TOPIC_ID, 0, [(0, 5, -1, "")])
    topic = TopicOffsets(
        "t", TOPIC_ID, 2, [(-1, 5, -1, None), (0, 5, -1, "x" * 10), (1, 6, -1, "x" * 11), (2, 7, -1, "x" * 11)]
    )
    records = encode("g", [unknown, topic])
    assert records.outcomes == [
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ],
    ]
    assert records.encoded.record_count == 1
    assert list(records.known()) == [(TOPIC_ID, 0), (TOPIC_ID, 1)]
