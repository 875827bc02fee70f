"""ListOffsets by hand, held to kio's own reader and writer in every version."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio_bytes import written_by_kio

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData
from penstock.protocol.list_offsets import (
    ToldPartition,
    ToldTopic,
    decode_list_offsets,
    encode_list_offsets_response,
)

SEED = 9
VERSIONS = range(APIS[ApiKey.LIST_OFFSETS].min_version, APIS[ApiKey.LIST_OFFSETS].max_version + 1)
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
RandomEntity = Callable[[Any, random.Random], Any]
HEADER_BYTES = 8


@EVERY_VERSION
def test_requests_are_read_as_kio_reads_them(version: int, random_entity: RandomEntity) -> None:
    source = random.Random(SEED + version)
    for _ in range(20):
        theirs = random_entity(load_request_schema(ApiKey.LIST_OFFSETS, version), source)
        ours = decode_list_offsets(version, memoryview(b"head" + written_by_kio(theirs)), 4)
        timeout = getattr(theirs, "timeout", timedelta(0))
        assert (ours.replica_id, ours.isolation_level, ours.timeout_ms) == (
            theirs.replica_id,
            getattr(theirs, "isolation_level", 0),
            timeout // timedelta(milliseconds=1),
        )
        assert [(topic.name, topic.partitions) for topic in ours.topics] == [
            (
                topic.name,
                [
                    (one.partition_index, getattr(one, "current_leader_epoch", -1), one.timestamp)
                    for one in topic.partitions
                ],
            )
            for topic in theirs.topics
        ]


@EVERY_VERSION
def test_responses_are_written_as_kio_reads_them(version: int) -> None:
    source = random.Random(SEED + version)
    schema = load_response_schema(ApiKey.LIST_OFFSETS, version)
    for number in range(20):
        topics = [
            ToldTopic(
                f"topic-{index}",
                [
                    ToldPartition(
                        source.randrange(2**31),
                        source.choice((0, 3, 6)),
                        source.randrange(-1, 2**40),
                        source.randrange(-1, 2**60),
                        source.randrange(-1, 2**20) if version >= 4 else -1,
                    )
                    for _ in range(source.randrange(4))
                ],
            )
            for index in range(source.randrange(4))
        ]
        frame = encode_list_offsets_response(version, number, topics)
        assert int.from_bytes(frame[:4]) == len(frame) - 4
        assert int.from_bytes(frame[4:HEADER_BYTES]) == number
        # The header of flexible responses has tags.
        start = HEADER_BYTES + (version >= 6)
        theirs: Any
        theirs, size = entity_reader(schema)(frame, start)
        assert start + size == len(frame)
        assert [
            ToldTopic(
                topic.name,
                [
                    ToldPartition(
                        one.partition_index,
                        int(one.error_code),
                        one.timestamp,
                        one.offset,
                        getattr(one, "leader_epoch", -1),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in theirs.topics
        ] == topics


@EVERY_VERSION
def test_garbage_is_corrupt_data(version: int, random_entity: RandomEntity) -> None:
    whole = written_by_kio(random_entity(load_request_schema(ApiKey.LIST_OFFSETS, version), random.Random(SEED)))
    for size in range(len(whole)):
        with pytest.raises(CorruptData):
            decode_list_offsets(version, whole[:size], 0)
    with pytest.raises(CorruptData, match="1 bytes too many"):
        decode_list_offsets(version, whole + b"x", 0)
