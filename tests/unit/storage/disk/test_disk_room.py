"""Records leave the reserve of a disk alone, and go on as soon as there is more than that."""

from __future__ import annotations

import pytest
from produced_batches import produced

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.storage.disk.disk_room import DEFAULT_RESERVE_BYTES, DiskRoom
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

MIB = 1024 * 1024


def disk(capacity_bytes: int) -> MemoryFiles:
    files = MemoryFiles(capacity_bytes=capacity_bytes)
    files.make_directories("/data")
    return files


def test_appends_stop_at_the_reserve_and_go_on_with_room() -> None:
    files = disk(10 * MIB)
    room = DiskRoom(files, "/data", 4 * MIB)
    taken = 0
    while room.take(MIB // 2):
        files.write(f"/data/{taken}", bytes(MIB // 2))
        taken += 1
    assert taken == 12
    assert not room.take(1)
    files.remove("/data/0")
    assert room.take(MIB // 2)
    assert not room.take(MIB // 2 + 1)


def test_what_others_write_is_noticed_after_a_quarter_of_the_reserve() -> None:
    files = disk(10 * MIB)
    room = DiskRoom(files, "/data", 4 * MIB)
    assert room.take(1)
    files.write("/data/other", bytes(6 * MIB))
    assert room.take(MIB - 1)
    assert not room.take(1)


@pytest.mark.parametrize(
    ("capacity_bytes", "reserve_bytes"), [(100 * MIB, 10 * MIB), (100 * 1024 * MIB, DEFAULT_RESERVE_BYTES)]
)
def test_default_reserve_leaves_small_disks_of_use(capacity_bytes: int, reserve_bytes: int) -> None:
    files = disk(0)
    files.capacity_bytes = capacity_bytes
    room = DiskRoom(files, "/data", -1)
    assert room.take(capacity_bytes - reserve_bytes)
    assert not room.take(1 << 40)


def test_without_a_reserve_the_disk_itself_says_when_it_is_full() -> None:
    assert DiskRoom(disk(10), "/data", 0).take(MIB)


def test_log_refuses_records_and_answers_duplicates_without_room() -> None:
    files = disk(10 * MIB)
    log = Log.open(
        files,
        "/data/orders-0",
        topic="orders",
        partition=0,
        topic_id=None,
        config=LogConfig(),
        is_clean=True,
        now_ms=0,
        room=DiskRoom(files, "/data", 4 * MIB),
    )
    record = [Record(offset=0, timestamp_ms=0, key=None, value=b"x")]
    first, second = (write_batch(record, producer_id=1, producer_epoch=0, base_sequence=n) for n in (0, 1))
    log.append_as_leader(produced(first), leader_epoch=0, now_ms=0)
    files.write("/data/other", bytes(6 * MIB))
    large = write_batch([Record(offset=0, timestamp_ms=0, key=None, value=bytes(900_000))])
    log.append_as_leader(produced(large), leader_epoch=0, now_ms=0)
    with pytest.raises(KafkaError) as raised:
        log.append_as_leader(produced(large), leader_epoch=0, now_ms=0)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.append_as_leader(produced(first), leader_epoch=0, now_ms=0).is_duplicate
    end_offset = log.log_end_offset
    files.remove("/data/other")
    assert log.append_as_leader(produced(second), leader_epoch=0, now_ms=0).first_offset == end_offset
