"""Bytes and partitions are those that Apache Kafka 4.3.1's `RemoteLogMetadataSerde` and its partitioner gave."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.broker.tiers.rules.metadata_records import decode_event, encode_event, metadata_partition
from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.structs import replace

TOPIC_ID = TopicId(UUID("01234567-89ab-cdef-fedc-ba9876543210"))
OTHER_ID = TopicId(UUID(int=((2**64 - 5) << 64) | 77))
PARTITION = TierPartition("tiered", TOPIC_ID, 3)
SEGMENT = RemoteSegment(
    partition=PARTITION,
    id=UUID(int=(1 << 64) | 2),
    start_offset=100,
    end_offset=199,
    max_timestamp_ms=1_700_000_000_000,
    broker_id=NodeId(7),
    event_ms=1_700_000_000_001,
    size_bytes=4096,
    leader_epochs=((LeaderEpoch(0), 100), (LeaderEpoch(4), 150)),
    state=SegmentState.COPY_SEGMENT_STARTED,
    has_aborted_transactions=True,
)
UPDATE = SegmentUpdate(
    partition=PARTITION,
    id=SEGMENT.id,
    broker_id=NodeId(7),
    event_ms=1_700_000_000_002,
    state=SegmentState.COPY_SEGMENT_FINISHED,
)
IDENTITY = "077469657265640123456789abcdeffedcba9876543210000000030000000000000000010000000000000002" + "00"
FACTS = (
    "000000000000006400000000000000c7000000070000018bcfe568000000018bcfe56801"
    "03000000000000000000000064000000000400000000000000960000001000"
)
GOLDEN: dict[str, RemoteSegment | SegmentUpdate] = {
    "010000" + IDENTITY + FACTS + "000000": SEGMENT,
    "010000" + IDENTITY + FACTS + "000001000101": replace(SEGMENT, has_aborted_transactions=False),
    "010100" + IDENTITY + "000000070000018bcfe56802" + "000100": UPDATE,
}


@pytest.mark.parametrize("told", GOLDEN)
def test_records_are_apache_kafkas(told: str) -> None:
    event = GOLDEN[told]
    expected = bytes.fromhex(told)
    assert encode_event(event) == expected
    assert decode_event(expected) == event


@pytest.mark.parametrize("told", GOLDEN)
def test_a_record_that_is_cut_off_is_refused(told: str) -> None:
    whole = bytes.fromhex(told)
    for size in range(len(whole) - 1):
        with pytest.raises(CorruptData):
            decode_event(whole[:size])


def test_records_of_other_kinds_are_passed_over() -> None:
    assert decode_event(b"\x01\x02\x00") is None


def test_the_partition_of_the_metadata_topic_is_kafkas() -> None:
    assert [metadata_partition(TOPIC_ID, index, 50) for index in range(4)] == [11, 2, 38, 12]
    assert [metadata_partition(OTHER_ID, index, 50) for index in range(4)] == [28, 27, 6, 10]
