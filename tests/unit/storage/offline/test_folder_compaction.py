"""`penstock log compact`: a folder that no node uses is compacted as by a node, and an end anywhere loses nothing."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from closed_logs import COMPACTED, FOLDER, stopped_node
from node_disk import NOW_MS, TOPIC_ID, NodeDisk, node_disk

from penstock.protocol.batches import iterate_headers
from penstock.protocol.ids import TopicId
from penstock.protocol.records import read_records
from penstock.storage.directories.rules.checkpoints import CLEANER_OFFSETS
from penstock.storage.inspection.folder_check import check_log_directory
from penstock.storage.inspection.rules.report import Report
from penstock.storage.log.rules.file_names import offsets_with
from penstock.storage.offline.closed_directory import OfflineError, closed_partition
from penstock.storage.offline.folder_compaction import FolderCompaction, compact_folder

LARGER = replace(COMPACTED, segment_bytes=2000)


def compact(
    disk: NodeDisk, *, is_trial: bool = False, high_watermark: int | None = None, path: str = FOLDER
) -> FolderCompaction:
    with closed_partition(disk.files, path) as partition:
        return compact_folder(
            disk.files,
            partition,
            LARGER,
            high_watermark=high_watermark,
            clock_ms=lambda: NOW_MS,
            map_bytes=1 << 20,
            is_trial=is_trial,
        )


def contents(disk: NodeDisk) -> dict[str, bytes]:
    return {name: disk.files.read(f"{FOLDER}/{name}") for name in disk.names(FOLDER)}


def records(disk: NodeDisk) -> list[tuple[int, bytes | None, bytes | None]]:
    found = []
    for base in offsets_with(disk.names(FOLDER), ".log"):
        data = disk.files.read(f"{FOLDER}/{base:020d}.log")
        for at, header in iterate_headers(data):
            if not header.is_control:
                found += [(one.offset, one.key, one.value) for one in read_records(data[at:], header)]
    return found


def test_the_latest_committed_value_of_each_key_stays_and_the_node_goes_on() -> None:
    with node_disk() as disk:
        end_offset = stopped_node(disk)
        active = offsets_with(disk.names(FOLDER), ".log")[-1]
        would = compact(disk, is_trial=True)
        done = compact(disk)
        assert done == would
        assert done.after.bytes < done.before.bytes
        assert done.after.segments < done.before.segments
        assert done.end_offset == active
        closed = [one for one in records(disk) if one[0] < active]
        assert sorted(key or b"" for _, key, _ in closed) == [b"key-0", b"key-1"]
        report = Report()
        check_log_directory(disk.files, "/data", report)
        assert report.findings == []
        assert compact(disk).passes == 0, "nothing is left to do"
        disk.start()
        log = disk.log("table", topic_id=TopicId(TOPIC_ID))
        assert (log.damage, log.log_end_offset) == (None, end_offset)
        assert disk.manager.directories[0].checkpointed[CLEANER_OFFSETS] == {("table", 0): active}


def test_a_trial_changes_nothing() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        before = contents(disk)
        compact(disk, is_trial=True)
        assert contents(disk) == before


def test_what_is_not_committed_stays() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        base = offsets_with(disk.names(FOLDER), ".log")[3]
        assert compact(disk, high_watermark=base + 1).end_offset == base


def test_a_folder_that_a_node_uses_is_refused() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        disk.start()
        with pytest.raises(OfflineError, match="in use by another node"):
            compact(disk)


def test_a_node_that_was_killed_is_to_recover_first() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        disk.start()
        disk.files.kill()
        with pytest.raises(OfflineError, match="did not stop in good order"):
            compact(disk)


def test_a_damaged_folder_is_refused_and_left_as_it_is() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        path = f"{FOLDER}/{offsets_with(disk.names(FOLDER), '.log')[2]:020d}.log"
        content = bytearray(disk.files.read(path))
        content[80] ^= 1
        disk.files.write(path, bytes(content))
        before = contents(disk)
        with pytest.raises(OfflineError, match="does not have its CRC"):
            compact(disk)
        assert contents(disk) == before


def test_a_folder_that_lies_alone_needs_to_be_told_what_is_committed() -> None:
    with node_disk() as disk:
        end_offset = stopped_node(disk)
        disk.files.make_directories("/copy/table-0")
        for name, data in contents(disk).items():
            disk.files.write(f"/copy/table-0/{name}", data)
        with pytest.raises(OfflineError, match="--high-watermark"):
            compact(disk, path="/copy/table-0")
        assert compact(disk, path="/copy/table-0", high_watermark=end_offset).passes == 1


@pytest.mark.thorough
@pytest.mark.parametrize("is_power_lost", [False, True], ids=["killed", "power lost"])
def test_an_end_at_any_step_loses_nothing(*, is_power_lost: bool) -> None:
    step = 0
    is_whole = False
    while not is_whole:
        with node_disk() as disk:
            end_offset = stopped_node(disk, transactions=24)
            latest = {key: (offset, value) for offset, key, value in records(disk) if (offset // 4) % 3 != 1}
            disk.files.end_process(skip=step)
            with suppress(OSError):
                compact(disk)
                is_whole = True
            disk.files.heal()
            if is_power_lost:
                disk.files.crash(Random(step))
            else:
                disk.files.kill()
            disk.start()
            log = disk.log("table", topic_id=TopicId(TOPIC_ID))
            assert (log.damage, log.log_end_offset) == (None, end_offset), step
            found = records(disk)
            assert [one[0] for one in found] == sorted({one[0] for one in found}), step
            kept = {key: (offset, value) for offset, key, value in found if (offset // 4) % 3 != 1}
            assert kept == latest, step
            names = disk.names(FOLDER)
            assert not [name for name in names if name.endswith(("cleaned", "swap", "deleted"))], step
            step += 1
    assert step > 30
