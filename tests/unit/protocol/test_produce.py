"""Produce by hand, against kio's reader and writer in every version."""

import contextlib
import random
import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio_bytes import written_by_kio

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import TopicId
from penstock.protocol.primitives import STRING_SIZE_MAX, uvarint
from penstock.protocol.produce import (
    ENTRIES_MAX,
    NodeEndpoint,
    PartitionProduceResponse,
    decode_produce,
    encode_produce_response,
)

SEED = 21
VERSIONS = range(APIS[ApiKey.PRODUCE].min_version, APIS[ApiKey.PRODUCE].max_version + 1)
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
RandomEntity = Callable[[Any, random.Random], Any]
TOPIC_ID = TopicId(UUID(int=77))


@EVERY_VERSION
def test_requests_are_read_as_kio_reads_them(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    for _ in range(20):
        theirs = random_entity(load_request_schema(ApiKey.PRODUCE, version), source)
        body = written_by_kio(theirs)
        received = memoryview(bytearray(b"head" + body))
        ours = decode_produce(version, received, 4)
        assert (ours.transactional_id, ours.acks) == (theirs.transactional_id, theirs.acks)
        assert timedelta(milliseconds=ours.timeout_ms) == theirs.timeout
        assert [(topic.name, topic.topic_id) for topic in ours.topics] == [
            (getattr(topic, "name", None), getattr(topic, "topic_id", None)) for topic in theirs.topic_data
        ]
        assert [topic.partitions for topic in ours.topics] == [
            tuple((partition.index, partition.records) for partition in topic.partition_data)
            for topic in theirs.topic_data
        ]


def test_records_are_a_part_of_the_receive_buffer() -> None:
    received = bytearray(b"\0\xff\xff\0\0\0\1\2" + TOPIC_ID.bytes + b"\2\0\0\0\3\5abcd\0\0\0")
    request = decode_produce(13, memoryview(received), 0)
    ((index, records),) = request.topics[0].partitions
    assert index == 3
    assert isinstance(records, memoryview)
    received[received.index(b"abcd")] = ord("x")
    assert bytes(records) == b"xbcd"


@pytest.mark.parametrize("version", [3, 9, 13])
def test_more_entries_than_a_client_has_are_corrupt_before_they_are_read(version: int) -> None:
    too_many = ENTRIES_MAX + 1
    start = b"\xff\xff\0\1\0\0\0\1" if version == 3 else b"\0\0\1\0\0\0\1"
    count = struct.pack(">i", too_many) if version == 3 else uvarint(too_many + 1)
    with pytest.raises(CorruptData, match="topics and partitions"):
        decode_produce(version, start + count, 0)
    topic = {3: b"\0\0\0\1\0\1t", 9: b"\2\2t", 13: b"\2" + bytes(16)}[version]
    with pytest.raises(CorruptData, match="topics and partitions"):
        decode_produce(version, start + topic + count, 0)


def test_strings_longer_than_kafkas_are_corrupt() -> None:
    rest = b"\xff\xff\0\0\0\1\1\0"
    name = b"x" * STRING_SIZE_MAX
    assert decode_produce(12, uvarint(len(name) + 1) + name + rest, 0).transactional_id == name.decode()
    with pytest.raises(CorruptData, match="a string of 32768 bytes"):
        decode_produce(12, uvarint(len(name) + 2) + name + b"x" + rest, 0)


@EVERY_VERSION
def test_wrong_bytes_are_corrupt_and_nothing_worse(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    body = written_by_kio(random_entity(load_request_schema(ApiKey.PRODUCE, version), source))
    for size in range(len(body)):
        with pytest.raises(CorruptData):
            decode_produce(version, body[:size], 0)
    with pytest.raises(CorruptData, match="too many"):
        decode_produce(version, body + b"\0", 0)


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**64 - 1))
def test_mutated_requests_are_corrupt_and_nothing_worse(seed: int, random_entity: RandomEntity) -> None:
    source = random.Random(seed)
    version = source.choice(VERSIONS)
    body = bytearray(written_by_kio(random_entity(load_request_schema(ApiKey.PRODUCE, version), source)))
    for _ in range(source.randrange(1, 8)):
        body[source.randrange(len(body))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    with contextlib.suppress(CorruptData):
        decode_produce(version, bytes(body), 0)


ANSWERS = [
    PartitionProduceResponse(0, 0, 1234, -1, 10),
    PartitionProduceResponse(1, 6, current_leader=(2, 9)),
    PartitionProduceResponse(2, 87, -1, -1, -1, ((0, "no key"), (3, None)), "One or more records were rejected"),
    PartitionProduceResponse(3, 0, 5, 1_700_000_000_000, 0, [], "a message", (1, 1)),
]


def answer_as_read_by_kio(version: int, frame: bytes) -> Any:
    header_size = 9 if version >= 9 else 8
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:8] == b"\0\0\0\x07"
    answer, size = entity_reader(load_response_schema(ApiKey.PRODUCE, version))(frame, header_size)
    assert size == len(frame) - header_size
    return answer


@EVERY_VERSION
@pytest.mark.parametrize("answers", [ANSWERS, ANSWERS[:1], ANSWERS[1:2], []], ids=["all", "plain", "leader", "none"])
def test_responses_are_what_kio_reads(version: int, answers: list[PartitionProduceResponse]) -> None:
    endpoints = (NodeEndpoint(2, "two.example", 9092, "rack"), NodeEndpoint(3, "three.example", 9093))
    for topics in (
        [("orders", TOPIC_ID, answers)],
        [("a", TOPIC_ID, answers), ("b", TopicId(UUID(int=1)), answers)],
        [],
    ):
        for node_endpoints in ((), endpoints):
            frame = encode_produce_response(version, 7, topics, 250, node_endpoints)
            read = answer_as_read_by_kio(version, frame)
            assert read.throttle_time == timedelta(milliseconds=250)
            assert len(read.responses) == len(topics)
            if version >= 10:
                assert [(one.node_id, one.host, one.port, one.rack) for one in read.node_endpoints] == [*node_endpoints]
            for (name, topic_id, _), topic in zip(topics, read.responses, strict=True):
                assert getattr(topic, "name", name) == name
                assert getattr(topic, "topic_id", topic_id) == topic_id
                for expected, partition in zip(answers, topic.partition_responses, strict=True):
                    assert_equal(version, expected, partition)


def assert_equal(version: int, expected: PartitionProduceResponse, partition: Any) -> None:
    assert (partition.index, partition.error_code) == (expected.partition_index, expected.error_code)
    assert partition.base_offset == expected.base_offset
    time = partition.log_append_time
    assert (-1 if time is None else int(time.timestamp() * 1000)) == expected.log_append_time_ms
    assert version < 5 or partition.log_start_offset == expected.log_start_offset
    if version >= 8:
        errors = [(one.batch_index, one.batch_index_error_message) for one in partition.record_errors]
        assert errors == list(expected.record_errors)
        assert partition.error_message == expected.error_message
    if version >= 10:
        leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch)
        assert leader == (expected.current_leader or (-1, -1))
