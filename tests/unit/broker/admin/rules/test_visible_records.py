"""Which records of fetched batches a consumer sees (KIP-98)."""

from __future__ import annotations

from struct import pack

import pytest

from penstock.broker.admin.rules.visible_records import visible_records
from penstock.protocol.compression import Compression
from penstock.protocol.errors import CorruptData
from penstock.protocol.records import Record, write_batch

ABORT, COMMIT = 0, 1


def batch(offset: int, *values: bytes, producer_id: int | None = None, compression: int = Compression.NONE) -> bytes:
    records = [Record(offset + place, 0, None, value) for place, value in enumerate(values)]
    if producer_id is None:
        return write_batch(records, compression=compression)
    return write_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    record = Record(offset, 0, pack(">hh", 0, kind), pack(">hi", 0, 0))
    return write_batch([record], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True)


def values_of(batches: bytes, aborted: list[tuple[int, int]], offset: int = 0, limit: int = 100) -> list[bytes]:
    found = visible_records(batches, aborted, offset, limit=limit, bytes_max=1_000)
    return [record.value or b"" for record in found.records]


def test_aborted_transactions_and_markers_are_left_out() -> None:
    batches = (
        batch(0, b"plain")
        + batch(1, b"aborted", producer_id=7)
        + batch(2, b"committed", producer_id=8)
        + marker(3, 7, ABORT)
        + batch(4, b"later", producer_id=7)
        + marker(5, 7, COMMIT)
        + marker(6, 8, COMMIT)
    )
    assert values_of(batches, [(7, 1)]) == [b"plain", b"committed", b"later"]
    # Uncommitted records are shown where that was asked for: Fetch names no aborted transactions then.
    assert values_of(batches, []) == [b"plain", b"aborted", b"committed", b"later"]
    assert visible_records(batches, [(7, 1)], 0, limit=100, bytes_max=1_000).next_offset == 7


def test_reading_begins_and_ends_inside_of_batches() -> None:
    batches = batch(0, b"a", b"b", b"c", compression=Compression.GZIP) + batch(3, b"d", b"e")
    assert values_of(batches, [], offset=1, limit=3) == [b"b", b"c", b"d"]
    found = visible_records(batches, [], 1, limit=3, bytes_max=1_000)
    assert (found.next_offset, found.size_bytes) == (4, 3)
    assert len(visible_records(batches, [], 0, limit=9, bytes_max=2).records) == 2
    assert len(visible_records(batches, [], 0, limit=9, bytes_max=0).records) == 1


def test_a_batch_that_is_cut_off_is_left_to_the_next_fetch() -> None:
    batches = batch(0, b"a") + batch(1, b"b")
    for size in range(len(batch(0, b"a")), len(batches)):
        found = visible_records(batches[:size], [], 0, limit=9, bytes_max=100)
        assert ([record.value for record in found.records], found.next_offset) == ([b"a"], 1)


def test_a_batch_that_becomes_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.broker.admin.rules.visible_records.UNCOMPRESSED_BYTES_MAX", 1_000)
    with pytest.raises(CorruptData):
        visible_records(batch(0, b"x" * 10_000, compression=Compression.GZIP), [], 0, limit=1, bytes_max=1)
