"""What a reader of a compacted topic, and who looks at its files, may find."""

from __future__ import annotations

import pytest

from penstock.chaos.checkers.tables import TableHistory, TableRecord, TableSend

A1 = TableSend(b"a", b"1", offset=0, acknowledged_s=1.0)
B1 = TableSend(b"b", b"2", offset=1, acknowledged_s=1.0)
A2 = TableSend(b"a", b"3", offset=2, acknowledged_s=1.0)


def read(*records: TableRecord, sends: tuple[TableSend, ...] = (A1, B1, A2), end_offset: int = 10) -> list[str]:
    history = TableHistory(list(sends))
    history.on_read("who", records, end_offset, began_s=2.0)
    return [one.split(": ")[1] for one in history.violations]


def of_files(*records: TableRecord, sends: tuple[TableSend, ...], keeps_tombstones: bool = True) -> list[str]:
    history = TableHistory(list(sends))
    return [one.partition(":")[0] for one in history.judge_files(records, keeps_tombstones=keeps_tombstones)]


def test_the_last_record_of_each_key_is_enough() -> None:
    assert read(TableRecord(1, b"b", b"2"), TableRecord(2, b"a", b"3")) == []
    assert read(TableRecord(0, b"a", b"1"), TableRecord(1, b"b", b"2"), TableRecord(2, b"a", b"3")) == []


@pytest.mark.parametrize(
    ("records", "rule"),
    [
        ([TableRecord(0, b"a", b"1"), TableRecord(1, b"b", b"2")], "LOST"),
        ([TableRecord(2, b"a", b"3"), TableRecord(1, b"b", b"2")], "ORDER"),
        ([TableRecord(1, b"b", b"2"), TableRecord(5, b"a", b"3")], "MOVED"),
        ([TableRecord(1, b"b", b"2"), TableRecord(2, b"a", b"3"), TableRecord(3, b"a", b"9")], "FOREIGN"),
    ],
)
def test_what_is_lost_moved_out_of_order_or_made_up_is_found(records: list[TableRecord], rule: str) -> None:
    assert rule in read(*records)


def test_what_lies_behind_the_end_that_was_read_to_is_not_missed() -> None:
    assert read(TableRecord(0, b"a", b"1"), TableRecord(1, b"b", b"2"), end_offset=2) == []


def test_compaction_while_one_reads_may_leave_a_key_behind_the_end_that_was_read_to() -> None:
    later = TableSend(b"a", b"5", offset=10, acknowledged_s=3.0)
    assert read(TableRecord(1, b"b", b"2"), sends=(A1, B1, A2, later)) == []
    assert read(TableRecord(1, b"b", b"2"), sends=(A1, B1, A2, later), end_offset=11) == ["LOST", "LOST"]
    aborted = TableSend(b"a", b"5", offset=10, is_aborted=True)
    assert read(TableRecord(1, b"b", b"2"), sends=(A1, B1, A2, aborted)) == ["LOST", "LOST"]
    assert of_files(TableRecord(1, b"b", b"2"), sends=(A1, B1, A2, later)) == ["LOST", "LOST", "LOST"]


def test_a_key_may_be_gone_with_a_later_tombstone() -> None:
    deleted = TableSend(b"a", None, offset=3, acknowledged_s=1.0)
    assert read(TableRecord(1, b"b", b"2"), sends=(A1, B1, A2, deleted)) == []
    unanswered = TableSend(b"a", None)
    assert read(TableRecord(1, b"b", b"2"), sends=(A1, B1, A2, unanswered)) == []
    earlier = TableSend(b"a", None, offset=1, acknowledged_s=1.0)
    assert read(sends=(A2, earlier)) == ["LOST"]


def test_records_of_an_aborted_transaction_are_for_no_reader_and_may_lie_in_files() -> None:
    aborted = TableSend(b"c", b"4", is_aborted=True)
    assert read(TableRecord(4, b"c", b"4"), sends=(aborted,)) == ["FOREIGN"]
    assert of_files(TableRecord(4, b"c", b"4"), sends=(aborted,)) == []


def test_a_value_whose_tombstone_is_gone_is_stale() -> None:
    deleted = TableSend(b"a", None, offset=3, acknowledged_s=1.0)
    assert of_files(TableRecord(0, b"a", b"1"), sends=(A1, deleted)) == ["STALE"]
    assert of_files(TableRecord(0, b"a", b"1"), sends=(A1, deleted), keeps_tombstones=False) == []
    assert of_files(TableRecord(0, b"a", b"1"), TableRecord(3, b"a", None), sends=(A1, deleted)) == []
