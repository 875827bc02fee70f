"""The plain reader of voters' journals reads what the journal wrote, and voters that differ are found."""

from __future__ import annotations

from penstock.chaos.checkers.journal_files import PlainJournal, judge_journals, read_journal
from penstock.quorum.raft.frames import encode_frame
from penstock.quorum.raft.journal_items import CommitMark, LogEnd, LogEntry, SegmentHead, Term, encode_items
from penstock.quorum.voter.journal import Journal
from penstock.storage.disk.memory_files import MemoryFiles

FOLDER = "/journal"


def written(*writes: list[LogEntry | CommitMark | LogEnd | Term], rolls: bool = False) -> PlainJournal:
    files = MemoryFiles()
    files.make_directories(FOLDER)
    journal = Journal(files, FOLDER, reserve_bytes=16)
    journal.recover()
    for items in writes:
        journal.write(items)
        if rolls:
            journal.roll()
    names = [name for name in files.list_directory(FOLDER) if name.endswith(".journal")]
    return read_journal({int(name.partition(".")[0]): files.read(f"{FOLDER}/{name}") for name in names})


def entries(*epochs: int, start: int = 0, content: bytes = b"") -> list[LogEntry | CommitMark | LogEnd | Term]:
    return [LogEntry(offset, epoch, b"%d" % offset + content) for offset, epoch in enumerate(epochs, start)]


def test_a_journal_is_read_as_it_was_written() -> None:
    journal = written(entries(1, 1, 2), [Term(3, None), LogEnd(2, 1)], entries(3, start=2), [CommitMark(3)], rolls=True)
    assert journal.faults == []
    assert [(entry.epoch, entry.command) for entry in journal.entries] == [(1, b"0"), (1, b"1"), (3, b"2")]
    assert (journal.start_offset, journal.end_offset, journal.commit_end) == (0, 3, 3)


def test_a_log_that_goes_on_behind_a_snapshot_begins_there() -> None:
    journal = written(entries(1), [LogEnd(10, 4)], entries(5, start=10))
    assert (journal.start_offset, journal.end_offset) == (10, 11)


def test_a_second_head_of_a_segment_is_found() -> None:
    head = encode_items([SegmentHead(2, 0, 0, 1, None, True)])
    assert read_journal({0: encode_frame(0, head) + encode_frame(1, head)}).faults == ["segment 0 has a second head"]


def test_what_a_torn_write_left_is_none_of_the_journal() -> None:
    head = encode_frame(0, encode_items([SegmentHead(2, 0, 0, 1, None, True)]))
    entry = encode_frame(1, encode_items([LogEntry(0, 1, b"0")]))
    assert read_journal({0: head + entry[:-1]}).end_offset == 0


def test_voters_that_have_one_epoch_of_an_offset_have_one_content() -> None:
    ours, others = written(entries(1, 1)), written(entries(1, 1, content=b"x"))
    assert list(judge_journals({1: ours, 2: ours, 3: written(entries(1, 2))}, committed_end=1)) == []
    found = list(judge_journals({1: ours, 2: ours, 3: others}, committed_end=0))
    assert found[0] == "metadata offset 0 of epoch 1 has two contents, one on voter 3"


def test_what_is_committed_is_on_a_majority() -> None:
    ours, behind = written(entries(1, 1), [CommitMark(2)]), written(entries(1))
    assert list(judge_journals({1: ours, 2: ours, 3: behind}, committed_end=0)) == []
    (found,) = judge_journals({1: ours, 2: behind, 3: behind}, committed_end=0)
    assert found.startswith("metadata offset 1 is committed up to 2, and no majority has it")
    # A snapshot has what is below a journal's start.
    snapshot = written(entries(1), [LogEnd(2, 1)])
    assert list(judge_journals({1: ours, 2: snapshot, 3: behind}, committed_end=0)) == []
    assert list(judge_journals({1: behind, 2: behind, 3: behind}, committed_end=2)) == [
        "metadata is committed up to 2, and no voter has that"
    ]
