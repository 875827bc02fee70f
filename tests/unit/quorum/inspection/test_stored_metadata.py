"""The metadata shell reads what nodes have written, and changes nothing."""

from collections.abc import Sequence

import pytest

from penstock.protocol.ids import ControllerEpoch
from penstock.quorum.inspection.stored_metadata import MetadataUnreadable, open_folder, open_snapshot
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.metadata_log import CommittedEntry, encode_batch
from penstock.quorum.metadata.record_codec import encode_entry, encode_record
from penstock.quorum.metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from penstock.quorum.metadata.snapshot_records import image_chunks
from penstock.quorum.raft.consensus import MAX_COMMAND_BYTES
from penstock.quorum.raft.frames import encode_frame, scan_frames
from penstock.quorum.raft.journal_items import CommitMark, LogEntry, Membership, SegmentHead, Term, encode_items
from penstock.quorum.voter.journal import Journal
from penstock.quorum.voter.observer_log import ObserverLog
from penstock.quorum.voter.snapshots import SnapshotWriter
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.rules.config import LogConfig

FOLDER = "/data/__cluster_metadata-0"
SNAPSHOT = f"{FOLDER}/00000000000000000004-0000000001.checkpoint"


def command(*records: MetadataRecord) -> bytes:
    return encode_entry(1_000, [encode_record(record) for record in records])


def level(number: int) -> bytes:
    return command(FeatureLevelRecord(name="f", feature_level=number))


def journal_of(files: MemoryFiles, commands: Sequence[bytes], *, committed_end: int = 0) -> Journal:
    files.make_directories(FOLDER)
    journal = Journal(files, FOLDER, reserve_bytes=1024)
    journal.recover()
    journal.write([Term(1, 1), Membership(True)])
    for offset, content in enumerate(commands):
        journal.write([LogEntry(offset, 1, content)])
    if committed_end:
        journal.write([CommitMark(committed_end)])
    return journal


def save_snapshot(files: MemoryFiles, end_offset: int, level: int) -> None:
    image = MetadataImage(offset=end_offset - 1, epoch=ControllerEpoch(1), timestamp_ms=5, features={"f": level})
    writer = SnapshotWriter(files, FOLDER, end_offset=end_offset, epoch=ControllerEpoch(1))
    writer.append(list(image_chunks(image)))
    writer.finish()


def content(files: MemoryFiles) -> dict[str, bytes]:
    return {name: files.read(f"{FOLDER}/{name}") for name in files.list_directory(FOLDER)}


def test_a_journal_has_the_image_at_each_of_its_offsets() -> None:
    files = MemoryFiles()
    journal_of(files, [b"", level(1), level(2), level(3)], committed_end=3)
    stored = open_folder(files, "/data")
    assert (stored.last_offset, stored.committed_end) == (3, 3)
    assert [stored.image_at(offset).image.features.get("f") for offset in range(4)] == [None, 1, 2, 3]
    assert stored.image_at().image.offset == 3


def test_a_journal_whose_segment_has_two_heads_shows_all_its_entries() -> None:
    files = MemoryFiles()
    journal = journal_of(files, [level(1)])
    journal.roll()
    journal.close()
    path = f"{FOLDER}/{1:020}.journal"
    sequence = scan_frames(files.read(path), None, path).frames[-1].sequence + 1
    late: Sequence[SegmentHead | LogEntry] = SegmentHead(2, 1, 1, 1, None, True), LogEntry(1, 1, level(2))
    files.open(path).append([encode_frame(sequence + number, encode_items([item])) for number, item in enumerate(late)])
    stored = open_folder(files, "/data")
    assert [stored.image_at(offset).image.features for offset in range(2)] == [{"f": 1}, {"f": 2}]


def test_nothing_is_written_beside_a_running_node() -> None:
    files = MemoryFiles()
    journal = journal_of(files, [level(1), level(2)])
    # As a write that has not come to its end looks from outside.
    files.open(f"{FOLDER}/{files.list_directory(FOLDER)[0]}").append([b"PQF1\0\0"])
    files.write(f"{FOLDER}/00000000000000000009-0000000001.checkpoint.part", b"half a snapshot")
    before = content(files)
    assert open_folder(files, FOLDER).image_at().image.features == {"f": 2}
    assert content(files) == before
    journal.close()


def test_the_newest_snapshot_that_leads_to_the_offset_is_taken() -> None:
    files = MemoryFiles()
    journal = journal_of(files, [level(number) for number in range(1, 5)])
    journal.roll()
    save_snapshot(files, 4, 4)
    journal.trim_to(4)
    journal.write([LogEntry(4, 1, level(5)), LogEntry(5, 1, level(6))])
    stored = open_folder(files, FOLDER)
    assert [stored.image_at(offset).image.features["f"] for offset in (3, 4, 5)] == [4, 5, 6]
    for offset in (2, 6):
        with pytest.raises(MetadataUnreadable, match=f"The image at offset {offset} .* it has offsets 3 to 5"):
            stored.image_at(offset)


def test_a_snapshot_alone_has_one_image() -> None:
    files = MemoryFiles()
    files.make_directories(FOLDER)
    save_snapshot(files, 4, 7)
    for stored in (open_snapshot(files, SNAPSHOT), open_folder(files, FOLDER)):
        assert stored.image_at().image.features == {"f": 7}
        with pytest.raises(MetadataUnreadable, match="it has offset 3"):
            stored.image_at(4)


def test_a_damaged_snapshot_is_said_to_be_so() -> None:
    files = MemoryFiles()
    files.make_directories(FOLDER)
    save_snapshot(files, 4, 7)
    files.open(SNAPSHOT).write_at(30, b"\xff\xff")
    with pytest.raises(MetadataUnreadable, match=r"The metadata snapshot cannot be used: .* is damaged"):
        open_snapshot(files, SNAPSHOT).image_at()


def test_an_observer_s_log_is_read_up_to_what_is_torn() -> None:
    files = MemoryFiles()
    log = ObserverLog(files, FOLDER, config=LogConfig(retention_ms=-1))
    log.latest_snapshot()
    list(log.recover(0))
    for offset, entry in enumerate((b"", level(1), level(2))):
        log.append(encode_batch(CommittedEntry(offset, ControllerEpoch(1), entry)), now_ms=0)
    torn = encode_batch(CommittedEntry(3, ControllerEpoch(1), level(3)))[:-1]
    files.open(f"{FOLDER}/{0:020}.log").append([torn])
    stored = open_folder(files, "/data/")
    assert (stored.last_offset, stored.committed_end) == (2, 3)
    assert [stored.image_at(offset).image.features.get("f") for offset in range(3)] == [None, 1, 2]


def test_a_change_in_parts_shows_when_it_is_whole() -> None:
    files = MemoryFiles()
    first = command(BeginTransactionRecord(name="x"), FeatureLevelRecord(name="f", feature_level=2))
    last = command(FeatureLevelRecord(name="g", feature_level=1), EndTransactionRecord())
    journal_of(files, [level(1), first, last])
    stored = open_folder(files, FOLDER)
    inside = stored.image_at(1)
    assert (inside.offset, inside.image.offset, inside.image.features) == (1, 0, {"f": 1})
    assert stored.image_at(2).image.features == {"f": 2, "g": 1}


def test_what_is_no_metadata_gets_a_sentence() -> None:
    files = MemoryFiles()
    files.make_directories("/empty")
    files.write("/empty/node-1.log", b"lines of a log")
    with pytest.raises(MetadataUnreadable, match="/empty holds no metadata"):
        open_folder(files, "/empty")
    with pytest.raises(MetadataUnreadable, match="/nowhere is no folder"):
        open_folder(files, "/nowhere")
    with pytest.raises(MetadataUnreadable, match="/x is no metadata snapshot"):
        open_snapshot(files, "/x")
    with pytest.raises(MetadataUnreadable, match="There is no file"):
        open_snapshot(files, SNAPSHOT)
    files.make_directories("/foreign")
    files.write(f"/foreign/{0:020}.log", b"?" * MAX_COMMAND_BYTES)
    with pytest.raises(MetadataUnreadable, match=r"The metadata in /foreign cannot be used: .* magic"):
        open_folder(files, "/foreign")


def test_a_journal_damaged_in_the_middle_is_said_to_be_so() -> None:
    files = MemoryFiles()
    journal_of(files, [level(1), level(2), level(3)])
    (name,) = files.list_directory(FOLDER)
    file = files.open(f"{FOLDER}/{name}")
    file.write_at(file.size // 2, b"\xff\xff")
    with pytest.raises(MetadataUnreadable, match="this is not a torn write"):
        open_folder(files, FOLDER)


def test_entries_that_cannot_be_replayed_are_said_to_be_so() -> None:
    files = MemoryFiles()
    journal_of(files, [level(1), b"no entry"])
    stored = open_folder(files, FOLDER)
    assert stored.image_at(0).image.features == {"f": 1}
    with pytest.raises(MetadataUnreadable, match="cannot be replayed"):
        stored.image_at(1)
