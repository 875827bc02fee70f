"""Records inside batches, against kio's reader and writer."""

import contextlib
import io
import random
from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records import readers, schema, writers
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from penstock.protocol.batches import is_crc_valid, read_header, rewrite_header
from penstock.protocol.compression import Compression
from penstock.protocol.errors import CorruptData
from penstock.protocol.records import Record, control_type, read_records, write_batch

EVERY_TYPE = pytest.mark.parametrize("compression", list(Compression), ids=lambda one: str(one.name))
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 2**42),
        st.none() | st.binary(max_size=50),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def numbered(rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]) -> list[Record]:
    return [Record(100 + number, *row) for number, row in enumerate(rows)]


@pytest.mark.thorough
@EVERY_TYPE
@given(rows=RECORDS)
def test_what_is_written_is_read(
    compression: Compression, rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]
) -> None:
    records = numbered(rows)
    batch = write_batch(
        records, compression=compression, producer_id=4000, producer_epoch=2, base_sequence=9, leader_epoch=5
    )
    header = read_header(batch, 0)
    assert is_crc_valid(batch, 0, header)
    assert (header.base_offset, header.last_offset, header.record_count) == (100, records[-1].offset, len(records))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 2, 9)
    assert (header.partition_leader_epoch, header.compression) == (5, compression)
    assert header.max_timestamp == max(record.timestamp_ms for record in records)
    assert list(read_records(memoryview(batch), header)) == records


def test_kio_reads_what_is_written() -> None:
    records = [
        Record(7, 1_700_000_000_000, b"k", b"v", (("h", b"1"), ("i", None))),
        Record(9, 1_600_000_000_000, None, b""),
    ]
    read, size = readers.read_batch(write_batch(records, base_offset=5, is_transactional=True), 0)
    assert size == len(write_batch(records, base_offset=5))
    assert (read.base_offset, read.last_offset_delta, read.attributes) == (5, 4, 0x10)
    assert [
        Record(
            one.offset,
            int(one.timestamp.timestamp() * 1000),
            one.key,
            one.value,
            tuple(((pair.key or b"").decode(), pair.value) for pair in one.headers),
        )
        for one in read.records
    ] == records


def test_what_kio_writes_is_read() -> None:
    timestamp = cast(TZAwareMicros, datetime.fromtimestamp(1_700_000_000, UTC))
    batch = schema.NewRecordBatch(
        producer_id=i64(-1),
        producer_epoch=i16(-1),
        base_sequence=i32(-1),
        attributes=i16(0),
        records=(
            schema.Record(
                attributes=i8(0),
                timestamp=timestamp,
                offset=i64(3),
                key=b"key",
                value=None,
                headers=(schema.RecordHeader(key=b"h", value=b"x"),),
            ),
        ),
    )
    buffer = io.BytesIO()
    writers.write_new_batch(buffer, batch)
    assert list(read_records(buffer.getvalue(), read_header(buffer.getvalue(), 0))) == [
        Record(3, 1_700_000_000_000, b"key", None, (("h", b"x"),))
    ]


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = write_batch([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")])
    header = read_header(batch, 0)
    rewritten = rewrite_header(batch, 0, header, base_offset=10, leader_epoch=0, log_append_time_ms=99) + batch[61:]
    assert [(one.offset, one.timestamp_ms) for one in read_records(rewritten, read_header(rewritten, 0))] == [
        (10, 99),
        (11, 99),
    ]


def test_header_keys_that_are_not_utf_8_survive() -> None:
    key = b"\xff\xfe".decode(errors="surrogateescape")
    batch = write_batch([Record(0, 5, None, None, ((key, b""),))])
    assert next(read_records(batch, read_header(batch, 0))).headers == ((key, b""),)


@pytest.mark.fuzz
@EVERY_TYPE
@given(seed=st.integers(0, 2**64 - 1))
def test_damaged_records_are_corrupt_and_nothing_worse(compression: Compression, seed: int) -> None:
    source = random.Random(seed)
    records = [Record(n, n, source.randbytes(4), source.randbytes(9), (("h", b"x"),)) for n in range(5)]
    batch = bytearray(write_batch(records, compression=compression))
    header = read_header(batch, 0)
    for _ in range(source.randrange(1, 8)):
        batch[source.randrange(61, len(batch))] = source.randrange(256)
    with contextlib.suppress(CorruptData):
        list(read_records(batch, header))


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_wrong_count_of_records_is_corrupt(count: int) -> None:
    batch = write_batch([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")])
    with pytest.raises(CorruptData):
        list(read_records(batch, read_header(batch, 0)._replace(record_count=count)))


def test_a_timestamp_beyond_64_bits_is_corrupt() -> None:
    batch = write_batch([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")])
    header = read_header(batch, 0)
    assert len(list(read_records(batch, header._replace(base_timestamp=2**63 - 2)))) == 2
    with pytest.raises(CorruptData, match="timestamp"):
        list(read_records(batch, header._replace(base_timestamp=2**63 - 1)))


def test_an_offset_delta_beyond_32_bits_is_corrupt() -> None:
    batch = write_batch([Record(0, 5, None, b"a"), Record(2**31 - 1, 5, None, b"b")])
    assert [record.offset for record in read_records(batch, read_header(batch, 0))] == [0, 2**31 - 1]
    # The last of the five bytes of the delta: the next higher bit.
    larger = batch.replace(b"\xfe\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x1f")
    with pytest.raises(CorruptData, match="offset delta"):
        list(read_records(larger, read_header(larger, 0)))


def test_a_cut_batch_is_corrupt() -> None:
    batch = write_batch([Record(0, 5, None, b"a")])
    with pytest.raises(CorruptData, match="has only"):
        list(read_records(batch[:-1], read_header(batch, 0)))


def test_control_records_say_their_type() -> None:
    assert control_type(Record(0, 0, b"\0\0\0\1", b"")) == 1
    with pytest.raises(CorruptData, match="offset 4"):
        control_type(Record(4, 0, None, b""))
    assert read_header(write_batch([Record(0, 0, b"\0\0\0\0", b"")], is_control=True), 0).is_control
