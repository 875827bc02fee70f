"""A follower's Fetch by hand is what the generated classes read and write."""

from datetime import timedelta
from uuid import UUID

import pytest
from kio.schema.fetch.v17.request import FetchRequest
from kio.schema.fetch.v17.response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from kio.schema.types import BrokerId, ProducerId
from kio.static.primitive import Records, i32, i32Timedelta, i64
from msgspec.structs import astuple

from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import CorruptData, ErrorCode
from penstock.protocol.fetch import decode_fetch
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch
from penstock.protocol.messages import decode_header, encode_response, kio_error
from penstock.protocol.replica_fetch import (
    FETCH_VERSION,
    FollowedPartition,
    ReplicaFetchLimits,
    decode_replica_fetch_response,
    encode_replica_fetch,
)

TOPICS = UUID(int=7), UUID(int=9)
LIMITS = ReplicaFetchLimits(max_wait_ms=500, min_bytes=1, max_bytes=10_000, partition_max_bytes=1_000)


def test_request_is_what_the_leader_reads() -> None:
    frame = encode_replica_fetch(
        5,
        b"replica-2",
        LIMITS,
        replica_id=2,
        broker_epoch=BrokerEpoch(77),
        session_id=8,
        session_epoch=3,
        partitions=[
            (TOPICS[0].bytes, 0, FollowedPartition(LeaderEpoch(4), 100, LeaderEpoch(3), 10)),
            (TOPICS[1].bytes, 1, FollowedPartition(LeaderEpoch(4), 0, LeaderEpoch(-1), 0)),
            (TOPICS[0].bytes, 300, FollowedPartition(LeaderEpoch(5), 7, LeaderEpoch(5), 0)),
        ],
        forgotten=[(TOPICS[1].bytes, 6)],
    )
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    body = frame[4:]
    header = decode_header(body)
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (
        ApiKey.FETCH,
        FETCH_VERSION,
        5,
        "replica-2",
    )
    request = decode_fetch(FETCH_VERSION, body, header.body_offset)
    assert (request.replica_id, request.replica_epoch, request.session_id, request.session_epoch) == (2, 77, 8, 3)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10_000)
    assert [(topic.topic_id, [astuple(one)[:6] for one in topic.partitions]) for topic in request.topics] == [
        (TOPICS[0], [(0, 4, 100, 3, 10, 1_000), (300, 5, 7, 5, 0, 1_000)]),
        (TOPICS[1], [(1, 4, 0, -1, 0, 1_000)]),
    ]
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics] == [(TOPICS[1], (6,))]
    assert FetchRequest.__version__ == FETCH_VERSION


def partition(index: int, records: bytes = b"", **fields: object) -> PartitionData:
    return PartitionData(
        partition_index=i32(index),
        high_watermark=i64(20),
        last_stable_offset=i64(19),
        log_start_offset=i64(3),
        preferred_read_replica=BrokerId(-1),
        records=Records(records),
        **{"error_code": kio_error(ErrorCode.NONE), "aborted_transactions": None, **fields},  # type: ignore[arg-type]
    )


def response(*partitions: PartitionData) -> memoryview:
    message = FetchResponse(
        throttle_time=i32Timedelta.parse(timedelta(0)),
        error_code=kio_error(ErrorCode.NONE),
        session_id=i32(8),
        responses=(FetchableTopicResponse(topic_id=TOPICS[0], partitions=partitions),),
    )
    return memoryview(encode_response(ApiKey.FETCH, FETCH_VERSION, 5, message))[4:]


def test_response_is_what_the_leader_wrote() -> None:
    correlation_id, found = decode_replica_fetch_response(
        response(
            partition(0, b"batches"),
            partition(1, diverging_epoch=EpochEndOffset(epoch=i32(4), end_offset=i64(12))),
            partition(
                300,
                b"x" * 300,
                error_code=kio_error(ErrorCode.FENCED_LEADER_EPOCH),
                aborted_transactions=(AbortedTransaction(producer_id=ProducerId(1), first_offset=i64(2)),),
                current_leader=LeaderIdAndEpoch(leader_id=BrokerId(1), leader_epoch=i32(3)),
                snapshot_id=SnapshotId(end_offset=i64(1), epoch=i32(2)),
            ),
        )
    )
    assert (correlation_id, found.error_code, found.session_id) == (5, ErrorCode.NONE, 8)
    ((topic_id, partitions),) = found.topics
    assert topic_id == TOPICS[0].bytes
    assert [(*one[:4], bytes(one.records), one.diverging_epoch) for one in partitions] == [
        (0, ErrorCode.NONE, 20, 3, b"batches", None),
        (1, ErrorCode.NONE, 20, 3, b"", (4, 12)),
        (300, ErrorCode.FENCED_LEADER_EPOCH, 20, 3, b"x" * 300, None),
    ]


@pytest.mark.parametrize("change", [-1, 1, -40])
def test_response_of_another_size_is_refused(change: int) -> None:
    frame = bytes(response(partition(0, b"batches")))
    with pytest.raises(CorruptData):
        decode_replica_fetch_response(memoryview(frame[:change] if change < 0 else frame + b"\0"))
