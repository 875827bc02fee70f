"""OffsetCommit by hand, held to kio's own reader and writer in every version."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio_bytes import written_by_kio

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData
from penstock.protocol.offset_commit import decode_offset_commit, encode_offset_commit_response

SEED = 8
VERSIONS = range(APIS[ApiKey.OFFSET_COMMIT].min_version, APIS[ApiKey.OFFSET_COMMIT].max_version + 1)
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
RandomEntity = Callable[[Any, random.Random], Any]
HEADER_BYTES = 8


@EVERY_VERSION
def test_requests_are_read_as_kio_reads_them(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    for _ in range(20):
        theirs = random_entity(load_request_schema(ApiKey.OFFSET_COMMIT, version), source)
        ours = decode_offset_commit(version, memoryview(b"head" + written_by_kio(theirs)), 4)
        assert ours[:4] == (
            theirs.group_id,
            theirs.generation_id_or_member_epoch,
            theirs.member_id,
            getattr(theirs, "group_instance_id", None),
        )
        assert [(topic.name, topic.topic_id) for topic in ours.topics] == [
            (getattr(topic, "name", None), getattr(topic, "topic_id", None)) for topic in theirs.topics
        ]
        assert [topic.partitions for topic in ours.topics] == [
            tuple(
                (
                    one.partition_index,
                    one.committed_offset,
                    getattr(one, "committed_leader_epoch", -1),
                    one.committed_metadata,
                )
                for one in topic.partitions
            )
            for topic in theirs.topics
        ]


@EVERY_VERSION
@pytest.mark.parametrize("texts", [(None, None, None), (None, "", None), (None, "some", ""), ("", "", "x" * 200)])
def test_metadata_is_read_where_none_has_any_and_where_one_has(version: int, texts: tuple[str | None, ...]) -> None:
    schema: Any = load_request_schema(ApiKey.OFFSET_COMMIT, version)
    topics: Any = get_type_hints(schema)["topics"]
    (topic, *_) = get_args(topics)
    (partition, *_) = get_args(get_type_hints(topic)["partitions"])
    partitions = tuple(
        partition(partition_index=number, committed_offset=2**40 + number, committed_metadata=text)
        for number, text in enumerate(texts)
    )
    named = {"topic_id": UUID(int=7)} if version >= 10 else {"name": "topic"}
    more = {"retention_time": timedelta(0)} if version < 5 else {}
    whole = schema(group_id="g", member_id="", topics=(topic(**named, partitions=partitions),) * 2, **more)
    decoded = decode_offset_commit(version, written_by_kio(whole), 0)
    expected = tuple((number, 2**40 + number, -1, text) for number, text in enumerate(texts))
    assert [one.partitions for one in decoded.topics] == [expected] * 2


def test_tags_of_a_partition_are_skipped() -> None:
    place = b"\0\0\0\x01" + b"\0" * 7 + b"\x05" + b"\xff" * 4
    partitions = place + b"\1\1\x63\2ab" + place + b"\0\0"
    body = b"\2g" + b"\xff" * 4 + b"\1\0" + b"\2\2t\3" + partitions + b"\0\0"
    (topic,) = decode_offset_commit(8, body, 0).topics
    assert topic.partitions == ((1, 5, -1, ""), (1, 5, -1, None))


@EVERY_VERSION
def test_responses_are_written_as_kio_reads_them(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    schema = load_response_schema(ApiKey.OFFSET_COMMIT, version)
    for number in range(20):
        asked = random_entity(load_request_schema(ApiKey.OFFSET_COMMIT, version), source)
        topics = decode_offset_commit(version, written_by_kio(asked), 0).topics
        errors = [[source.choice((0, 16, 25)) for _ in topic.partitions] for topic in topics]
        frame = encode_offset_commit_response(version, number, topics, errors)
        assert int.from_bytes(frame[:4]) == len(frame) - 4
        assert int.from_bytes(frame[4:HEADER_BYTES]) == number
        # The header of flexible responses has tags.
        start = HEADER_BYTES + (version >= 8)
        theirs: Any
        theirs, size = entity_reader(schema)(frame, start)
        assert start + size == len(frame)
        assert [
            (
                getattr(topic, "name", None),
                getattr(topic, "topic_id", None),
                [(one.partition_index, int(one.error_code)) for one in topic.partitions],
            )
            for topic in theirs.topics
        ] == [
            (
                topic.name,
                topic.topic_id,
                [(one[0], code) for one, code in zip(topic.partitions, codes, strict=True)],
            )
            for topic, codes in zip(topics, errors, strict=True)
        ]


@EVERY_VERSION
def test_every_cut_and_every_surplus_is_told(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    whole = written_by_kio(random_entity(load_request_schema(ApiKey.OFFSET_COMMIT, version), source))
    for size in range(len(whole)):
        with pytest.raises(CorruptData):
            decode_offset_commit(version, whole[:size], 0)
    with pytest.raises(CorruptData):
        decode_offset_commit(version, whole + b"\0", 0)


def test_an_announced_length_is_not_believed() -> None:
    body = b"\0\1g" + b"\xff" * 4 + b"\0\0" + b"\0" * 8 + b"\x7f\xff\xff\xff"
    with pytest.raises(CorruptData, match="announced"):
        decode_offset_commit(2, body, 0)
