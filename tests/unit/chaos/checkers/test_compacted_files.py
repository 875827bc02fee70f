"""What may differ between replicas whose logs are compacted, and what may not."""

from __future__ import annotations

from penstock.chaos.checkers.compacted_files import judge_compacted_copies
from penstock.chaos.checkers.log_files import PlainLog, read_log, swapped
from penstock.protocol.batches import assemble, read_header
from penstock.protocol.records import Record, write_batch


def batch(offset: int, key: bytes, value: bytes | None, *, is_transactional: bool = False) -> bytes:
    records = [Record(offset, 0, key, value)]
    if not is_transactional:
        return write_batch(records, leader_epoch=0)
    return write_batch(
        records, leader_epoch=0, producer_id=7, producer_epoch=0, base_sequence=offset, is_transactional=True
    )


def emptied(offset: int) -> bytes:
    return assemble(read_header(batch(offset, b"", b""), 0)._replace(record_count=0), b"")


def compacted(*batches: bytes) -> PlainLog:
    return read_log({0: b"".join(batches)}, is_compacted=True)


def rules(*logs: PlainLog, end_offset: int = 4, keeps_tombstones: bool = True) -> list[str]:
    judged = judge_compacted_copies(
        dict(enumerate(logs)), end_offset=end_offset, keeps_tombstones=keeps_tombstones
    )  # fmt: skip
    return [sentence.removeprefix("node 1: ").partition(":")[0] for sentence in judged]


WHOLE = (batch(0, b"a", b"1"), batch(1, b"b", b"2"), batch(2, b"a", b"3"), batch(3, b"c", b"4"))


def test_superseded_records_may_be_gone_from_one_replica_and_not_from_another() -> None:
    assert rules(compacted(*WHOLE), compacted(*WHOLE[1:])) == []
    assert rules(compacted(*WHOLE), compacted(emptied(0), *WHOLE[1:])) == []


def test_gaps_are_no_damage_in_a_compacted_log_alone() -> None:
    assert compacted(WHOLE[0], WHOLE[3]).end_offset == 4
    assert read_log({0: WHOLE[0] + WHOLE[3]}).end_offset == 1
    assert read_log({0: WHOLE[0], 3: WHOLE[3]}, is_compacted=True).end_offset == 4
    assert read_log({0: WHOLE[3] + WHOLE[0]}, is_compacted=True).end_offset == 4


def test_a_last_value_that_one_replica_lacks_is_found() -> None:
    assert rules(compacted(*WHOLE), compacted(*WHOLE[:1], *WHOLE[2:])) == ["COPIES"]
    assert rules(compacted(*WHOLE), compacted(*WHOLE[:2], WHOLE[3])) == ["COPIES"]


def test_records_that_differ_at_one_offset_are_found() -> None:
    assert "COPIES" in rules(compacted(*WHOLE), compacted(batch(0, b"a", b"x"), *WHOLE[1:]))


def test_a_log_that_ends_early_is_found() -> None:
    assert "SHORT" in rules(compacted(*WHOLE), compacted(*WHOLE[:3]))


def test_a_tombstone_may_be_gone_with_what_it_deletes() -> None:
    deleted = (*WHOLE[:2], batch(2, b"a", None), WHOLE[3])
    assert rules(compacted(*deleted), compacted(WHOLE[1], WHOLE[3])) == []
    resurrected = compacted(WHOLE[0], WHOLE[1], WHOLE[3])
    assert rules(compacted(*deleted), resurrected) == ["COPIES"]
    assert rules(compacted(*deleted), resurrected, keeps_tombstones=False) == []


def test_what_was_aborted_may_be_gone_from_one_replica() -> None:
    aborted = batch(2, b"a", b"3", is_transactional=True)
    assert rules(compacted(*WHOLE[:2], aborted, WHOLE[3]), compacted(*WHOLE[:2], WHOLE[3])) == []


def test_a_swap_that_was_begun_counts_as_a_start_will_have_it() -> None:
    segments = {0: WHOLE[0] + WHOLE[1], 2: WHOLE[2], 3: WHOLE[3]}
    swap = WHOLE[1] + WHOLE[2]
    assert swapped(segments, {0: swap}) == {0: swap, 3: WHOLE[3]}
    assert swapped({3: WHOLE[3]}, {0: swap}) == {0: swap, 3: WHOLE[3]}
