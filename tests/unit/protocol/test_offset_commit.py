"""OffsetCommit by hand, held to kio's own reader and writer in every version."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

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
                [(one.partition_index, code) for one, code in zip(topic.partitions, codes, strict=True)],
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
