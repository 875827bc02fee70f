"""Snapshot files of the producer state."""

from pathlib import Path

import pytest

from penstock.protocol.errors import CorruptData
from penstock.storage.files import DiskFiles
from penstock.storage.producer_entry import ProducedBatch, ProducerEntry
from penstock.storage.producer_snapshots import ProducerSnapshots, decode_snapshot, encode_snapshot
from penstock.storage.producer_state import ProducerState

# Written by Apache Kafka 4.3.1: four producers, the first three in a transaction.
GOLDEN = bytes.fromhex(
    "00019a8fbd750000000400000000000000880000000005a3000000000000170e00000006000001a1fe243873000000000000"
    "0000000016cc00000000000000890000000005a3000000000000171500000006000001a1fe24387300000000000000000000"
    "16cd000000000000008a00000000059c00000000000016f800000006000001a1fe2438720000000000000000000016ce0000"
    "00000000008b00000000059d00000000000017070000000e000001a1fe243873ffffffffffffffffffffffff"
)


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
        transaction_first_offset=open_since,
        last_batch=ProducedBatch(10, 12, 100, 102, 1000),
    )


def fields(found: ProducerEntry) -> tuple[object, ...]:
    return (
        found.producer_id,
        found.epoch,
        found.coordinator_epoch,
        found.last_timestamp,
        found.transaction_first_offset,
        found.last_batch,
        found.next_sequence,
    )


def test_snapshot_of_apache_kafka_is_read_and_written_alike() -> None:
    entries = decode_snapshot(GOLDEN, "f")
    assert encode_snapshot(entries) == GOLDEN
    assert [(entry.producer_id, entry.transaction_first_offset) for entry in entries] == [
        (136, 5836),
        (137, 5837),
        (138, 5838),
        (139, None),
    ]


def test_entries_come_back_with_their_last_batch() -> None:
    empty = ProducerEntry(9, epoch=0, last_timestamp=7)
    written = [entry(1), entry(2, open_since=50), empty]
    assert list(map(fields, decode_snapshot(encode_snapshot(written), "f"))) == list(map(fields, written))


@pytest.mark.parametrize("cut", [0, 5, 9, 20])
def test_torn_snapshot_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptData):
        decode_snapshot(encode_snapshot([entry(1)])[:cut], "f")


def test_flipped_bit_is_found() -> None:
    data = bytearray(encode_snapshot([entry(1)]))
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
    snapshots.load_latest(loaded, log_start_offset=5, end_offset=25, now_ms=1000)
    assert loaded.end_offset == 10
    assert loaded.last_stable_offset(10) == 2, "open transactions are loaded"
    assert snapshots.offsets == [10]
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000010.snapshot"]


def test_without_a_snapshot_the_state_begins_at_the_log_start(tmp_path: Path) -> None:
    loaded = state(one=entry(1))
    ProducerSnapshots(DiskFiles(), str(tmp_path), []).load_latest(loaded, log_start_offset=7, end_offset=25, now_ms=0)
    assert loaded.end_offset == 7
    assert not loaded.entries


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state(one=entry(1), two=entry(2, open_since=2))
    producers.end_offset = 10
    snapshots.take(producers)
    loaded = state()
    snapshots.load_latest(loaded, log_start_offset=0, end_offset=10, now_ms=1000 + 86_400_000)
    assert set(loaded.entries) == {2}


def test_strays_go_but_for_that_of_the_last_stop(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(DiskFiles(), str(tmp_path), [])
    producers = state()
    for offset in (5, 10, 15, 20, 25):
        producers.end_offset = offset
        snapshots.take(producers)
    snapshots.remove_strays([0, 10, 15])
    assert snapshots.offsets == [10, 15, 25]
