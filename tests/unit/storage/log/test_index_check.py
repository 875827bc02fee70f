"""Whether indexes say what batches say: the one rule of scrubbing and of `penstock log verify`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.protocol.batches import BatchHeader, read_header
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.aborted_transaction import AbortedTransaction
from penstock.storage.log.rules.index_check import OffsetIndexCheck, TimeIndexCheck, aborted_faults


def header(base_offset: int, count: int, timestamp: int) -> BatchHeader:
    records = [Record(number, timestamp, None, b"") for number in range(count)]
    data = bytearray(write_batch(records))
    data[:8] = base_offset.to_bytes(8, "big")
    return read_header(bytes(data), 0)


BATCHES = [(0, header(0, 2, 100)), (80, header(2, 1, 300)), (150, header(3, 4, 200)), (260, header(7, 1, 400))]
"""With their positions."""


def offset_faults(entries: Sequence[tuple[int, int]], interval_bytes: int | None = None) -> list[str]:
    faults: list[str] = []
    check = OffsetIndexCheck(entries, faults.append)
    for position, batch in BATCHES:
        check.add(position, batch)
    check.end(interval_bytes=interval_bytes)
    return faults


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([(6, 80), (2, 150)], "follows the one of offset 6"),
        ([(2, 81)], "where no intact batch begins"),
        ([(4, 80)], "where the batch ends with offset 2"),
        ([(1, 80)], "where the batch ends with offset 2"),
        ([(9, 260)], "where the batch ends with offset 7"),
        ([(7, 300)], "behind the last intact batch"),
    ],
)
def test_an_offset_entry_is_where_a_batch_begins_and_where_it_or_one_behind_it_ends(
    entries: Sequence[tuple[int, int]], sentence: str
) -> None:
    (fault,) = offset_faults(entries)
    assert sentence in fault


def test_offset_entries_of_several_batches_that_arrived_together_are_right() -> None:
    # Kafka: where the first of them begins and the last ends.
    assert not offset_faults([(6, 80), (7, 260)])


@pytest.mark.parametrize(("interval_bytes", "count"), [(None, 0), (260, 0), (259, 1)])
def test_no_offset_entry_is_a_fault_where_there_is_to_be_one(interval_bytes: int | None, count: int) -> None:
    assert len(offset_faults([], interval_bytes)) == count


@pytest.mark.parametrize(
    ("entries", "is_closed", "sentences"),
    [
        ([(100, 1), (300, 2), (400, 7)], True, []),
        ([(100, 1), (300, 2)], False, []),
        ([(100, 1), (300, 2)], True, ["the segment has records up to 400"]),
        ([(300, 2), (100, 6), (400, 7)], True, ["follows the one of timestamp 300"]),
        ([(200, 2), (400, 7)], True, ["whose batch has the timestamp 300"]),
        ([(200, 6), (400, 7)], True, ["there is a record of timestamp 300"]),
        ([(100, 1), (300, 2), (400, 8)], True, ["which the segment does not have"]),
    ],
)
def test_a_time_entry_is_the_largest_timestamp_up_to_its_batch(
    entries: Sequence[tuple[int, int]], sentences: Sequence[str], *, is_closed: bool
) -> None:
    faults: list[str] = []
    check = TimeIndexCheck(entries, faults.append)
    for _, batch in BATCHES:
        check.add(batch)
    check.end(is_closed=is_closed)
    assert len(faults) == len(sentences)
    assert all(sentence in fault for sentence, fault in zip(sentences, faults, strict=True))


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ((7, 10, 20), None),
        # Compaction has taken the first batches of the transaction.
        ((7, 8, 20), None),
        ((7, 12, 20), "begins at 10, not at 12"),
        ((7, 10, 21), "aborts no transaction"),
        ((8, 10, 20), "aborts no transaction"),
    ],
)
def test_an_aborted_transaction_has_its_marker_and_begins_no_later_than_its_batches(
    entry: tuple[int, int, int], sentence: str | None
) -> None:
    aborted = [AbortedTransaction(7, 10, 20, -1)]
    faults = list(aborted_faults([AbortedTransaction(*entry, -1)], aborted, is_complete=False))
    assert [sentence in fault for fault in faults if sentence] == ([True] if sentence else [])
    assert len(faults) == (sentence is not None)


def test_an_aborted_transaction_without_an_entry_is_a_fault_where_its_batches_are_left() -> None:
    aborted = [AbortedTransaction(7, 10, 20, -1), AbortedTransaction(8, -1, 25, -1)]
    (fault,) = aborted_faults([], aborted, is_complete=True)
    assert "readers would take it for committed" in fault
    assert not list(aborted_faults([], aborted, is_complete=False))
