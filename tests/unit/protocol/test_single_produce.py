"""The short cut for produce requests of one partition, against the readers and writers that know every field."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import TopicId
from penstock.protocol.produce import PartitionProduceResponse, decode_produce, encode_produce_response
from penstock.protocol.single_produce import FIRST_PLAIN, encode_single_produce, read_single_produce

VERSIONS = range(APIS[ApiKey.PRODUCE].min_version, APIS[ApiKey.PRODUCE].max_version + 1)
PLAIN_VERSIONS = range(FIRST_PLAIN, VERSIONS.stop)
TOPIC_ID = TopicId(UUID(int=77))
HEAD = b"header"


def one_partition(version: int, *, name: str = "orders", index: int = 3, records: bytes = b"records") -> bytes:
    if version < 9:
        topic = len(name.encode()).to_bytes(2, "big") + name.encode()
        return b"".join(
            (
                b"\xff\xff\xff\xff\x00\x00\x75\x30\x00\x00\x00\x01",
                topic,
                b"\x00\x00\x00\x01" + index.to_bytes(4, "big") + len(records).to_bytes(4, "big") + records,
            )
        )
    topic = TOPIC_ID.bytes if version >= 13 else bytes((len(name.encode()) + 1,)) + name.encode()
    start = b"\x00\xff\xff\x00\x00\x75\x30\x02"
    return start + topic + b"\x02" + index.to_bytes(4, "big") + varint(len(records) + 1) + records + bytes(3)


def varint(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value & 0x7F | 0x80,)) + varint(value >> 7)


def agrees(version: int, body: bytes) -> bool:
    """Whether the short cut takes the request; if so, it has read what `decode_produce` reads."""
    received = memoryview(bytearray(HEAD + body))
    single = read_single_produce(version, received, len(HEAD))
    if single is None:
        return False
    acks, timeout_ms, topic_field, name, index, records = single
    request = decode_produce(version, received, len(HEAD))
    ((expected_name, expected_id, ((expected_index, expected_records),)),) = request.topics
    assert request.transactional_id is None
    assert (acks, timeout_ms) == (request.acks, request.timeout_ms)
    assert (name, index) == (expected_name, expected_index)
    assert records == expected_records
    answer = PartitionProduceResponse(index, 0, 5, -1, 0)
    assert encode_single_produce(version, 7, topic_field, *answer[:5]) == encode_produce_response(
        version, 7, [(expected_name, expected_id, [answer])]
    )
    return True


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("records_size", [0, 1, 61, 126, 127, 128, 20_000, 3_000_000])
def test_one_partition_is_read_as_the_general_reader_reads_it(version: int, records_size: int) -> None:
    assert agrees(version, one_partition(version, records=bytes(records_size))) == (version >= FIRST_PLAIN)


@pytest.mark.parametrize("version", PLAIN_VERSIONS)
def test_null_records_and_long_names_are_left_to_the_general_reader(version: int) -> None:
    body = one_partition(version, records=b"")
    null = body[:-4] + b"\xff\xff\xff\xff" if version < 9 else body[:-4] + bytes(4)
    assert decode_produce(version, null, 0).topics[0].partitions == ((3, None),)
    assert not agrees(version, null)
    if version < 13:
        assert agrees(version, one_partition(version, name="n" * 126))
        assert agrees(version, one_partition(version, name="topic-ü"))


@pytest.mark.parametrize("version", PLAIN_VERSIONS)
def test_what_is_no_request_is_not_taken(version: int) -> None:
    body = one_partition(version)
    for size in range(len(body)):
        assert not agrees(version, body[:size])
    assert not agrees(version, body + b"\0")


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**64 - 1))
def test_mutated_requests_are_read_alike_or_not_at_all(seed: int) -> None:
    source = random.Random(seed)
    version = source.choice(PLAIN_VERSIONS)
    body = bytearray(one_partition(version, records=bytes(source.randrange(300))))
    for _ in range(source.randrange(1, 4)):
        body[source.randrange(len(body))] = source.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, source.randrange(256)))
    try:
        decode_produce(version, bytes(body), 0)
    except CorruptData:
        assert read_single_produce(version, memoryview(body), 0) is None
    else:
        agrees(version, bytes(body))


@pytest.mark.parametrize("version", PLAIN_VERSIONS)
def test_answers_are_written_as_the_general_writer_writes_them(version: int) -> None:
    answer = PartitionProduceResponse(3, 87, 1234, 1_700_000_000_000, 10)
    frame = encode_produce_response(version, 7, [("orders", TOPIC_ID, [answer])], 250)
    with_message = encode_produce_response(version, 7, [("orders", TOPIC_ID, [answer._replace(error_message="")])], 250)
    # The general writer differs in the one place where the message stands: null is not empty.
    assert len(frame) == len(with_message)
    assert sum(a != b for a, b in zip(frame, with_message, strict=True)) == (1 if version >= 9 else 2)
