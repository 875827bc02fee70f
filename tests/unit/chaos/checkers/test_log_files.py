"""The plain reader of replicas' files finds what was written, and the rules find what must not be there."""

from __future__ import annotations

import pytest

from penstock.chaos.checkers.log_files import Marker, marker_of, read_log
from penstock.chaos.checkers.replica_files import Acknowledged, Ended, judge_copies, judge_log, transactions_of
from penstock.protocol.compression import Compression
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.rules.control_records import write_end_transaction_marker

PRODUCER = 7


def batch(offset: int, *values: bytes, epoch: int = 0, producer_epoch: int = 0, sequence: int | None = None) -> bytes:
    records = [Record(offset + place, 0, None, value) for place, value in enumerate(values)]
    if sequence is None:
        return write_batch(records, leader_epoch=epoch)
    return write_batch(
        records, leader_epoch=epoch, producer_id=PRODUCER, producer_epoch=producer_epoch, base_sequence=sequence
    )


def sent(offset: int, *values: bytes, producer_epoch: int = 0) -> bytes:
    records = [Record(offset + place, 0, None, value) for place, value in enumerate(values)]
    return write_batch(
        records, leader_epoch=0, producer_id=PRODUCER, producer_epoch=producer_epoch, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip


def marker(
    offset: int, *, is_commit: bool = True, producer_epoch: int = 0, coordinator_epoch: int = 0, epoch: int = 0
) -> bytes:  # fmt: skip
    data = write_end_transaction_marker(
        PRODUCER, producer_epoch, is_commit=is_commit, coordinator_epoch=coordinator_epoch, now_ms=0
    )
    # Offset and leader epoch are not covered by the checksum.
    return offset.to_bytes(8, "big") + data[8:12] + epoch.to_bytes(4, "big") + data[16:]


def rules(*batches: bytes) -> list[str]:
    return [sentence.partition(":")[0] for sentence in judge_log(read_log({0: b"".join(batches)}))]


def test_batches_are_read_as_they_were_written() -> None:
    log = read_log({0: batch(0, b"a", b"", epoch=3) + batch(2, b"c", epoch=4), 3: batch(3, b"d" * 300, epoch=4)})
    assert log.stopped is None
    assert [(one.base_offset, one.end_offset, one.leader_epoch) for one in log.batches] == [
        (0, 2, 3), (2, 3, 4), (3, 4, 4)
    ]  # fmt: skip
    assert [(record.offset, record.value) for one in log.batches for record in one.records or ()] == [
        (0, b"a"), (1, b""), (2, b"c"), (3, b"d" * 300)
    ]  # fmt: skip


def test_records_that_are_compressed_are_left_alone() -> None:
    data = write_batch([Record(0, 0, None, b"a")], compression=Compression.GZIP)
    assert read_log({0: data}).batches[0].records is None


@pytest.mark.parametrize("end", [-1, -30, -60])
def test_reading_stops_where_a_write_was_torn(end: int) -> None:
    log = read_log({0: (batch(0, b"a") + batch(1, b"b"))[:end]})
    assert log.end_offset == 1
    assert log.stopped is not None


def test_reading_stops_at_a_gap_between_segments_and_within_one() -> None:
    assert read_log({0: batch(0, b"a"), 2: batch(2, b"c")}).stopped == "segment 2 follows offset 1"
    assert read_log({0: batch(0, b"a") + batch(2, b"c")}).stopped == "offset 2 follows 1"


def test_a_bit_that_turned_is_found_by_the_checksum() -> None:
    data = bytearray(batch(0, b"a"))
    data[-2] ^= 1
    assert read_log({0: bytes(data)}).batches == ()


def test_a_marker_is_read_from_its_control_batch() -> None:
    log = read_log({0: marker(0, is_commit=False, coordinator_epoch=5)})
    assert marker_of(log.batches[0]) == Marker(is_commit=False, coordinator_epoch=5)


def test_a_log_of_epochs_sequences_and_markers_in_order_breaks_no_rule() -> None:
    assert rules(
        batch(0, b"a", sequence=0), batch(1, b"b", sequence=1, epoch=1), marker(2, producer_epoch=1, epoch=1),
        batch(3, b"c", sequence=0, producer_epoch=1, epoch=1),
    ) == []  # fmt: skip


def test_what_a_log_must_not_have_is_found() -> None:
    assert rules(batch(0, b"a", epoch=2), batch(1, b"b", epoch=1)) == ["EPOCHS"]
    assert rules(batch(0, b"a", sequence=0), batch(1, b"a", sequence=0)) == ["SEQUENCES"]
    assert rules(batch(0, b"a", sequence=0, producer_epoch=1), batch(1, b"b", sequence=1)) == ["SEQUENCES"]
    assert rules(batch(0, b"a", sequence=0, producer_epoch=1), marker(1)) == ["MARKERS"]
    assert rules(marker(0, coordinator_epoch=2), marker(1, coordinator_epoch=1)) == ["MARKERS"]


def test_transactions_are_what_their_markers_made_of_them() -> None:
    log = read_log({0: sent(0, b"a", b"b") + marker(2, is_commit=False) + sent(3, b"c", producer_epoch=1)})
    assert transactions_of(log) == ([Ended(is_commit=False, values=(b"a", b"b"))], [b"c"])


def copies(*logs: bytes, start: int = 0, end: int = 2, acknowledged: tuple[Acknowledged, ...] = ()) -> list[str]:
    read = {node: read_log({0: log}) for node, log in enumerate(logs, 1)}
    return [
        one.partition(":")[0]
        for one in judge_copies(read, start_offset=start, end_offset=end, acknowledged=acknowledged)
    ]


def test_replicas_agree_below_the_high_watermark_alone() -> None:
    ours = batch(0, b"a") + batch(1, b"b")
    assert copies(ours + batch(2, b"c"), ours + batch(2, b"x"), acknowledged=(Acknowledged(1, b"b"),)) == []
    assert copies(ours, batch(0, b"a") + batch(1, b"x")) == ["COPIES"]
    # What was deleted need not be anywhere.
    assert copies(batch(0, b"x") + batch(1, b"b"), ours, start=1) == []


def test_a_replica_that_ends_below_the_high_watermark_is_short() -> None:
    assert "SHORT" in copies(batch(0, b"a") + batch(1, b"b"), batch(0, b"a"))
    assert copies(b"", end=0) == []


def test_what_was_acknowledged_is_where_it_was_acknowledged() -> None:
    ours = batch(0, b"a") + batch(1, b"b")
    assert copies(ours, acknowledged=(Acknowledged(0, b"b"),))[0].startswith("MOVED")
    assert copies(ours, acknowledged=(Acknowledged(1, b"c"),))[0].startswith("LOST")
    assert copies(ours, start=1, acknowledged=(Acknowledged(0, b"c"),)) == []
