"""Opening the logs of a directory."""

import asyncio
from random import Random
from uuid import UUID

import pytest
from node_disk import open_directories
from produced_batches import produced

from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.log_directories import LogDirectories
from penstock.storage.directories.log_manager import LogManager
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOW_MS = 1_700_000_000_000
TOPIC_ID = TopicId(UUID(int=7))


def new_manager(files: MemoryFiles, *log_dirs: str) -> LogManager:
    directories = LogDirectories(files, log_dirs, node_id=NodeId(1), random=Random(3))
    return LogManager(files, directories, random=Random(3), steady_clock_ms=lambda: NOW_MS)


def start(files: MemoryFiles, current: UUID = TOPIC_ID) -> LogManager:
    manager = new_manager(files, "/data")
    open_directories(manager)

    async def load() -> None:
        await manager.load(
            asyncio.get_running_loop(),
            config_of=lambda _: LogConfig(),
            is_stray=lambda _topic, _partition, topic_id: topic_id not in (None, current),
        )

    asyncio.run(load())
    return manager


def append(log: Log, value: bytes) -> None:
    log.append_as_leader(produced(write_batch([Record(0, NOW_MS, None, value)])), leader_epoch=0, now_ms=NOW_MS)


@pytest.mark.parametrize("seed", range(20))
def test_what_recovery_counts_as_stored_survives_a_loss_of_power(seed: int) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    log = start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    append(log, b"synced")
    log.flush()
    append(log, b"in the page cache")
    # The process dies and comes back: the page cache is still there, and what is in it is now counted and shown.
    files.kill()
    recovered = start(files).get("orders", 0)
    assert recovered is not None
    assert recovered.log_end_offset == 2
    files.crash(Random(seed))
    after_power_loss = start(files).get("orders", 0)
    assert after_power_loss is not None
    assert after_power_loss.log_end_offset == 2


def stop(manager: LogManager) -> None:
    async def close() -> None:
        await manager.close(asyncio.get_running_loop())
        manager.directories.unlock()

    asyncio.run(close())


def syncs(files: MemoryFiles) -> int:
    return files.operation_counts["sync"] + files.operation_counts["sync_directory"]


def test_logs_are_made_and_closed_and_loaded_without_a_sync_for_each() -> None:
    counts = []
    for partitions in (1, 100):
        files = MemoryFiles(now_ms=lambda: NOW_MS)
        manager = start(files)
        for partition in range(partitions):
            log = manager.get_or_create("orders", partition, TOPIC_ID, LogConfig())
            log.assign_leader_epoch(LeaderEpoch(3))
        stop(manager)
        loaded = start(files)
        assert sum(1 for _ in loaded.logs) == partitions
        files.kill()
        assert sum(1 for _ in start(files).logs) == partitions
        counts.append(syncs(files))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("seed", range(20))
def test_indexes_of_cut_batches_do_not_come_back_by_a_loss_of_power_after_a_clean_stop(seed: int) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    manager = start(files)
    log = manager.get_or_create("orders", 0, TOPIC_ID, LogConfig(index_interval_bytes=0))
    for value in (b"first", b"second", b"third"):
        append(log, value)
    stop(manager)
    manager = start(files)
    cut = manager.get("orders", 0)
    assert cut is not None
    manager.truncate({cut: 0})
    stop(manager)
    files.crash(Random(seed))
    log = start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    assert log.log_end_offset == 0
    for suffix in ("index", "timeindex"):
        path = f"/data/orders-0/00000000000000000000.{suffix}"
        assert not files.exists(path) or files.read(path) == b""


@pytest.mark.parametrize("seed", range(50))
def test_log_that_was_synced_once_survives_a_loss_of_power_with_its_topic_id(seed: int) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    manager = start(files)
    for partition in range(2):
        manager.get_or_create("orders", partition, TOPIC_ID, LogConfig())
    log = manager.get_or_create("orders", 2, TOPIC_ID, LogConfig())
    append(log, b"synced")
    log.flush()
    files.crash(Random(seed))
    found = start(files).get("orders", 2)
    assert found is not None
    assert (found.log_end_offset, found.topic_id) == (1, TOPIC_ID)


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_log_that_a_loss_of_power_took_in_part_is_made_anew(seed: int, is_clean: bool) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    manager = start(files)
    manager.get_or_create("orders", 0, TOPIC_ID, LogConfig())
    if is_clean:
        stop(manager)
    files.crash(Random(seed))
    log = start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    append(log, b"first")
    log.flush()
    files.crash(Random(seed))
    found = start(files).get("orders", 0)
    assert found is not None
    assert (found.log_end_offset, found.topic_id, found.damage) == (1, TOPIC_ID, None)


@pytest.mark.thorough
def test_records_of_a_deleted_topic_never_come_back_in_one_of_the_same_name() -> None:
    is_set_aside = False
    for seed in range(300):
        files = MemoryFiles(now_ms=lambda: NOW_MS)
        manager = start(files)
        append(manager.get_or_create("orders", 0, TOPIC_ID, LogConfig()), b"never synced")
        manager.delete("orders", 0)
        newer = UUID(int=8)
        # The newer log is made once the older one's move is on the disk: only a loss of power before brings that back.
        if seed % 2:
            manager.get_or_create("orders", 0, TopicId(newer), LogConfig())
        files.crash(Random(seed))
        manager = start(files, newer)
        found = manager.get("orders", 0)
        assert found is None or (found.topic_id, found.log_end_offset) in {(newer, 0), (None, 0)}, seed
        assert manager.get_or_create("orders", 0, TopicId(newer), LogConfig()).topic_id == newer
        is_set_aside |= any("-stray" in name for name in files.list_directory("/data"))
    assert is_set_aside


@pytest.mark.parametrize("data", [b"", bytes(43), b"version: 0\ntopic_id: AA", b"version: 0\ntopic_id: AA" + bytes(20)])
def test_torn_partition_metadata_of_an_empty_log_is_written_again(data: bytes) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    files.write("/data/orders-0/partition.metadata", data)
    files.kill()
    assert start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig()).topic_id == TOPIC_ID
    files.kill()
    found = start(files).get("orders", 0)
    assert found is not None
    assert found.topic_id == TOPIC_ID


def test_partition_metadata_that_no_loss_of_power_leaves_takes_the_log_offline() -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    files.write("/data/orders-0/partition.metadata", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
    files.kill()
    with pytest.raises(OSError, match="version 1"):
        start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())


def test_empty_log_that_is_recovered_gets_no_index_files_until_it_has_batches() -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    files.kill()
    manager = start(files)
    assert files.list_directory("/data/orders-0") == [f"{0:020d}.log", "partition.metadata"]
    log = manager.get("orders", 0)
    assert log is not None
    append(log, b"first")
    stop(manager)
    assert f"{0:020d}.timeindex" in files.list_directory("/data/orders-0")
    found = start(files).get("orders", 0)
    assert found is not None
    assert found.log_end_offset == 1


def test_log_goes_to_the_directory_with_the_fewest() -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    manager = new_manager(files, "/a", "/b")
    open_directories(manager)
    made = [manager.get_or_create("orders", partition, TOPIC_ID, LogConfig()).directory for partition in range(4)]
    assert made == ["/a/orders-0", "/b/orders-1", "/a/orders-2", "/b/orders-3"]
    manager.delete("orders", 1)
    assert manager.get_or_create("orders", 4, TOPIC_ID, LogConfig()).directory == "/b/orders-4"


@pytest.mark.parametrize("seed", range(20))
def test_topic_id_that_is_written_again_is_synced_with_the_first_batch(seed: int) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig()).truncate_fully_and_start_at(5)
    files.write("/data/orders-0/partition.metadata", b"")
    files.kill()
    # Where a log ends above 0, it is synced when it is recovered.
    log = start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    append(log, b"first")
    log.flush()
    files.crash(Random(seed))
    found = start(files).get("orders", 0)
    assert found is not None
    assert (found.log_end_offset, found.topic_id) == (6, TOPIC_ID)
