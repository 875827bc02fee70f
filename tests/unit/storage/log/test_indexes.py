"""Offset, time and transaction index of a segment."""

from bisect import bisect_right
from pathlib import Path
from random import Random

import pytest

from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.index_file import CorruptIndex
from penstock.storage.log.offset_index import OffsetIndex
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.time_index import TimeIndex
from penstock.storage.log.transaction_index import TransactionIndex

BASE = 10_000_000_000


def filled(path: str, count: int, *, written: int) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    """An index of `count` entries, `written` of them in the file."""
    random = Random(count)
    index = OffsetIndex(DiskFiles(), path, BASE)
    entries = []
    offset, position = BASE, 0
    for number in range(count):
        offset += random.randrange(1, 9)
        index.append_entry(offset, position)
        entries.append((offset, position))
        position += random.randrange(61, 9000)
        if number + 1 == written:
            index.write_pending()
    return index, entries


@pytest.mark.parametrize(
    ("count", "written"), [(0, 0), (1, 0), (1, 1), (60, 30), (1000, 1000), (1000, 990), (129, 128)]
)
def test_offset_lookup_gives_the_last_entry_at_or_before(tmp_path: Path, count: int, written: int) -> None:
    index, entries = filled(f"{tmp_path}/i", count, written=written)
    offsets = [offset for offset, _ in entries]
    last = offsets[-1] if offsets else BASE
    random = Random(1)
    wanted = [BASE, last, last + 1, *(random.randrange(BASE, last + 10) for _ in range(300))]
    # Both like readers that go on where they were, and back and forth.
    for offset in sorted(wanted) + wanted:
        slot = bisect_right(offsets, offset) - 1
        assert index.lookup(offset) == (0 if slot < 0 else entries[slot][1])


def test_asking_an_index_without_entries_makes_no_file(tmp_path: Path) -> None:
    index = OffsetIndex(DiskFiles(), f"{tmp_path}/i", BASE)
    assert index.lookup(BASE) == 0
    assert index.offset_behind(0) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("written", [0, 50, 300])
@pytest.mark.parametrize("kept", [0, 1, 49, 50, 51, 299])
def test_offset_index_truncates_what_is_at_or_after_an_offset(tmp_path: Path, written: int, kept: int) -> None:
    index, entries = filled(f"{tmp_path}/i", 300, written=written)
    index.lookup(entries[200][0])
    index.truncate_to(entries[kept][0])
    assert index.count == kept
    assert index.lookup(BASE + 10**9) == (entries[kept - 1][1] if kept else 0)
    index.append_entry(entries[kept][0], entries[kept][1])
    assert index.lookup(entries[kept][0]) == entries[kept][1]


def test_offset_index_is_full_at_its_size(tmp_path: Path) -> None:
    index, _ = filled(f"{tmp_path}/i", 3, written=3)
    assert not index.is_full(32)
    assert index.is_full(31)


def test_index_that_ends_in_preallocated_zeros_is_corrupt(tmp_path: Path) -> None:
    index, entries = filled(f"{tmp_path}/i", 3, written=3)
    index.check(entries[-1][1] + 100)
    with pytest.raises(CorruptIndex):
        index.check(entries[-1][1])
    index.file.append((bytes(16),))
    with pytest.raises(CorruptIndex):
        OffsetIndex(DiskFiles(), f"{tmp_path}/i", BASE).check(10**6)


def test_index_of_a_broken_size_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "i").write_bytes(bytes(9))
    with pytest.raises(CorruptIndex):
        OffsetIndex(DiskFiles(), f"{tmp_path}/i", 0)


def test_time_index_takes_rising_timestamps_only(tmp_path: Path) -> None:
    index = TimeIndex(DiskFiles(), f"{tmp_path}/t", BASE)
    assert index.last() == (-1, BASE)
    for timestamp, offset in [(-1, BASE), (100, BASE + 5), (100, BASE + 9), (90, BASE + 10), (200, BASE + 20)]:
        index.append_entry(timestamp, offset)
    index.write_pending()
    assert index.count == 2
    assert index.last() == (200, BASE + 20)
    assert [index.lookup(time) for time in (99, 100, 199, 200)] == [BASE, BASE + 5, BASE + 5, BASE + 20]
    assert (tmp_path / "t").read_bytes() == bytes.fromhex("00000000000000640000000500000000000000c800000014")


def test_time_index_keeps_its_last_slot_for_the_end_of_the_segment(tmp_path: Path) -> None:
    index = TimeIndex(DiskFiles(), f"{tmp_path}/t", 0)
    index.append_entry(1, 1)
    assert not index.is_full(36)
    assert index.is_full(35)


def test_time_index_truncates_by_offset(tmp_path: Path) -> None:
    index = TimeIndex(DiskFiles(), f"{tmp_path}/t", BASE)
    for number in range(10):
        index.append_entry(number, BASE + number * 10)
    index.truncate_to(BASE + 50)
    assert index.last() == (4, BASE + 40)
    index.append_entry(5, BASE + 41)
    assert index.last() == (5, BASE + 41)


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first, last, stable)


def test_transaction_index_finds_what_overlaps_and_says_when_to_stop(tmp_path: Path) -> None:
    index = TransactionIndex(DiskFiles(), f"{tmp_path}/x")
    entries = [aborted(1, 0, 10, 5), aborted(2, 5, 30, 31), aborted(3, 40, 50, 51)]
    for entry in entries:
        index.append(entry)
    assert not (tmp_path / "x").exists()
    index.write_pending()
    again = TransactionIndex(DiskFiles(), f"{tmp_path}/x")
    assert index.entries == again.entries == entries
    assert again.collect(0, 5) == ([entries[0]], True)
    assert again.collect(0, 6) == (entries[:2], True)
    assert again.collect(11, 100) == (entries[1:], False)
    assert again.collect(31, 40) == ([], True)


def test_transaction_index_has_no_file_without_entries(tmp_path: Path) -> None:
    index = TransactionIndex(DiskFiles(), f"{tmp_path}/x")
    assert index.collect(0, 10) == ([], False)
    index.truncate_to(5)
    assert index.file_if_any() is None
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("written", range(4))
def test_transaction_index_truncates_by_marker(tmp_path: Path, written: int) -> None:
    index = TransactionIndex(DiskFiles(), f"{tmp_path}/x")
    for number in range(3):
        if number == written:
            index.write_pending()
        index.append(aborted(number, number * 10, number * 10 + 5, number * 10 + 6))
    if written == 3:
        index.write_pending()
    index.truncate_to(15)
    index.append(aborted(3, 15, 20, 21))
    index.write_pending()
    again = TransactionIndex(DiskFiles(), f"{tmp_path}/x")
    assert [entry.last_offset for entry in index.entries] == [5, 20]
    assert again.entries == index.entries


def test_transaction_index_is_to_be_written_before_long(tmp_path: Path) -> None:
    index = TransactionIndex(DiskFiles(), f"{tmp_path}/x")
    is_due = []
    for number in range(64):
        index.append(aborted(number, number, number, number + 1))
        is_due.append(index.is_write_due)
    index.write_pending()
    is_due.append(index.is_write_due)
    assert is_due == [False] * 63 + [True, False]
    assert TransactionIndex(DiskFiles(), f"{tmp_path}/x").entries == index.entries


@pytest.mark.parametrize("data", [bytes(33), b"\0\1" + bytes(32), bytes(68)])
def test_impossible_transaction_index_is_corrupt(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CorruptIndex):
        _ = TransactionIndex(DiskFiles(), f"{tmp_path}/x").entries
