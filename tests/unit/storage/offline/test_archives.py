"""`penstock log export` and `import`: a partition's records reach another cluster as they are, or not at all."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from uuid import UUID

import pytest
from closed_logs import COMPACTED, FOLDER, stopped_node, write_transaction
from node_disk import NOW_MS, TOPIC_ID, NodeDisk, node_disk
from produced_batches import produced

from penstock.protocol.batches import BatchHeader, iterate_headers
from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.inspection.folder_check import check_log_directory
from penstock.storage.inspection.rules.report import Report
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.file_names import offsets_with
from penstock.storage.log.rules.transaction_verification import UNVERIFIED
from penstock.storage.offline.closed_directory import OfflineError, closed_partition
from penstock.storage.offline.folder_compaction import compact_folder
from penstock.storage.offline.partition_export import export_partition, export_source
from penstock.storage.offline.partition_import import PartitionImport, import_partition
from penstock.storage.offline.rules.manifest import Manifest

ARCHIVE = "/archive.tar"
TARGET = "/data/target-0"
TARGET_ID = TopicId(UUID("0e10b269-8a74-4d65-9981-c07acf362665"))
PLAIN = LogConfig(segment_bytes=1500, index_interval_bytes=100)
Content = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def export(disk: NodeDisk, *, is_compressed: bool = False, folder: str = FOLDER) -> Manifest:
    source = export_source(disk.files, folder)
    return export_partition(disk.files, source, ARCHIVE, created_ms=NOW_MS, is_compressed=is_compressed)


def bring(disk: NodeDisk, archive: bytes) -> PartitionImport:
    if disk.files.exists(ARCHIVE):
        disk.files.remove(ARCHIVE)
    disk.files.write(ARCHIVE, archive)
    with closed_partition(disk.files, TARGET) as target:
        return import_partition(disk.files, ARCHIVE, target, PLAIN, now_ms=NOW_MS, random=Random(1))


def empty_target(disk: NodeDisk) -> None:
    """A node of another cluster that has stopped, with an empty partition."""
    disk.config = PLAIN
    disk.start()
    disk.log("target", topic_id=TARGET_ID)
    disk.log("busy", topic_id=TopicId(TOPIC_ID))
    disk.stop()


def stored(files: MemoryFiles, folder: str) -> list[tuple[BatchHeader, list[Content]]]:
    found = []
    for base in offsets_with(files.list_directory(folder), ".log"):
        data = files.read(f"{folder}/{base:020d}.log")
        for at, header in iterate_headers(data):
            records = [] if header.is_control else read_records(data[at:], header)
            found.append((header, [(*one,) for one in records]))
    return found


def contents(files: MemoryFiles, folder: str) -> list[Content]:
    return [record for _, records in stored(files, folder) for record in records]


def source_archive(*, is_compressed: bool = False) -> tuple[bytes, list[Content], Manifest]:
    """And what of it is committed."""
    with node_disk() as disk:
        stopped_node(disk)
        manifest = export(disk, is_compressed=is_compressed)
        committed = [one for one in contents(disk.files, FOLDER) if (one[0] // 4) % 3 != 1]
        return disk.files.read(ARCHIVE), committed, manifest


@pytest.mark.parametrize("is_compressed", [False, True], ids=["tar", "gzip"])
def test_records_arrive_with_offsets_timestamps_keys_and_values(*, is_compressed: bool) -> None:
    archive, committed, manifest = source_archive(is_compressed=is_compressed)
    assert (manifest.start_offset, manifest.end_offset, manifest.has_gaps) == (0, 120, False)
    with node_disk() as disk:
        empty_target(disk)
        result = bring(disk, archive)
        assert result.kept_records == len(committed)
        assert contents(disk.files, TARGET) == committed
        report = Report()
        check_log_directory(disk.files, "/data", report)
        assert report.findings == []
        assert report.totals.missing_offsets == 0
        disk.start()
        log = disk.log("target", topic_id=TARGET_ID)
        assert (log.log_start_offset, log.log_end_offset, log.damage) == (0, 120, None)
        assert log.topic_id == TARGET_ID
        assert log.last_stable_offset(120) == 120


def test_producers_transactions_and_epochs_of_the_other_cluster_stay_behind() -> None:
    archive, _, _ = source_archive()
    with node_disk() as disk:
        empty_target(disk)
        bring(disk, archive)
        for header, _ in stored(disk.files, TARGET):
            assert not header.has_producer_id
            assert not header.is_transactional
            assert not header.is_control
            assert header.partition_leader_epoch == 0
        disk.start()
        log = disk.log("target", topic_id=TARGET_ID)
        assert log.producers.entries == {}
        # A producer of the target that has an id which the archive's producer had, too.
        batch = write_batch([Record(0, NOW_MS, b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0)
        assert log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS).first_offset == 120


def open_and_decided(log: Log) -> None:
    """One that is aborted only behind the beginning of another, which stays open."""

    def begin(producer_id: int) -> None:
        batch = write_batch(
            [Record(0, NOW_MS, b"k", b"%d" % producer_id)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS, verification=UNVERIFIED)

    write_transaction(log, 0, is_commit=True)
    batch = write_batch(
        [Record(0, NOW_MS, b"k", b"aborted")],
        producer_id=5,
        producer_epoch=0,
        base_sequence=3,
        is_transactional=True,
    )
    log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS, verification=UNVERIFIED)
    begin(6)
    write_transaction(log, 4, is_commit=False)


def test_what_is_not_decided_stays_behind_and_what_was_aborted_behind_it_is_aborted() -> None:
    with node_disk() as disk:
        disk.config = COMPACTED
        disk.start()
        log = disk.log("table", topic_id=TopicId(TOPIC_ID))
        open_and_decided(log)
        disk.stop(table=log.log_end_offset)
        manifest = export(disk)
        assert manifest.end_offset == 5
        archive = disk.files.read(ARCHIVE)
    with node_disk() as disk:
        empty_target(disk)
        assert bring(disk, archive).kept_records == 3
        assert [one[0] for one in contents(disk.files, TARGET)] == [0, 1, 2]


def test_what_is_above_the_high_watermark_stays_behind() -> None:
    with node_disk() as disk:
        end_offset = stopped_node(disk)
        disk.start()
        disk.stop(table=end_offset - 9)
        assert export(disk).end_offset == end_offset - 12, "batches end there, and transactions"


def test_a_running_node_can_be_exported() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        disk.start()
        log = disk.log("table", topic_id=TopicId(TOPIC_ID))
        write_transaction(log, 90, is_commit=True, leader_epoch=3)
        assert export(disk).end_offset == 120


def test_gaps_of_a_compacted_log_are_no_lost_batches_after_a_kill() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        with closed_partition(disk.files, FOLDER) as partition:
            compact_folder(
                disk.files,
                partition,
                COMPACTED,
                high_watermark=None,
                clock_ms=lambda: NOW_MS,
                map_bytes=1 << 20,
                is_trial=False,
            )
        manifest = export(disk)
        assert manifest.has_gaps
        archive, kept = disk.files.read(ARCHIVE), contents(disk.files, FOLDER)
    with node_disk() as disk:
        empty_target(disk)
        bring(disk, archive)
        disk.start()
        disk.files.kill()
        disk.start()
        log = disk.log("target", topic_id=TARGET_ID)
        assert (log.damage, log.log_end_offset) == (None, 120)
        assert set(contents(disk.files, TARGET)) <= set(kept)


def test_records_that_were_deleted_from_the_front_stay_deleted() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        disk.start()
        disk.log("table", topic_id=TopicId(TOPIC_ID)).increment_log_start_offset(41)
        disk.stop(table=120)
        assert export(disk).start_offset == 41
        archive = disk.files.read(ARCHIVE)
    with node_disk() as disk:
        empty_target(disk)
        bring(disk, archive)
        disk.start()
        log = disk.log("target", topic_id=TARGET_ID)
        assert (log.log_start_offset, log.log_end_offset) == (41, 120)


@pytest.mark.parametrize("target", ["/data/busy-0", "/data/nothing-0"])
def test_only_an_empty_partition_that_is_there_is_a_target(target: str) -> None:
    archive, _, _ = source_archive()
    with node_disk() as disk:
        empty_target(disk)
        disk.start()
        batch = write_batch([Record(0, NOW_MS, b"k", b"v")])
        disk.log("busy").append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS)
        disk.stop()
        disk.files.write(ARCHIVE, archive)
        with pytest.raises(OfflineError), closed_partition(disk.files, target) as partition:
            import_partition(disk.files, ARCHIVE, partition, PLAIN, now_ms=NOW_MS, random=Random(1))


def test_a_folder_of_an_earlier_topic_of_that_name_is_no_target() -> None:
    """The node would set it aside at its start, and begin anew without a record."""
    archive, _, _ = source_archive()
    with node_disk() as disk:
        empty_target(disk)
        disk.files.write(ARCHIVE, archive)
        before = {name: disk.files.read(f"{TARGET}/{name}") for name in disk.names(TARGET)}
        with closed_partition(disk.files, TARGET) as target, pytest.raises(OfflineError, match="earlier topic"):
            import_partition(
                disk.files,
                ARCHIVE,
                target,
                PLAIN,
                known_topic_id=TopicId(UUID(int=77)),
                now_ms=NOW_MS,
                random=Random(1),
            )
        assert {name: disk.files.read(f"{TARGET}/{name}") for name in disk.names(TARGET)} == before


def test_a_target_whose_node_runs_is_refused() -> None:
    archive, _, _ = source_archive()
    with node_disk() as disk:
        empty_target(disk)
        disk.start()
        with pytest.raises(OfflineError, match="in use by another node"):
            bring(disk, archive)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100))
def test_an_archive_that_is_not_intact_changes_nothing(seed: int) -> None:
    archive, committed, _ = source_archive(is_compressed=seed % 3 == 0)
    random = Random(seed)
    place = random.randrange(len(archive.rstrip(b"\0")))
    if seed % 2:
        damaged = archive[:place]
    else:
        damaged = archive[:place] + bytes((archive[place] ^ 1 << random.randrange(8),)) + archive[place + 1 :]
    with node_disk() as disk:
        empty_target(disk)
        before = disk.names("/data")
        try:
            bring(disk, damaged)
        except (CorruptData, OfflineError):
            assert disk.names("/data") == before
            assert contents(disk.files, TARGET) == []
        else:
            # A bit that says nothing: of a member's time, or of padding.
            assert contents(disk.files, TARGET) == committed


@pytest.mark.parametrize("is_power_lost", [False, True], ids=["killed", "power lost"])
def test_an_end_at_any_step_leaves_all_or_nothing(*, is_power_lost: bool) -> None:
    archive, committed, _ = source_archive()
    step, is_whole, outcomes = 0, False, list[int]()
    while not is_whole:
        with node_disk() as disk:
            empty_target(disk)
            disk.files.write(ARCHIVE, archive)
            disk.files.end_process(skip=step)
            with suppress(OSError), closed_partition(disk.files, TARGET) as target:
                import_partition(disk.files, ARCHIVE, target, PLAIN, now_ms=NOW_MS, random=Random(1))
                is_whole = True
            disk.files.heal()
            if is_power_lost:
                disk.files.crash(Random(step))
            else:
                disk.files.kill()
            disk.start()
            log = disk.log("target", topic_id=TARGET_ID)
            assert log.damage is None, step
            assert log.log_end_offset in (0, 120), step
            outcomes.append(log.log_end_offset)
            assert contents(disk.files, TARGET) == (committed if log.log_end_offset else []), step
            step += 3
    assert set(outcomes) == {0, 120}
    assert outcomes[-1] == 120
