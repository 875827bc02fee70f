"""Keys and values of internal topics, byte by byte."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.coordination.key_partitions import java_hash, partition_of_key
from penstock.broker.groups.classic.records import (
    GROUP_METADATA_VALUE,
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
    OffsetCommitKey,
    OffsetCommitValue,
    offset_commit_key,
    offset_commit_value,
)
from penstock.protocol.errors import CorruptData


def test_an_offset_is_written_as_apache_kafka_4_3_writes_it() -> None:
    key = OFFSET_COMMIT_KEY.write(OffsetCommitKey("g", "t", 3))
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000003")
    value = OFFSET_COMMIT_VALUE.write(
        OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp_ms=9, topic_id=UUID(int=1))
    )
    assert value == bytes.fromhex(
        "0004 0000000000000005 00000002 02 6d 0000000000000009 01 00 10 00000000000000000000000000000001"
    )


@given(
    offset=st.integers(0, 2**63 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=300),
    topic_id=st.none() | st.uuids(),
)
def test_what_is_written_by_hand_is_what_the_format_says(
    offset: int, leader_epoch: int, metadata: str, topic_id: UUID | None
) -> None:
    value = OffsetCommitValue(offset, leader_epoch, metadata, 9, topic_id=topic_id)
    assert offset_commit_value(value) == OFFSET_COMMIT_VALUE.write(value)
    assert OFFSET_COMMIT_VALUE.read(offset_commit_value(value)) == value
    key = OffsetCommitKey(metadata, "t", leader_epoch)
    assert OFFSET_COMMIT_KEY.read(offset_commit_key(*key)) == key


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ("0000 0000000000000005 0001 6d 0000000000000009", OffsetCommitValue(5, -1, "m", 9)),
        ("0001 0000000000000005 0001 6d 0000000000000009 0000000000000063", OffsetCommitValue(5, -1, "m", 9, 99)),
        ("0002 0000000000000005 0001 6d 0000000000000009", OffsetCommitValue(5, -1, "m", 9)),
        ("0003 0000000000000005 00000002 0001 6d 0000000000000009", OffsetCommitValue(5, 2, "m", 9)),
        ("0004 0000000000000005 00000002 02 6d 0000000000000009 00", OffsetCommitValue(5, 2, "m", 9)),
        ("0004 0000000000000005 00000002 02 6d 0000000000000009 01 63 01 ff", OffsetCommitValue(5, 2, "m", 9)),
    ],
)
def test_what_older_and_newer_brokers_wrote_is_read(stored: str, value: OffsetCommitValue) -> None:
    assert OFFSET_COMMIT_VALUE.read(bytes.fromhex(stored)) == value


def test_what_is_no_record_is_told() -> None:
    whole = OFFSET_COMMIT_VALUE.write(OffsetCommitValue(5, 2, "m", 9))
    for garbage in (b"", b"\0", b"\0\x09", whole[:-1], whole + b"\0"):
        with pytest.raises(CorruptData):
            OFFSET_COMMIT_VALUE.read(garbage)
    with pytest.raises(CorruptData):
        GROUP_METADATA_VALUE.read(b"\0\3\0\1x\0\0\0\1\0\1\x7f\xff\xff\xff")


def test_a_group_is_in_the_partition_in_which_apache_kafka_looks_for_it() -> None:
    # Values of String.hashCode in Java.
    assert java_hash("") == 0
    assert java_hash("group") == 98629247
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("Grüße 🎉") == java_hash("Grüße \ud83c\udf89")
    assert partition_of_key("polygenelubricants", 50) == 0
    assert partition_of_key("group", 50) == 98629247 % 50
