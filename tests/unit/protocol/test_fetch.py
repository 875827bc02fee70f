"""Fetch by hand, against kio's reader and writer in every version."""

import contextlib
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio_bytes import written_by_kio
from msgspec.structs import astuple

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData
from penstock.protocol.fetch import MAX_OFFSET, PartitionFetchResponse, decode_fetch, encode_fetch_response
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.produce import NodeEndpoint

SEED = 22
VERSIONS = range(APIS[ApiKey.FETCH].min_version, APIS[ApiKey.FETCH].max_version + 1)
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
RandomEntity = Callable[[Any, random.Random], Any]
TOPIC_ID = TopicId(UUID(int=77))


@dataclass(frozen=True, slots=True)
class Slice:
    """Stands for a part of a file."""

    content: bytes

    @property
    def size(self) -> int:
        return len(self.content)


@EVERY_VERSION
def test_requests_are_read_as_kio_reads_them(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    for _ in range(20):
        theirs = random_entity(load_request_schema(ApiKey.FETCH, version), source)
        ours = decode_fetch(version, memoryview(bytearray(b"head" + written_by_kio(theirs))), 4)
        assert timedelta(milliseconds=ours.max_wait_ms) == theirs.max_wait
        assert (ours.min_bytes, ours.max_bytes) == (theirs.min_bytes, theirs.max_bytes)
        assert ours.isolation_level == theirs.isolation_level
        assert (ours.session_id, ours.session_epoch) == (
            getattr(theirs, "session_id", 0),
            getattr(theirs, "session_epoch", -1),
        )
        assert (ours.rack_id, ours.cluster_id) == (getattr(theirs, "rack_id", ""), getattr(theirs, "cluster_id", None))
        if version >= 15:
            state = theirs.replica_state
            assert (ours.replica_id, ours.replica_epoch) == (state.replica_id, state.replica_epoch)
        else:
            assert (ours.replica_id, ours.replica_epoch) == (theirs.replica_id, -1)
        assert [(topic.name, topic.topic_id) for topic in ours.topics] == [
            (getattr(topic, "topic", None), getattr(topic, "topic_id", None)) for topic in theirs.topics
        ]
        assert [[astuple(partition) for partition in topic.partitions] for topic in ours.topics] == [
            [
                (
                    partition.partition,
                    getattr(partition, "current_leader_epoch", -1),
                    partition.fetch_offset,
                    getattr(partition, "last_fetched_epoch", -1),
                    getattr(partition, "log_start_offset", -1),
                    partition.partition_max_bytes,
                    getattr(partition, "replica_directory_id", None),
                    getattr(partition, "high_watermark", MAX_OFFSET),
                )
                for partition in topic.partitions
            ]
            for topic in theirs.topics
        ]
        assert [tuple(topic) for topic in ours.forgotten_topics] == [
            (getattr(topic, "topic", None), getattr(topic, "topic_id", None), topic.partitions)
            for topic in getattr(theirs, "forgotten_topics_data", ())
        ]


def test_a_rack_is_not_null() -> None:
    # Replica, wait, bytes, bytes; isolation; session, epoch, topics, forgotten topics: then the rack's length.
    before_rack = struct.pack(">iiiibiiii", -1, 0, 0, 0, 0, 0, -1, 0, 0)
    assert decode_fetch(11, before_rack + b"\0\0", 0).rack_id == ""
    with pytest.raises(CorruptData, match="rack"):
        decode_fetch(11, before_rack + b"\xff\xff", 0)


@EVERY_VERSION
def test_wrong_bytes_are_corrupt_and_nothing_worse(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    body = written_by_kio(random_entity(load_request_schema(ApiKey.FETCH, version), source))
    for size in range(len(body)):
        with pytest.raises(CorruptData):
            decode_fetch(version, body[:size], 0)
    with pytest.raises(CorruptData, match="too many"):
        decode_fetch(version, body + b"\0", 0)


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**64 - 1))
def test_mutated_requests_are_corrupt_and_nothing_worse(seed: int, random_entity: RandomEntity) -> None:
    source = random.Random(seed)
    version = source.choice(VERSIONS)
    body = bytearray(written_by_kio(random_entity(load_request_schema(ApiKey.FETCH, version), source)))
    for _ in range(source.randrange(1, 8)):
        body[source.randrange(len(body))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    with contextlib.suppress(CorruptData):
        decode_fetch(version, bytes(body), 0)


ANSWERS = [
    PartitionFetchResponse(0, 0, 10, 9, 1, (Slice(b"first"), Slice(b"x" * 300))),
    PartitionFetchResponse[Slice](1, 1),
    PartitionFetchResponse(2, 0, 10, 9, 1, (Slice(b"second"),), ((4000, 3), (4001, 5)), preferred_read_replica=4),
    PartitionFetchResponse[Slice](3, 6, current_leader=(NodeId(2), LeaderEpoch(9))),
    PartitionFetchResponse[Slice](
        4, 0, 5, 5, 0, aborted_transactions=(), diverging_epoch=(LeaderEpoch(3), 17), snapshot_id=(8, 2)
    ),
]


@EVERY_VERSION
@pytest.mark.parametrize("answers", [ANSWERS, ANSWERS[:1], ANSWERS[1:2], []], ids=["all", "one", "empty", "none"])
def test_responses_are_what_kio_reads(version: int, answers: list[PartitionFetchResponse[Slice]]) -> None:
    endpoints = (NodeEndpoint(2, "two.example", 9092, "rack"), NodeEndpoint(3, "three.example", 9093))
    topics = [("orders", TOPIC_ID, answers), ("b", TopicId(UUID(int=1)), answers)]
    parts = encode_fetch_response(
        version, 7, topics, error_code=70, session_id=99, throttle_time_ms=250, node_endpoints=endpoints
    )
    assert [part for part in parts if isinstance(part, Slice)] == [
        one for answer in answers for one in answer.slices
    ] * 2
    frame = b"".join(part if isinstance(part, bytes) else part.content for part in parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header_size = 9 if version >= 12 else 8
    read: Any
    read, size = entity_reader(load_response_schema(ApiKey.FETCH, version))(frame, header_size)
    assert size == len(frame) - header_size
    assert read.throttle_time == timedelta(milliseconds=250)
    assert version < 7 or (read.error_code, read.session_id) == (70, 99)
    if version >= 16:
        assert [(one.node_id, one.host, one.port, one.rack) for one in read.node_endpoints] == [*endpoints]
    for (name, topic_id, _), topic in zip(topics, read.responses, strict=True):
        assert getattr(topic, "topic", name) == name
        assert getattr(topic, "topic_id", topic_id) == topic_id
        for expected, partition in zip(answers, topic.partitions, strict=True):
            assert_equal(version, expected, partition)


def assert_equal(version: int, expected: PartitionFetchResponse[Slice], partition: Any) -> None:
    assert (partition.partition_index, partition.error_code) == (expected.partition_index, expected.error_code)
    assert partition.high_watermark == expected.high_watermark
    assert partition.last_stable_offset == expected.last_stable_offset
    assert version < 5 or partition.log_start_offset == expected.log_start_offset
    aborted = partition.aborted_transactions
    found = None if aborted is None else tuple((one.producer_id, one.first_offset) for one in aborted)
    assert found == expected.aborted_transactions
    assert partition.records == b"".join(one.content for one in expected.slices)
    assert version < 11 or partition.preferred_read_replica == expected.preferred_read_replica
    if version >= 12:
        diverging, leader, snapshot = partition.diverging_epoch, partition.current_leader, partition.snapshot_id
        assert (diverging.epoch, diverging.end_offset) == (expected.diverging_epoch or (-1, -1))
        assert (leader.leader_id, leader.leader_epoch) == (expected.current_leader or (-1, -1))
        assert (snapshot.end_offset, snapshot.epoch) == (expected.snapshot_id or (-1, -1))
