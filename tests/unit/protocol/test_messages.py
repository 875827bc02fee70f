"""Every message in every version: the bytes are those of kio's own reader and writer, and nothing is lost."""

import contextlib
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.delete_topics import v6 as delete_topics
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.find_coordinator import v6 as find_coordinator
from kio.schema.metadata.v0 import MetadataRequest as MetadataRequest0
from kio.schema.metadata.v13 import MetadataRequest
from kio.serial import entity_reader
from kio_bytes import written_by_kio

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData, ErrorCode
from penstock.protocol.messages import (
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    kio_error,
)
from penstock.protocol.primitives import STRING_SIZE_MAX
from penstock.protocol.versions import class_version

SEED = 20
RandomEntity = Callable[[Any, random.Random], Any]
Load = Callable[[int, int], Any]
KINDS = pytest.mark.parametrize("load", [load_request_schema, load_response_schema], ids=["request", "response"])
APIS_TO_TEST = pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: str(key.name))
# What these versions say beyond the latest is given up on purpose.
LOSSY = {
    *(("MetadataRequest", version) for version in (8, 9, 10)),
    *(("MetadataResponse", version) for version in (8, 9, 10)),
    *(("OffsetCommitRequest", version) for version in (2, 3, 4)),
    # An error without a sentence gets one.
    *(("FindCoordinatorResponse", version) for version in (1, 2, 3)),
}


def versions_of(key: ApiKey) -> Iterator[int]:
    return iter(range(APIS[key].min_version, APIS[key].max_version + 1))


def encode(load: Load, key: ApiKey, version: int, entity: Any) -> bytes:
    if load is load_request_schema:
        return encode_request(key, version, 7, "test", entity)[4:]
    return encode_response(key, version, 7, entity)[4:]


def decode(load: Load, key: ApiKey, version: int, frame: bytes) -> Any:
    if load is load_request_schema:
        header = decode_header(frame)
        assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (
            key,
            version,
            7,
            "test",
        )
        return decode_request(key, version, frame, header.body_offset)
    correlation_id, response = decode_response(key, version, frame)
    assert correlation_id == 7
    return response


@KINDS
@APIS_TO_TEST
def test_bytes_are_those_of_kio(key: ApiKey, load: Load, random_entity: RandomEntity) -> None:
    source = random.Random(SEED)
    for version in versions_of(key):
        entity = random_entity(load(key, version), source)
        expected = written_by_kio(entity)
        frame = encode(load, key, version, entity)
        assert frame.endswith(expected)
        assert entity_reader(type(entity))(expected, 0) == (entity, len(expected))


@KINDS
@APIS_TO_TEST
def test_nothing_is_lost_through_the_latest_class(key: ApiKey, load: Load, random_entity: RandomEntity) -> None:
    source = random.Random(SEED)
    for version in versions_of(key):
        version_class = load(key, version)
        if (version_class.__name__, version) in LOSSY:
            continue
        frame = encode(load, key, version, random_entity(version_class, source))
        entity = decode(load, key, version, frame)
        assert type(entity) is load(key, class_version(key, version))
        assert encode(load, key, version, entity) == frame


@pytest.mark.thorough
@KINDS
@APIS_TO_TEST
def test_wrong_bytes_are_corrupt_and_nothing_worse(key: ApiKey, load: Load, random_entity: RandomEntity) -> None:
    source = random.Random(SEED)
    for version in versions_of(key):
        frame = encode(load, key, version, random_entity(load(key, version), source))
        for size in {*range(min(len(frame), 20)), *(source.randrange(len(frame)) for _ in range(10))}:
            with pytest.raises(CorruptData):
                decode(load, key, version, frame[:size])
        with pytest.raises(CorruptData, match="too many"):
            # Of a change of SCRAM credentials one byte is librdkafka's.
            decode(load, key, version, frame + bytes(2 if key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS else 1))
        start = decode_header(bytes(frame)).body_offset if load is load_request_schema else 4
        for _ in range(10 if start < len(frame) else 0):
            mutated = bytearray(frame)
            for _ in range(source.randrange(1, 4)):
                mutated[source.randrange(start, len(frame))] = source.randrange(256)
            with contextlib.suppress(CorruptData):
                decode(load, key, version, bytes(mutated))


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**64 - 1))
def test_mutated_messages_are_corrupt_and_nothing_worse(seed: int, random_entity: RandomEntity) -> None:
    source = random.Random(seed)
    key = source.choice(list(ApiKey))
    version = source.choice(list(versions_of(key)))
    load: Load = source.choice((load_request_schema, load_response_schema))
    frame = bytearray(encode(load, key, version, random_entity(load(key, version), source)))
    start = decode_header(bytes(frame)).body_offset if load is load_request_schema else 4
    for _ in range(source.randrange(1, 8) if start < len(frame) else 0):
        frame[source.randrange(start, len(frame))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    with contextlib.suppress(CorruptData):
        decode(load, key, version, bytes(frame[: source.randrange(start, len(frame) + 1)]))


@pytest.mark.fuzz
@given(st.binary(max_size=64))
def test_arbitrary_headers_are_corrupt_and_nothing_worse(frame: bytes) -> None:
    try:
        decode_header(frame)
    except CorruptData:
        return


def test_a_client_id_that_is_no_text_is_shown_as_far_as_it_is() -> None:
    header = decode_header(struct.pack(">hhih", ApiKey.METADATA, 1, 1, 3) + b"a\xff\xfe")
    assert header.client_id == "a\ufffd\ufffd"


def test_the_receive_buffer_is_read_in_place() -> None:
    frame = encode_request(ApiKey.METADATA, 13, 1, None, a_metadata_request())
    received = bytearray(b"earlier" + frame + b"later")
    body = memoryview(received)[11 : 11 + len(frame) - 4]
    header = decode_header(body)
    assert header.client_id is None
    assert decode_request(ApiKey.METADATA, 13, body, header.body_offset) == a_metadata_request()


def a_metadata_request() -> MetadataRequest:
    return MetadataRequest(topics=None, allow_auto_topic_creation=True, include_topic_authorized_operations=False)


@pytest.mark.parametrize("version", [-1, 5, 999])
def test_unknown_api_versions_version_still_has_a_header(version: int) -> None:
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 42, 2) + b"me" + b"\xff\xff\xff who knows"
    header = decode_header(frame)
    assert (header.api_version, header.correlation_id, header.client_id) == (version, 42, "me")
    assert header.body_offset == len(frame)


def test_api_versions_is_answered_with_header_0_in_every_version() -> None:
    answer = ApiVersionsResponse(
        error_code=KioErrorCode.unsupported_version, api_keys=(), throttle_time=decode_zero_throttle()
    )
    assert encode_response(ApiKey.API_VERSIONS, 0, 42, answer) == struct.pack(">iihi", 10, 42, 35, 0)
    assert encode_response(ApiKey.API_VERSIONS, 3, 42, answer) == struct.pack(">iih", 12, 42, 35) + b"\x01\0\0\0\0\0"


def decode_zero_throttle() -> Any:
    _, response = decode_response(ApiKey.API_VERSIONS, 1, struct.pack(">ihii", 1, 0, 0, 0))
    return getattr(response, "throttle_time")  # noqa: B009 - a kio phantom type, of which mypy knows no constructor


@pytest.mark.parametrize(("key", "version"), [(0, 2), (0, 14), (1, 3), (4, 0), (99, 0), (-1, 0), (22, 6)])
def test_unknown_keys_and_versions_are_corrupt(key: int, version: int) -> None:
    with pytest.raises(CorruptData, match=str(version)):
        decode_header(struct.pack(">hhih", key, version, 1, -1) + bytes(20))


def test_an_announced_array_reserves_nothing() -> None:
    with pytest.raises(CorruptData, match="array of 2147483647 items"):
        decode_request(ApiKey.METADATA, 0, struct.pack(">i", 2**31 - 1), 0)
    with pytest.raises(CorruptData, match="array of 2147483646 items"):
        decode_request(ApiKey.METADATA, 9, b"\xff\xff\xff\xff\x07\0\0\0\0", 0)
    with pytest.raises(CorruptData, match="31 bits"):
        decode_request(ApiKey.METADATA, 9, b"\xff\xff\xff\xff\x0f\0\0\0\0", 0)
    with pytest.raises(CorruptData, match="longer than 5 bytes"):
        decode_request(ApiKey.METADATA, 9, b"\xff\xff\xff\xff\xff\0\0\0\0", 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    frame = encode_request(ApiKey.METADATA, 13, 1, None, a_metadata_request())[4:]
    assert frame.endswith(b"\0")
    offset = decode_header(frame).body_offset
    with_tags = frame[:-1] + b"\x02\x05\x03abc\xff\x7f\x00"
    assert decode_request(ApiKey.METADATA, 13, with_tags, offset) == a_metadata_request()


def test_strings_of_requests_longer_than_kafkas_are_corrupt() -> None:
    def decoded(size: int) -> Any:
        keys = ("me", "x" * size)
        frame = encode_request(
            ApiKey.FIND_COORDINATOR, 6, 1, None, find_coordinator.FindCoordinatorRequest(coordinator_keys=keys)
        )[4:]
        return decode_request(ApiKey.FIND_COORDINATOR, 6, frame, decode_header(frame).body_offset)

    assert len(decoded(STRING_SIZE_MAX).coordinator_keys[1]) == STRING_SIZE_MAX
    with pytest.raises(CorruptData, match="a string of 32768 bytes"):
        decoded(STRING_SIZE_MAX + 1)


def test_no_topics_means_all_of_them_in_metadata_version_0() -> None:
    everything = decode_request(ApiKey.METADATA, 0, bytes(4), 0)
    assert everything == MetadataRequest(
        topics=None, allow_auto_topic_creation=True, include_topic_authorized_operations=False
    )
    nothing = decode_request(ApiKey.METADATA, 1, bytes(4), 0)
    assert isinstance(nothing, MetadataRequest)
    assert nothing.topics == ()
    own_class = MetadataRequest0(topics=())
    assert encode_request(ApiKey.METADATA, 0, 1, None, own_class).endswith(bytes(4))


def test_older_names_of_fields_are_translated() -> None:
    deletion = decode_request(ApiKey.DELETE_TOPICS, 1, struct.pack(">ih3si", 1, 3, b"one", 500), 0)
    assert isinstance(deletion, delete_topics.DeleteTopicsRequest)
    assert [(topic.name, topic.topic_id) for topic in deletion.topics] == [("one", None)]
    search = decode_request(ApiKey.FIND_COORDINATOR, 0, struct.pack(">h2s", 2, b"me"), 0)
    assert isinstance(search, find_coordinator.FindCoordinatorRequest)
    assert (search.coordinator_keys, search.key_type) == (("me",), 0)


def test_codes_turn_into_kios() -> None:
    assert kio_error(ErrorCode.UNKNOWN_TOPIC_ID) is KioErrorCode.unknown_topic_id
    assert {kio_error(code) for code in ErrorCode} == set(KioErrorCode)


def test_librdkafka_asks_for_all_topics_with_three_bytes_left_over() -> None:
    frame = bytes.fromhex("0003000d00000003000772646b61666b61" + "00" + "00000000010000")
    header = decode_header(frame)
    request = decode_request(header.api_key, header.api_version, frame, header.body_offset)
    assert isinstance(request, MetadataRequest)
    assert request.topics is None
    with pytest.raises(CorruptData, match="followed by 4 bytes too many"):
        decode_request(header.api_key, header.api_version, frame + b"\0", header.body_offset)
