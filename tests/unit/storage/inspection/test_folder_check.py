"""`penstock log verify`: what is wrong in the folder of a log is found, and what a node may leave there is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import pack, unpack_from
from zipfile import ZipFile

import pytest
from closed_logs import FOLDER, stopped_node, write_transaction
from node_disk import TOPIC_ID, NodeDisk, node_disk

from penstock.protocol.batches import iterate_headers
from penstock.protocol.ids import TopicId
from penstock.storage.disk.files import DiskFiles
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.inspection.folder_check import check_folder, check_log_directory
from penstock.storage.inspection.rules.report import Report
from penstock.storage.log.rules.file_names import offsets_with, segment_file
from penstock.storage.log.transaction_index import TransactionIndex

GOLDEN = Path(__file__).parents[3] / "golden" / "kafka-4.3.1-log-folder.zip"


def report_of(disk: NodeDisk) -> Report:
    report = Report()
    check_folder(disk.files, FOLDER, report)
    return report


def bases(files: MemoryFiles) -> list[int]:
    return offsets_with(files.list_directory(FOLDER), ".log")


def change(files: MemoryFiles, path: str, position: int, data: bytes) -> None:
    content = bytearray(files.read(path))
    content[position : position + len(data)] = data
    files.write(path, bytes(content))


def test_a_stopped_node_leaves_nothing_to_find() -> None:
    with node_disk() as disk:
        end_offset = stopped_node(disk)
        report = Report()
        check_log_directory(disk.files, "/data", report)
        assert report.findings == []
        assert report.notes == []
        totals = report.totals
        assert (totals.folders, totals.segments, totals.records) == (1, len(bases(disk.files)), end_offset)
        assert (totals.aborted_transactions, totals.open_transactions, totals.missing_offsets) == (10, 0, 0)
        assert totals.index_entries > totals.segments


def test_a_running_node_leaves_nothing_to_find() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        disk.start()
        log = disk.log("table", topic_id=TopicId(TOPIC_ID))
        # The newest entries of its indexes are in memory only, and the next batch is half written.
        write_transaction(log, 90, is_commit=False, leader_epoch=5)
        path = segment_file(FOLDER, bases(disk.files)[-1], ".log")
        disk.files.open(path).append((disk.files.read(path)[:70],))
        report = report_of(disk)
        assert report.findings == []
        assert ["a start removes it" in note.sentence for note in report.notes] == [True]


def test_apache_kafkas_folder_has_nothing_to_find(tmp_path: Path) -> None:
    with ZipFile(GOLDEN) as archive:
        archive.extractall(tmp_path)
    report = Report()
    check_log_directory(DiskFiles(is_read_only=True), str(tmp_path), report)
    assert report.findings == []
    assert report.totals.records == 318
    assert report.totals.aborted_transactions == 1


def flip_a_record(files: MemoryFiles, base: int) -> None:
    change(files, segment_file(FOLDER, base, ".log"), 80, b"\xff\xff")


def lower_an_epoch(files: MemoryFiles, base: int) -> None:
    # The leader epoch is not covered by the CRC.
    change(files, segment_file(FOLDER, base, ".log"), 12, pack(">i", 7))


def repeat_an_offset(files: MemoryFiles, base: int) -> None:
    change(files, segment_file(FOLDER, base, ".log"), 0, pack(">q", base - 1))


def cut_the_log(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".log")
    files.write(path, files.read(path)[:-5])


def move_an_index_entry(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".index")
    offset, position = unpack_from(">ii", files.read(path))
    change(files, path, 0, pack(">ii", offset, position + 1))


def misname_an_index_entry(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".index")
    offset, position = unpack_from(">ii", files.read(path))
    change(files, path, 0, pack(">ii", offset - 1, position))


def tear_the_index(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".index")
    files.write(path, files.read(path)[:-3])


def remove_the_index(files: MemoryFiles, base: int) -> None:
    files.remove(segment_file(FOLDER, base, ".index"))


def age_a_time_entry(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".timeindex")
    timestamp, offset = unpack_from(">qi", files.read(path))
    change(files, path, 0, pack(">qi", timestamp - 1, offset))


def shorten_the_time_index(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".timeindex")
    files.write(path, files.read(path)[:-12])


def remove_the_transaction_index(files: MemoryFiles, base: int) -> None:
    files.remove(segment_file(FOLDER, base, ".txnindex"))


def abort_a_committed_transaction(files: MemoryFiles, base: int) -> None:
    path = segment_file(FOLDER, base, ".txnindex")
    entry = TransactionIndex(files, path).entries[0]
    moved = entry._replace(first_offset=entry.first_offset - 4, last_offset=entry.last_offset - 4)
    change(files, path, 0, pack(">hqqqq", 0, *moved))


def flip_a_snapshot(files: MemoryFiles, base: int) -> None:
    change(files, segment_file(FOLDER, base, ".snapshot"), 20, b"\xff")


def take_an_earlier_snapshot(files: MemoryFiles, base: int) -> None:
    earlier = max(one for one in bases(files) if one < base)
    files.write(segment_file(FOLDER, base, ".snapshot"), files.read(segment_file(FOLDER, earlier, ".snapshot")))


def move_an_epoch(files: MemoryFiles, _base: int) -> None:
    files.write(f"{FOLDER}/leader-epoch-checkpoint", b"0\n2\n0 0\n3 20\n")


def garble_the_topic_id(files: MemoryFiles, _base: int) -> None:
    files.write(f"{FOLDER}/partition.metadata", b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!\n")


def lose_the_end(files: MemoryFiles, _base: int) -> None:
    for name in files.list_directory(FOLDER):
        if name.startswith(f"{bases(files)[-1]:020d}"):
            files.remove(f"{FOLDER}/{name}")


@pytest.mark.parametrize(
    ("damage", "file", "sentence"),
    [
        (flip_a_record, ".log", "does not have its CRC"),
        (lower_an_epoch, ".log", "leader epoch 7 is followed by 0"),
        (repeat_an_offset, ".log", "cannot follow offset"),
        (cut_the_log, ".log", "is cut off"),
        (move_an_index_entry, ".index", "no intact batch begins"),
        (misname_an_index_entry, ".index", "where the batch ends with offset"),
        (tear_the_index, ".index", "no multiple of the 8"),
        (remove_the_index, ".index", "is missing"),
        (age_a_time_entry, ".timeindex", "whose batch has the timestamp"),
        (shorten_the_time_index, ".timeindex", "the segment has records up to"),
        (remove_the_transaction_index, ".txnindex", "readers would take it for committed"),
        (abort_a_committed_transaction, ".txnindex", "aborts no transaction"),
        (flip_a_snapshot, ".snapshot", "corrupt producer snapshot"),
        (take_an_earlier_snapshot, ".snapshot", "and has a batch up to offset"),
        (move_an_epoch, "leader-epoch-checkpoint", "its batch has epoch 0"),
        (garble_the_topic_id, "partition.metadata", "names no topic id"),
    ],
)
def test_damage_is_found_and_named(damage: Callable[[MemoryFiles, int], None], file: str, sentence: str) -> None:
    with node_disk() as disk:
        stopped_node(disk)
        # One that is closed, and has an entry in each of its indexes.
        damage(disk.files, bases(disk.files)[2])
        findings = report_of(disk).findings
        assert any(one.path.endswith(file) and sentence in one.sentence for one in findings), findings


def test_an_index_entry_may_be_of_several_batches_that_arrived_together() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        base = bases(disk.files)[2]
        path = segment_file(FOLDER, base, ".index")
        last_offsets = {
            position: header.last_offset - base
            for position, header in iterate_headers(disk.files.read(segment_file(FOLDER, base, ".log")))
        }
        _, position = unpack_from(">ii", disk.files.read(path))
        following = min(one for one in last_offsets if one > position)
        change(disk.files, path, 0, pack(">i", last_offsets[following]))
        assert report_of(disk).findings == []
        # Where the last one ends is known, too.
        entry_count = len(disk.files.read(path)) // 8
        change(disk.files, path, 8 * (entry_count - 1), pack(">i", max(last_offsets.values()) + 1))
        assert [one.path for one in report_of(disk).findings] == [path]


def test_a_log_that_ends_below_its_recovery_point_has_lost_batches() -> None:
    with node_disk() as disk:
        stopped_node(disk)
        lose_the_end(disk.files, 0)
        report = Report()
        check_log_directory(disk.files, "/data", report)
        assert any("was synced up to" in one.sentence for one in report.findings), report.findings


def test_the_walk_goes_on_behind_a_batch_that_is_not_intact() -> None:
    with node_disk() as disk:
        end_offset = stopped_node(disk)
        flip_a_record(disk.files, bases(disk.files)[1])
        report = report_of(disk)
        assert report.totals.records == end_offset - 3
        assert report.totals.missing_offsets == 3
