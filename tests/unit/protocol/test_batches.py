"""Record batch headers, against batches written by kio, an implementation of its own."""

import datetime
import io
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from penstock.protocol.batches import (
    ASSIGNED_SIZE,
    HEADER_SIZE,
    UnsupportedMagic,
    is_crc_valid,
    iterate_headers,
    next_sequence,
    read_header,
    rewrite_header,
    with_offset_and_epoch,
)
from penstock.protocol.errors import CorruptData


def a_batch(values: Sequence[bytes] = (b"one", b"two"), base_sequence: int = 7) -> bytes:
    timestamp = cast(TZAwareMicros, datetime.datetime.fromtimestamp(1_700_000_000, datetime.UTC))
    records = tuple(
        Record(attributes=i8(0), timestamp=timestamp, offset=i64(offset), key=None, value=value, headers=())
        for offset, value in enumerate(values)
    )
    buffer = io.BytesIO()
    batch = NewRecordBatch(
        producer_id=i64(4000),
        producer_epoch=i16(3),
        base_sequence=i32(base_sequence),
        records=records,
        attributes=i16(0),
    )
    write_new_batch(buffer, batch)
    return buffer.getvalue()


def test_header_fields_are_read() -> None:
    header = read_header(a_batch(), 0)
    assert (header.base_offset, header.last_offset, header.next_offset) == (0, 1, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (4000, 3, 7, 8)
    assert header.size_bytes == len(a_batch())
    assert (header.record_count, header.magic, header.compression) == (2, 2, 0)
    assert header.base_timestamp == header.max_timestamp == 1_700_000_000_000
    assert header.has_producer_id
    assert not header.is_control | header.is_transactional | header.is_log_append_time


def test_attribute_bits() -> None:
    header = read_header(a_batch(), 0)
    assert header._replace(attributes=0x04).compression == 4
    assert header._replace(attributes=0x08).is_log_append_time
    assert header._replace(attributes=0x10).is_transactional
    assert header._replace(attributes=0x20).is_control


@pytest.mark.parametrize("position", [0, 5])
def test_several_batches_are_walked_from_any_position(position: int) -> None:
    buffer = bytes(position) + a_batch() + a_batch((b"x" * 100,)) + b"rest"
    found = list(iterate_headers(memoryview(buffer), position, len(buffer) - 4))
    assert [header.record_count for _, header in found] == [2, 1]
    assert [at for at, _ in found] == [position, position + len(a_batch())]
    assert all(is_crc_valid(buffer, at, header) for at, header in found)


def test_truncated_batches_are_corrupt() -> None:
    batch = a_batch()
    for size in range(1, len(batch)):
        with pytest.raises(CorruptData):
            list(iterate_headers(batch[:size]))
        if size >= HEADER_SIZE:
            assert not is_crc_valid(batch[:size], 0, read_header(batch, 0))


@pytest.mark.fuzz
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_corrupt_or_whole_batches(buffer: bytes) -> None:
    try:
        sizes = [header.size_bytes for _, header in iterate_headers(buffer)]
    except CorruptData:
        return
    assert sum(sizes) == len(buffer)


def test_old_magic_is_told_apart() -> None:
    batch = bytearray(a_batch())
    batch[16] = 1
    with pytest.raises(UnsupportedMagic) as caught:
        read_header(batch, 0)
    assert caught.value.magic == 1


def test_length_below_a_header_is_corrupt() -> None:
    batch = bytearray(a_batch())
    batch[8:12] = (48).to_bytes(4, "big")
    with pytest.raises(CorruptData, match="length 48"):
        read_header(batch, 0)


def test_one_flipped_bit_under_the_crc_is_seen() -> None:
    batch = bytearray(a_batch())
    header = read_header(batch, 0)
    for position in range(21, len(batch)):
        batch[position] ^= 0x10
        assert not is_crc_valid(batch, 0, header)
        batch[position] ^= 0x10
    assert is_crc_valid(batch, 0, header)


def test_assigning_offset_and_epoch_leaves_the_crc_valid() -> None:
    batch = a_batch()
    header = read_header(batch, 0)
    stored = with_offset_and_epoch(1234, header.batch_length, 9) + batch[ASSIGNED_SIZE:]
    assigned = read_header(stored, 0)
    assert (assigned.base_offset, assigned.last_offset, assigned.partition_leader_epoch) == (1234, 1235, 9)
    assert is_crc_valid(stored, 0, assigned)


def test_log_append_time_rewrites_the_header_only() -> None:
    buffer = b"before" + a_batch()
    header = read_header(buffer, 6)
    rewritten = rewrite_header(buffer, 6, header, base_offset=50, leader_epoch=4, log_append_time_ms=1_800_000_000_000)
    assert len(rewritten) == HEADER_SIZE
    stored = rewritten + buffer[6 + HEADER_SIZE :]
    after = read_header(stored, 0)
    assert is_crc_valid(stored, 0, after)
    assert after.is_log_append_time
    assert after.max_timestamp == 1_800_000_000_000
    assert after == header._replace(
        base_offset=50, partition_leader_epoch=4, crc=after.crc, attributes=0x08, max_timestamp=1_800_000_000_000
    )


def test_sequences_go_on_at_zero() -> None:
    assert next_sequence(5, 3) == 8
    assert next_sequence(2**31 - 1, 1) == 0
    assert next_sequence(2**31 - 2, 3) == 1
    assert read_header(a_batch(base_sequence=2**31 - 1), 0).last_sequence == 0
    assert read_header(a_batch(base_sequence=-1), 0).last_sequence == -1
