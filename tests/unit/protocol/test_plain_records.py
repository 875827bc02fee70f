"""The quick reader of coordinators' batches finds what the reader of all batches finds, or leaves it to that one."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.batches import read_header
from penstock.protocol.compression import Compression
from penstock.protocol.errors import CorruptData
from penstock.protocol.plain_records import read_plain_records
from penstock.protocol.records import Record, read_records, write_batch

ROWS = st.lists(
    st.tuples(
        st.integers(1, 200), st.integers(-(2**40), 2**40), st.binary(max_size=200), st.none() | st.binary(max_size=400)
    ),
    min_size=1,
    max_size=200,
)
BATCHES_MAX = 100


def written(rows: list[tuple[int, int, bytes, bytes | None]], base_offset: int) -> bytes:
    records, offset = [], base_offset
    for gap, time_ms, key, value in rows:
        records.append(Record(offset, 1_700_000_000_000 + time_ms, key, value))
        offset += gap
    return write_batch(records, base_offset=base_offset)


def read_all(data: bytes, position: int) -> list[tuple[int, bytes | None, bytes | None]]:
    header = read_header(data, position)
    records = read_records(memoryview(data)[position:], header)
    return [(record.offset, record.key, record.value) for record in records]


@pytest.mark.thorough
@given(
    batches=st.lists(ROWS.filter(lambda rows: sum(gap for gap, *_ in rows) < 8_000), max_size=4),
    base_offset=st.integers(0, 2**61),
    padding=st.binary(max_size=5),
    batch_max=st.integers(1, 5),
)
def test_it_reads_what_coordinators_write(
    batches: list[list[tuple[int, int, bytes, bytes | None]]], base_offset: int, padding: bytes, batch_max: int
) -> None:
    data, offset = padding, base_offset
    expected: list[tuple[int, bytes | None, bytes | None]] = []
    end, next_offset = len(padding), base_offset
    for number, rows in enumerate(batches):
        batch = written(rows, offset)
        offset = read_header(batch, 0).next_offset
        if number < batch_max:
            expected += read_all(batch, 0)
            end, next_offset = len(data) + len(batch), offset
        data += batch
    plain = read_plain_records(data + padding, len(padding), base_offset, batch_max)
    assert plain == (expected, min(len(batches), batch_max), next_offset, end)


@given(before=ROWS, rows=ROWS | ROWS.map(lambda rows: rows[:1]), seed=st.integers(0, 2**32))
def test_damaged_batches_are_read_alike_or_left_to_the_other_reader(
    before: list[tuple[int, int, bytes, bytes | None]],
    rows: list[tuple[int, int, bytes, bytes | None]],
    seed: int,
) -> None:
    generator = Random(seed)
    whole = written(before, 7)
    next_offset = read_header(whole, 0).next_offset
    data = bytearray(written(rows, next_offset))
    for _ in range(generator.randrange(1, 4)):
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    damaged = bytes(data[: generator.choice([len(data), generator.randrange(len(data))])])
    plain = read_plain_records(whole + damaged, 0, 7, BATCHES_MAX)
    if plain.end == len(whole):
        assert plain == (read_all(whole, 0), 1, next_offset, len(whole))
    elif plain.end:
        # Of what it does not look at: timestamps.
        with suppress(CorruptData):
            assert plain.records == read_all(whole, 0) + read_all(damaged, 0)


@pytest.mark.parametrize(
    "batch",
    [
        write_batch([Record(0, 1, b"key", b"value")], compression=Compression.GZIP),
        write_batch([Record(0, 1, b"key", b"value")], producer_id=1, producer_epoch=0, is_transactional=True),
        write_batch([Record(0, 1, b"\0\0\0\1", b"")], producer_id=1, producer_epoch=0, is_control=True),
        write_batch([Record(0, 1, None, b"value")]),
        write_batch([Record(0, 1, b"key", b"." * 9_000)]),
        write_batch([Record(0, 1, b"key", b"value", (("name", b""),))]),
    ],
    ids=["compressed", "transactional", "control", "null key", "large", "headers"],
)
def test_other_batches_are_left_to_the_reader_of_all(batch: bytes) -> None:
    assert read_plain_records(batch, 0, 0, BATCHES_MAX) == ([], 0, 0, 0)


def test_a_batch_that_begins_below_the_offset_is_left_to_the_reader_of_all() -> None:
    batch = write_batch([Record(4, 1, b"a", b""), Record(5, 1, b"b", b"")], base_offset=4)
    assert read_plain_records(batch, 0, 5, BATCHES_MAX) == ([], 0, 5, 0)
