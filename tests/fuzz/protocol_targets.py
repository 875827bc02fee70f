"""What a peer may send: frames of requests and responses, Produce and Fetch by hand, batches and their records."""

from __future__ import annotations

import contextlib
import struct
from random import Random
from typing import Any
from uuid import UUID

from crc32c import crc32c
from kio.index import load_request_schema, load_response_schema
from random_entities import random_entity

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.batches import (
    ASSIGNED_SIZE,
    ATTRIBUTES_OFFSET,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    BatchHeader,
    is_crc_valid,
    iterate_headers,
    read_header,
    with_offset_and_epoch,
)
from penstock.protocol.compression import Compression, compress, decompress
from penstock.protocol.errors import CorruptData, KafkaError
from penstock.protocol.fetch import decode_fetch
from penstock.protocol.messages import decode_header, decode_request, decode_response, encode_request, encode_response
from penstock.protocol.produce import decode_produce
from penstock.protocol.records import Record, read_records, write_batch
from penstock.protocol.single_produce import read_single_produce
from penstock.storage.log.rules.batch_admission import read_produced_batch
from penstock.storage.log.rules.batch_validation import validate_batch as validate_produced
from penstock.storage.log.rules.config import MAX_INT64, LogConfig
from penstock.storage.log.rules.replicated_batches import check_replicated_batches

TIME_MS = 1_700_000_000_000
UNCOMPRESSED_MAX = 256 * 1024
_SIZE = 4
_RESPONSE_CHOICE = struct.Struct(">hh")
_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")


def read_request(data: bytes) -> None:
    """A frame without its size, by the readers that the broker would use."""
    try:
        header = decode_header(data)
    except CorruptData:
        return
    key, version = header.api_key, header.api_version
    if not APIS[key].has_version(version):
        assert key == ApiKey.API_VERSIONS
        return
    by_hand = None
    if key == ApiKey.PRODUCE:
        by_hand = _decoded(decode_produce, version, data, header.body_offset)
        _assert_same_single(version, data, header.body_offset, by_hand)
    elif key == ApiKey.FETCH:
        by_hand = _decoded(decode_fetch, version, data, header.body_offset)
    try:
        request: Any = decode_request(key, version, data, header.body_offset)
    except CorruptData:
        # Readers by hand take the same or more: they do not look into tags that they have no use for.
        return
    if key == ApiKey.PRODUCE:
        assert by_hand is not None
        _assert_same_produce(by_hand, request)
    elif key == ApiKey.FETCH:
        assert by_hand is not None
        _assert_same_fetch(by_hand, request)
    written = encode_request(key, version, header.correlation_id, header.client_id, request)[_SIZE:]
    again = decode_header(written)
    assert again[:4] == header[:4], (again, header)
    reread = decode_request(key, version, written, again.body_offset)
    # Not compared as values: one number is not equal to itself.
    assert encode_request(key, version, header.correlation_id, header.client_id, reread)[_SIZE:] == written


def read_response(data: bytes) -> None:
    """API key and version, then a frame without its size: what nodes and our own clients read."""
    if len(data) < _RESPONSE_CHOICE.size:
        return
    key, version = _RESPONSE_CHOICE.unpack_from(data)
    if key not in APIS or not APIS[key].has_version(version):
        return
    try:
        correlation_id, response = decode_response(key, version, data, _RESPONSE_CHOICE.size)
    except CorruptData:
        return
    written = encode_response(key, version, correlation_id, response)[_SIZE:]
    assert encode_response(key, version, *decode_response(key, version, written))[_SIZE:] == written


def read_batches(data: bytes) -> None:
    """Batches one after the other, then what a follower makes of them."""
    with contextlib.suppress(CorruptData):
        end = 0
        for position, header in iterate_headers(data):
            assert position == end
            end = position + header.size_bytes
            assert end <= len(data)
        assert end == len(data)
    with contextlib.suppress(KafkaError):
        next_offset = 0
        for batch in check_replicated_batches(memoryview(data), 0, "t-0"):
            assert is_crc_valid(data, batch.position, batch.header)
            assert batch.header.base_offset >= next_offset
            next_offset = batch.header.next_offset


def read_batch_records(data: bytes) -> None:
    """The records of the batch at the start, whatever its CRC."""
    try:
        header = read_header(data, 0)
        records = list(read_records(data, header, UNCOMPRESSED_MAX))
    except CorruptData:
        return
    if records and not header.is_log_append_time:
        # An answer of our own that holds them is read as the same records.
        written = write_batch(records, compression=header.compression, base_offset=header.base_offset)
        assert list(read_records(written, read_header(written, 0))) == records


def validate_batch(data: bytes) -> None:
    """One byte that chooses the topic, then a batch, whose length and CRC are put right: else little gets past them."""
    if len(data) < 1 + HEADER_SIZE:
        return
    choice, batch = data[0], with_length_and_crc(data[1:])
    config = LogConfig(
        cleanup_policy=frozenset({"compact"} if choice & 1 else {"delete"}),
        message_timestamp_type="LogAppendTime" if choice & 2 else "CreateTime",
        message_timestamp_before_max_ms=3_600_000 if choice & 4 else MAX_INT64,
        max_message_bytes=1000 if choice & 8 else 1024 * 1024,
    )
    try:
        header = validate_produced(read_produced_batch(batch, 13), config, "t-0", TIME_MS).header
    except KafkaError:
        return
    assert header.size_bytes == len(batch) <= config.max_message_bytes
    assert is_crc_valid(batch, 0, header)
    assert header.next_offset == header.record_count > 0
    appended = with_offset_and_epoch(0, header.batch_length, 0) + batch[ASSIGNED_SIZE:]
    (only,) = check_replicated_batches(memoryview(appended), 0, "t-0")
    assert only.header == header._replace(base_offset=0, partition_leader_epoch=0)
    if config.is_compacted or choice & 6 == 4:
        # Their timestamps have limits: the records were opened to be judged.
        _assert_readable(batch, header, config)


def unpack(data: bytes) -> None:
    """A compression type and compressed bytes."""
    if not data:
        return
    try:
        plain = decompress(data[0] % 6, data[1:], UNCOMPRESSED_MAX)
    except CorruptData:
        return
    if data[0] % 6 != Compression.NONE:
        assert len(plain) <= UNCOMPRESSED_MAX
    assert bytes(decompress(data[0] % 6, compress(data[0] % 6, plain), UNCOMPRESSED_MAX + len(data))) == bytes(plain)


def request_seeds() -> list[bytes]:
    source = Random(1)
    return [
        encode_request(key, version, 7, "fuzz", random_entity(load_request_schema(key, version), source))[_SIZE:]
        for key, version in _every_version()
    ]


def response_seeds() -> list[bytes]:
    source = Random(1)
    return [
        _RESPONSE_CHOICE.pack(key, version)
        + encode_response(key, version, 7, random_entity(load_response_schema(key, version), source))[_SIZE:]
        for key, version in _every_version()
    ]


def batch_seeds() -> list[bytes]:
    seeds = []
    for compression in Compression:
        plain = [Record(0, TIME_MS, b"k", b"v"), Record(1, TIME_MS + 5, b"key", None, (("h", b"x"), ("", None)))]
        seeds.append(write_batch(plain, compression=compression))
        many = [Record(n, TIME_MS + n, str(n).encode(), bytes(9)) for n in range(40)]
        seeds.append(write_batch(many, compression=compression, producer_id=9, producer_epoch=0, base_sequence=3))
    control = Record(0, TIME_MS, b"\0\0\0\1", b"\0\0\0\0\0\7")
    seeds.append(write_batch([control], is_control=True, is_transactional=True, producer_id=9, producer_epoch=0))
    seeds.append(seeds[0] + write_batch([Record(2, TIME_MS, None, b"z")], leader_epoch=4))
    return seeds


def validation_seeds() -> list[bytes]:
    return [bytes((choice,)) + batch for choice in range(8) for batch in batch_seeds()]


def compression_seeds() -> list[bytes]:
    plain = b"".join(b"%d little records" % n for n in range(50))
    return [bytes((kind,)) + compress(kind, plain) for kind in Compression]


def with_length_and_crc(batch: bytes) -> bytes:
    """The same with the length and the CRC that a batch of these bytes has."""
    patched = bytearray(batch)
    _LENGTH.pack_into(patched, 8, len(batch) - LENGTH_OVERHEAD)
    _CRC.pack_into(patched, 17, crc32c(memoryview(patched)[ATTRIBUTES_OFFSET:]))
    return bytes(patched)


def _every_version() -> list[tuple[ApiKey, int]]:
    return [
        (ApiKey(key), version) for key, api in APIS.items() for version in range(api.min_version, api.max_version + 1)
    ]


def _decoded(decode: Any, version: int, data: bytes, offset: int) -> Any:
    try:
        return decode(version, data, offset)
    except CorruptData:
        return None


def _assert_same_produce(by_hand: Any, request: Any) -> None:
    assert by_hand.acks == request.acks
    assert by_hand.timeout_ms == request.timeout.total_seconds() * 1000
    assert by_hand.transactional_id == request.transactional_id
    assert [
        (
            topic.name or "",
            topic.topic_id,
            [(index, None if raw is None else bytes(raw)) for index, raw in topic.partitions],
        )
        for topic in by_hand.topics
    ] == [
        (_name(topic, "name"), _id(topic), [(partition.index, partition.records) for partition in topic.partition_data])
        for topic in request.topic_data
    ]


def _assert_same_single(version: int, data: bytes, offset: int, by_hand: Any) -> None:
    """The short cut for one partition takes nothing else than the whole reader takes."""
    single = read_single_produce(version, data, offset)
    if single is None:
        return
    acks, timeout_ms, _, name, index, batch = single
    assert by_hand is not None
    (topic,) = by_hand.topics
    assert (by_hand.transactional_id, by_hand.acks, by_hand.timeout_ms) == (None, acks, timeout_ms)
    assert (topic.name, topic.partitions) == (name, ((index, batch),))


def _assert_same_fetch(by_hand: Any, request: Any) -> None:
    assert by_hand.max_bytes == request.max_bytes
    assert by_hand.session_id == request.session_id
    assert by_hand.session_epoch == request.session_epoch
    assert by_hand.rack_id == (request.rack_id or "")
    assert [_fetch_topic(topic) for topic in by_hand.topics] == [
        (
            _name(topic, "topic"),
            _id(topic),
            [
                (
                    one.partition,
                    one.fetch_offset,
                    one.current_leader_epoch,
                    one.last_fetched_epoch,
                    one.partition_max_bytes,
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]


def _fetch_topic(topic: Any) -> tuple[str, UUID | None, list[Any]]:
    fields = [
        (
            one.partition_index,
            one.fetch_offset,
            one.current_leader_epoch,
            one.last_fetched_epoch,
            one.partition_max_bytes,
        )
        for one in topic.partitions
    ]
    return topic.name or "", topic.topic_id, fields


def _name(topic: Any, field: str) -> str:
    """kio's class of a version has the name, the id, or both."""
    return getattr(topic, field, None) or ""


def _id(topic: Any) -> UUID | None:
    found: UUID | None = getattr(topic, "topic_id", None)
    return found


def _assert_readable(batch: bytes, header: BatchHeader, config: LogConfig) -> None:
    """Where records were opened to be judged, their reader gets what was judged."""
    records = list(read_records(batch, header))
    assert len(records) == header.record_count
    for record in records:
        assert record.key is not None or not config.is_compacted
