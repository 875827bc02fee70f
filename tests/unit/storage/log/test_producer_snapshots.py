"""Snapshot files of the producer state."""

from pathlib import Path

import pytest
from crc32c import crc32c

from penstock.protocol.errors import CorruptData
from penstock.storage.disk.files import DiskFiles
from penstock.storage.log.producer_snapshots import ProducerSnapshots, decode_snapshot, encode_snapshot
from penstock.storage.log.rules.producer_entry import BatchMetadata, ProducerEntry
from penstock.storage.log.rules.producer_state import ProducerState

# Written by Apache Kafka 4.3.1: four producers, the first three in a transaction.
GOLDEN = bytes.fromhex(
    "00019a8fbd750000000400000000000000880000000005a3000000000000170e00000006000001a1fe243873000000000000"
    "0000000016cc00000000000000890000000005a3000000000000171500000006000001a1fe24387300000000000000000000"
    "16cd000000000000008a00000000059c00000000000016f800000006000001a1fe2438720000000000000000000016ce0000"
    "00000000008b00000000059d00000000000017070000000e000001a1fe243873ffffffffffffffffffffffff"
)
CRC_END = 6


def state(**entries: ProducerEntry) -> ProducerState:
    producers = ProducerState("events-0", 86_400_000)
    for entry in entries.values():
        producers.entries[entry.producer_id] = entry
    return producers


def entry(producer_id: int, *, open_since: int | None = None) -> ProducerEntry:
    return ProducerEntry(
        producer_id,
        epoch=3,
        coordinator_epoch=5,
        last_timestamp=1000,
        appended_ms=2000,
        transaction_first_offset=open_since,
        batches=[BatchMetadata(8, 9, 90, 91, 900), BatchMetadata(10, 12, 100, 102, 1000)],
    )


def fields(found: ProducerEntry) -> tuple[object, ...]:
    return (
        found.producer_id,
        found.epoch,
        found.coordinator_epoch,
        found.last_timestamp,
        found.transaction_first_offset,
        found.appended_ms,
        found.batches,
        found.next_sequence,
    )


def test_snapshot_of_apache_kafka_is_read_and_written_alike() -> None:
    entries, completed, has_tail = decode_snapshot(GOLDEN, "f")
    assert (completed, has_tail) == ({}, False)
    assert encode_snapshot(entries, {})[CRC_END : len(GOLDEN)] == GOLDEN[CRC_END:]
    assert [(entry.producer_id, entry.transaction_first_offset) for entry in entries] == [
        (136, 5836),
        (137, 5837),
        (138, 5838),
        (139, None),
    ]


def test_entries_come_back_with_all_their_batches_and_the_completed_transactions() -> None:
    empty = ProducerEntry(9, epoch=0, last_timestamp=7, appended_ms=3)
    written = [entry(1), entry(2, open_since=50), empty]
    read = decode_snapshot(encode_snapshot(written, {60: 70, 55: 71}), "f")
    assert list(map(fields, read.entries)) == list(map(fields, written))
    assert list(read.completed.items()) == [(60, 70), (55, 71)]


@pytest.mark.parametrize("cut", [0, 5, 9, 20, CRC_END + 4 + 46, -1])
def test_torn_snapshot_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptData):
        decode_snapshot(encode_snapshot([entry(1)], {})[:cut], "f")


@pytest.mark.parametrize("end", range(CRC_END, 119, 7))
def test_short_body_with_its_own_crc_is_corrupt(end: int) -> None:
    """Not what a crash leaves: the lengths in a file are not trusted either."""
    whole = encode_snapshot([entry(1)], {60: 70})
    assert len(whole) > end
    body = whole[CRC_END:end]
    if len(body) != 4 + 46:
        with pytest.raises(CorruptData):
            decode_snapshot(whole[:2] + crc32c(body).to_bytes(4) + body, "f")


def test_flipped_bit_is_found() -> None:
    data = bytearray(encode_snapshot([entry(1)], {}))
    data[-1] ^= 1
    with pytest.raises(CorruptData):
        decode_snapshot(bytes(data), "f")


def test_snapshot_is_taken_once_for_an_offset(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state(one=entry(1))
    snapshots.take(producers)
    assert snapshots.offsets == [], "an empty log needs none"
    producers.end_offset = 103
    snapshots.take(producers)
    snapshots.take(producers)
    assert snapshots.offsets == [103]
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000103.snapshot"]


def test_latest_intact_snapshot_in_range_is_loaded_and_others_removed(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state(one=entry(1, open_since=2))
    for offset in (5, 10, 20, 30):
        producers.end_offset = offset
        snapshots.take(producers)
    (tmp_path / "00000000000000000020.snapshot").write_bytes(b"torn")
    loaded = state()
    snapshots.load_latest(loaded, start_offset=6, end_offset=25, now_ms=2000)
    assert loaded.end_offset == 10
    assert loaded.last_stable_offset(10) == 2, "open transactions are loaded"
    assert snapshots.offsets == [10]
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000010.snapshot"]


def test_without_a_snapshot_the_state_begins_at_the_log_start(tmp_path: Path) -> None:
    loaded = state(one=entry(1))
    ProducerSnapshots(DiskFiles(), str(tmp_path), []).load_latest(loaded, start_offset=7, end_offset=25, now_ms=0)
    assert loaded.end_offset == 7
    assert not loaded.entries


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state(one=entry(1), two=entry(2, open_since=2))
    producers.end_offset = 10
    snapshots.take(producers)
    loaded = state()
    snapshots.load_latest(loaded, start_offset=0, end_offset=10, now_ms=2000 + 86_400_000)
    assert set(loaded.entries) == {2}


def test_an_append_of_an_unknown_time_or_one_ahead_of_the_clock_counts_as_one_of_now(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000010.snapshot").write_bytes(GOLDEN)
    loaded = state()
    ProducerSnapshots(DiskFiles(), str(tmp_path), [10]).load_latest(loaded, start_offset=0, end_offset=10, now_ms=5000)
    assert {one.appended_ms for one in loaded.entries.values()} == {5000}
    loaded.load([entry(1)], {}, 10, 1500)
    assert loaded.entries[1].appended_ms == 1500


def test_a_snapshot_without_a_tail_is_passed_over_where_the_batches_say_more(tmp_path: Path) -> None:
    for offset in (10, 20):
        (tmp_path / f"{offset:020}.snapshot").write_bytes(GOLDEN)
    loaded = state()
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [10, 20])
    snapshots.load_latest(loaded, start_offset=0, end_offset=20, now_ms=0, tail_needed_above=10)
    assert loaded.end_offset == 10
    assert snapshots.offsets == [10]


@pytest.mark.parametrize("damage", [b"torn", None], ids=["damaged", "gone"])
def test_a_snapshot_that_was_synced_and_is_damaged_since_is_not_taken_for_the_record_of_its_producers(
    damage: bytes | None, tmp_path: Path
) -> None:
    """Before the segments below it are deleted: then it is the only one."""
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state(one=entry(1))
    for offset in (5, 10):
        producers.end_offset = offset
        snapshots.take(producers)
        assert snapshots.sync(offset)
    path = tmp_path / "00000000000000000010.snapshot"
    assert snapshots.sync(10)
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    assert not snapshots.sync(10)
    assert snapshots.offsets == [5]
    snapshots.take(producers)
    assert snapshots.sync(10)


def test_a_snapshot_that_is_gone_is_passed_over_and_removed(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state(one=entry(1))
    for offset in (5, 10, 15):
        producers.end_offset = offset
        snapshots.take(producers)
    for offset in (10, 15):
        (tmp_path / f"{offset:020}.snapshot").unlink()
    snapshots.remove(15)
    loaded = state()
    snapshots.load_latest(loaded, start_offset=0, end_offset=20, now_ms=2000)
    assert loaded.end_offset == 5
    assert snapshots.offsets == [5]


def test_strays_go_but_for_that_of_the_last_stop(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state()
    for offset in (5, 10, 15, 20, 25):
        producers.end_offset = offset
        snapshots.take(producers)
    snapshots.remove_strays([0, 10, 15])
    assert snapshots.offsets == [10, 15, 25]
