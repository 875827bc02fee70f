"""The journal on a disk that loses power, tears writes, rots and fills up."""

from collections.abc import Sequence
from errno import ENOSPC
from random import Random

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.raft.frames import encode_frame, scan_frames
from penstock.quorum.raft.journal_items import (
    CommitMark,
    JournalItem,
    LogEnd,
    LogEntry,
    Membership,
    SegmentHead,
    Term,
    encode_items,
)
from penstock.quorum.voter.journal import Journal
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.memory_nodes import Operation

FOLDER = "/quorum"
RESERVE = 4096


def opened(files: MemoryFiles) -> tuple[Journal, list[LogEntry]]:
    journal = Journal(files, FOLDER, reserve_bytes=RESERVE)
    return journal, journal.recover().entries


def fresh() -> tuple[MemoryFiles, Journal]:
    files = MemoryFiles()
    files.make_directories(FOLDER)
    journal, entries = opened(files)
    assert entries == []
    return files, journal


def append(journal: Journal, count: int = 1, *, size: int = 10) -> list[LogEntry]:
    """Write one group."""
    entries = [LogEntry(journal.end_offset + number, 1, bytes([number % 256]) * size) for number in range(count)]
    journal.write(entries)
    return entries


def path_of(files: MemoryFiles) -> str:
    (name,) = (name for name in files.list_directory(FOLDER) if name.endswith(".journal"))
    return f"{FOLDER}/{name}"


def with_bytes(data: bytes) -> MemoryFiles:
    """Return a disk with a journal of one segment that holds these bytes."""
    files = MemoryFiles()
    files.make_directories(FOLDER)
    file = files.open(f"{FOLDER}/{0:020}.journal", create=True)
    file.append([data])
    file.sync()
    files.sync_directory(FOLDER)
    return files


def test_everything_comes_back() -> None:
    files, journal = fresh()
    journal.write([Term(3, 1)])
    expected = append(journal, 5) + append(journal) + append(journal, 300)
    reopened, entries = opened(files)
    assert entries == expected
    assert (reopened.term, reopened.end_offset, reopened.last_epoch) == (Term(3, 1), 306, 1)
    expected += append(reopened)
    assert opened(files)[1] == expected


def test_segments_keep_term_and_epoch_when_older_ones_are_trimmed() -> None:
    files, journal = fresh()
    journal.write([Term(7, 2)])
    append(journal, 10)
    journal.roll()
    journal.roll()
    kept = append(journal, 5)
    journal.trim_to(9)
    assert journal.start_offset == 0
    journal.trim_to(10)
    assert journal.start_offset == 10
    reopened, entries = opened(files)
    assert entries == kept
    assert (reopened.term, reopened.start_offset, reopened.end_offset) == (Term(7, 2), 10, 15)
    reopened.trim_to(15)
    assert reopened.start_offset == 10


def test_torn_at_every_byte_exactly_the_whole_writes_come_back() -> None:
    files, journal = fresh()
    ends = []
    written: list[LogEntry] = []
    for _ in range(4):
        written += append(journal, 2)
        ends.append((files.size(path_of(files)), len(written)))
    data = files.read(path_of(files))
    for size in range(len(data)):
        expected = max((count for end, count in ends if end <= size), default=0)
        torn = with_bytes(data[:size])
        _, entries = opened(torn)
        assert entries == written[:expected]
        # The tail is gone for good: what is written next stands right behind.
        reopened, _ = opened(torn)
        added = append(reopened)
        assert opened(torn)[1] == written[:expected] + added


def test_a_flipped_bit_is_refused_or_was_in_the_last_write() -> None:
    files, journal = fresh()
    last_write = written_count = 0
    written: list[LogEntry] = []
    for _ in range(3):
        last_write, written_count = files.size(path_of(files)) if written else 0, len(written)
        written += append(journal, 2)
    data = files.read(path_of(files))
    refused = 0
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            try:
                _, entries = opened(with_bytes(bytes(flipped)))
            except ConsensusFailed:
                refused += 1
            else:
                assert position >= last_write
                assert entries == written[:written_count]
    assert refused == last_write * 8


def test_a_hole_between_segments_is_refused() -> None:
    files, journal = fresh()
    for _ in range(3):
        append(journal, 2)
        journal.roll()
    files.remove(f"{FOLDER}/{2:020}.journal")
    with pytest.raises(ConsensusFailed, match="has the frame of sequence 4 at byte 0 where 2 was expected"):
        opened(files)


def test_a_short_segment_before_another_is_refused() -> None:
    files, journal = fresh()
    append(journal, 2)
    path = path_of(files)
    journal.roll()
    append(journal, 2)
    file = files.open(path)
    file.truncate(files.size(path) - 1)
    with pytest.raises(ConsensusFailed, match="later segments exist"):
        opened(files)


@pytest.mark.parametrize("items", [[], [LogEntry(0, 1, b"x")]])
def test_a_journal_without_a_head_is_refused(items: list[JournalItem]) -> None:
    files = with_bytes(encode_frame(0, encode_items(items)))
    with pytest.raises(ConsensusFailed, match="does not begin with the head of a segment"):
        opened(files)


def test_an_unknown_item_is_refused() -> None:
    files, journal = fresh()
    append(journal)
    journal.write([Term(2, None)])
    path = path_of(files)
    from_the_future = Journal(files, FOLDER, reserve_bytes=RESERVE)
    from_the_future.recover()
    from_the_future.write([Term(3, "voter")])  # type: ignore[arg-type]  # as a later version might write it
    assert files.size(path) > 0
    with pytest.raises(ConsensusFailed, match="does not know"):
        opened(files)


@given(seed=st.integers(0, 2**32), steps=st.lists(st.sampled_from("wwwrtc"), max_size=30))
def test_whatever_was_written_survives_the_loss_of_power(seed: int, steps: list[str]) -> None:
    """`w` writes, `r` rolls, `t` trims, `c` cuts the power; what a call returned from is kept."""
    random = Random(seed)
    files, journal = fresh()
    expected: list[LogEntry] = []
    for step in [*steps, "c"]:
        match step:
            case "w":
                expected += append(journal, random.randrange(1, 4), size=random.randrange(1, 2_000))
            case "r":
                journal.roll()
            case "t":
                offset = random.randrange(journal.start_offset, journal.end_offset + 1)
                journal.trim_to(offset)
                expected = [entry for entry in expected if entry.offset >= journal.start_offset]
            case _:
                files.crash(random)
                journal, entries = opened(files)
                assert entries == expected
                assert journal.end_offset == (expected[-1].offset + 1 if expected else journal.start_offset)


@given(seed=st.integers(0, 2**32), skip=st.integers(0, 12))
def test_power_lost_inside_a_call_keeps_what_was_promised(seed: int, skip: int) -> None:
    random = Random(seed)
    files, journal = fresh()
    promised: list[LogEntry] = []
    files.fail(None, under=FOLDER, skip=skip, count=None)
    attempted: list[LogEntry] = []
    try:
        while True:
            attempted = [LogEntry(journal.end_offset, 1, random.randbytes(700))]
            journal.write(attempted)
            promised += attempted
            if random.random() < 0.3:
                journal.roll()
    except ConsensusFailed:
        pass
    files.heal()
    files.crash(random)
    _, entries = opened(files)
    # The write in flight may be there: no answer said so either way.
    assert entries in (promised, promised + attempted)


def fill(files: MemoryFiles) -> None:
    files.capacity_bytes = files.total_bytes(FOLDER) - files.free_bytes(FOLDER)


def test_journal_goes_on_with_part_of_its_reserve_on_a_full_disk_and_takes_it_back_with_room() -> None:
    files, journal = fresh()
    promised = append(journal, 1)
    journal.keep_reserve()
    assert files.size(f"{FOLDER}/reserve") == RESERVE
    fill(files)
    promised += append(journal, 5)
    assert 0 < files.size(f"{FOLDER}/reserve") < RESERVE
    files.capacity_bytes = (files.capacity_bytes or 0) + 2 * RESERVE
    promised += append(journal, 1)
    assert files.size(f"{FOLDER}/reserve") == RESERVE
    assert opened(files)[1] == promised


def test_reserve_outlasts_a_process_that_takes_all_that_it_frees() -> None:
    files, journal = fresh()
    promised = append(journal, 1)
    journal.keep_reserve()
    sizes = [RESERVE]
    while files.exists(f"{FOLDER}/reserve"):
        fill(files)
        promised += append(journal, 1)
        sizes.append(files.size(f"{FOLDER}/reserve") if files.exists(f"{FOLDER}/reserve") else 0)
    assert len(sizes) > 10
    assert sizes == sorted(sizes, reverse=True)
    fill(files)
    with pytest.raises(ConsensusFailed, match="cannot be written"):
        append(journal)
    files.capacity_bytes = (files.capacity_bytes or 0) + 4 * RESERVE
    reopened, found = opened(files)
    assert found == promised
    reopened.keep_reserve()
    assert files.size(f"{FOLDER}/reserve") == RESERVE


def test_write_larger_than_a_part_of_the_reserve_takes_as_many_as_it_needs() -> None:
    files, journal = fresh()
    promised = append(journal, 1)
    journal.keep_reserve()
    fill(files)
    promised += append(journal, 1, size=RESERVE // 2)
    assert 0 < files.size(f"{FOLDER}/reserve") < RESERVE // 2
    assert opened(files)[1] == promised


@pytest.mark.parametrize("operation", ["create", "write"])
def test_roll_without_room_leaves_no_segment_behind(operation: Operation) -> None:
    files, journal = fresh()
    promised = append(journal, 3)
    files.fail(operation, under=FOLDER, error=ENOSPC)
    journal.roll()
    assert len(files.list_directory(FOLDER)) == 1
    promised += append(journal, 2)
    journal.roll()
    promised += append(journal, 2)
    assert len(files.list_directory(FOLDER)) == 2
    assert opened(files)[1] == promised


def test_a_full_disk_promises_nothing_and_loses_nothing() -> None:
    files, journal = fresh()
    promised = append(journal, 3)
    files.fail("write", under=FOLDER, error=ENOSPC)
    with pytest.raises(ConsensusFailed, match="The metadata journal in /quorum cannot be written"):
        append(journal)
    assert opened(files)[1] == promised


def test_a_conflict_replaces_the_tail() -> None:
    files, journal = fresh()
    entries = append(journal, 5)
    journal.roll()
    append(journal, 2)
    replacement = LogEntry(3, 2, b"new")
    journal.write([LogEnd(3, 1), replacement])
    reopened, found = opened(files)
    assert found == [*entries[:3], replacement]
    assert (reopened.end_offset, reopened.last_epoch) == (4, 2)
    # The segment that began at offset 5 goes on; a new one cannot begin below it.
    reopened.roll()
    reopened.write([LogEntry(4, 2, b"more")])
    assert [entry.offset for entry in opened(files)[1]] == [0, 1, 2, 3, 4]
    reopened.trim_to(5)
    assert [entry.offset for entry in opened(files)[1]] == [3, 4]


def test_a_log_begins_anew_behind_a_snapshot() -> None:
    files, journal = fresh()
    append(journal, 5)
    journal.write([LogEnd(40, 3), CommitMark(40)])
    journal.write([LogEntry(40, 3, b"x")])
    reopened = Journal(files, FOLDER, reserve_bytes=RESERVE)
    log = reopened.recover()
    assert (log.start_offset, log.previous_epoch, log.commit_end) == (40, 3, 40)
    assert log.entries == [LogEntry(40, 3, b"x")]


def test_the_journal_of_the_first_format_is_read_as_a_member_s() -> None:
    frames = [[[0, 1, 0, 0, 0, None]], [[1, 1, 4], [2, 0, 1, b""]], [[2, 1, 1, b"x"]]]
    files = with_bytes(b"".join(encode_frame(number, cbor2.dumps(items)) for number, items in enumerate(frames)))
    journal, entries = opened(files)
    assert entries == [LogEntry(0, 1, b""), LogEntry(1, 1, b"x")]
    assert (journal.term, journal.is_member, journal.commit_end) == (Term(1, 4), True, 0)
    journal.write([LogEntry(2, 1, b"y"), CommitMark(3), Membership(True)])
    assert opened(files)[1][-1] == LogEntry(2, 1, b"y")


def write_after_close(files: MemoryFiles, journal: Journal, *groups: list[JournalItem]) -> None:
    """Write to a closed journal as earlier versions did: a segment is begun where the log ends, in its file if it
    is there already."""
    sequence = scan_frames(files.read(last_path(files)), None, "").frames[-1].sequence + 1
    head = SegmentHead(2, journal.end_offset, journal.last_epoch, *journal.term, journal.is_member)
    file = files.open(f"{FOLDER}/{journal.end_offset:020}.journal", create=True)
    written: list[Sequence[JournalItem | SegmentHead]] = [[head], *groups]
    for number, items in enumerate(written):
        file.append([encode_frame(sequence + number, encode_items(items))])
    file.sync()
    files.sync_directory(FOLDER)


def last_path(files: MemoryFiles) -> str:
    return max(f"{FOLDER}/{name}" for name in files.list_directory(FOLDER) if name.endswith(".journal"))


def test_a_closed_journal_refuses_whatever_would_write() -> None:
    files, journal = fresh()
    append(journal, 2)
    journal.roll()
    append(journal, 2)
    journal.close()
    names, data = files.list_directory(FOLDER), files.read(last_path(files))
    for write in (
        lambda: append(journal),
        journal.roll,
        lambda: journal.trim_to(4),
        journal.keep_reserve,
        journal.recover,
    ):
        with pytest.raises(ConsensusFailed, match="The metadata journal in /quorum is closed"):
            write()
    journal.close()
    assert (files.list_directory(FOLDER), files.read(last_path(files))) == (names, data)
    assert len(opened(files)[1]) == 4


@pytest.mark.parametrize("first_segment", [True, False])
def test_a_segment_with_two_heads_is_read_and_trimmed_without_loss(first_segment: bool) -> None:
    files, journal = fresh()
    entries = [] if first_segment else append(journal, 2)
    if first_segment:
        journal.write([Term(1, 4)])
    journal.roll()
    start = journal.end_offset
    journal.close()
    late: list[JournalItem] = [LogEntry(start + number, 1, b"late") for number in range(3)]
    write_after_close(files, journal, late, [CommitMark(start + 3)])
    entries += [item for item in late if isinstance(item, LogEntry)]
    journal, found = opened(files)
    assert found == entries
    entries += append(journal)
    journal.roll()
    entries += append(journal)
    # A snapshot of what is below `start + 2` has none of what follows.
    journal.trim_to(start + 2)
    journal, found = opened(files)
    assert found == [entry for entry in entries if entry.offset >= start]
    journal.trim_to(start + 4)
    assert opened(files)[1] == entries[-1:]


def test_a_segment_begun_below_the_last_one_is_read_and_trimmed_without_loss() -> None:
    """A conflict took back what a later segment begins behind, and the journal was written after its close."""
    files, journal = fresh()
    entries = append(journal, 5)
    journal.roll()
    append(journal, 2)
    entries = [*entries[:3], LogEntry(3, 2, b"new")]
    journal.write([LogEnd(3, 1), entries[3]])
    journal.close()
    late: list[JournalItem] = [LogEntry(4, 2, b"late"), LogEntry(5, 2, b"later")]
    write_after_close(files, journal, late)
    entries += [item for item in late if isinstance(item, LogEntry)]
    journal, found = opened(files)
    assert found == entries
    entries += append(journal)
    journal.roll()
    entries += append(journal)
    assert opened(files)[1] == entries
    for offset in range(9):
        journal.trim_to(offset)
        found = opened(files)[1]
        assert found == entries[-len(found) :]
        assert [entry.offset for entry in found if entry.offset >= offset] == list(range(offset, 8))


def test_a_commit_mark_beyond_the_log_is_refused() -> None:
    files, journal = fresh()
    append(journal, 2)
    journal.write([CommitMark(3)])
    with pytest.raises(ConsensusFailed, match="has the offsets below 3 for committed but ends at 2"):
        opened(files)


def test_offsets_and_terms_beyond_32_bits_of_bytes_are_kept() -> None:
    """The library's own journal counts bytes in 32 bits."""
    files, journal = fresh()
    far = 5 * 2**32
    journal.write([Term(2**31 - 1, 1), LogEnd(far, 2**31 - 2)])
    entries = append(journal, 3)
    journal.roll()
    entries += append(journal, 3)
    reopened, found = opened(files)
    assert found == entries
    assert (reopened.start_offset, reopened.end_offset, reopened.term) == (far, far + 6, Term(2**31 - 1, 1))
    reopened.trim_to(far + 3)
    assert opened(files)[1] == entries[3:]
    assert sorted(name for name in files.list_directory(FOLDER) if name.endswith(".journal")) == [
        f"{far + 3:020}.journal"
    ]


def test_the_journal_is_as_small_as_what_no_snapshot_has() -> None:
    files, journal = fresh()
    sizes = []
    for _ in range(20):
        append(journal, 50, size=1_000)
        end_offset = journal.end_offset
        journal.roll()
        append(journal, 1)
        journal.trim_to(end_offset)
        sizes.append(files.total_bytes(FOLDER) - files.free_bytes(FOLDER))
    assert max(sizes) < 1.1 * sizes[0]
    assert len([name for name in files.list_directory(FOLDER) if name.endswith(".journal")]) == 1


def test_every_kind_of_item_survives_each_tear_and_no_flipped_bit_is_believed() -> None:
    """What is read back is what some whole number of writes made: never a part of one, never something else."""
    files, journal = fresh()
    journal.keep_reserve()
    states = [state_of(files)]
    groups: list[list[JournalItem]] = [
        [Term(1, 2), Membership(True)],
        [LogEntry(0, 1, b""), LogEntry(1, 1, b"one"), CommitMark(1)],
        [Term(3, None), LogEnd(1, 1), LogEntry(1, 3, b"other")],
        [LogEnd(9, 3), CommitMark(9)],
        [LogEntry(9, 3, b"behind a snapshot"), Term(4, 1)],
    ]
    for items in groups:
        journal.write(items)
        states.append(state_of(files))
    data = files.read(path_of(files))
    frame_ends = [0, *(frame.end for frame in scan_frames(data, None, "").frames)]
    # The first frame is the head of the segment, which alone says nothing.
    states.insert(1, states[0])
    for size in range(len(data) + 1):
        whole = sum(end <= size for end in frame_ends) - 1
        assert state_of(with_bytes(data[:size])) == states[whole]
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            try:
                found = state_of(with_bytes(bytes(flipped)))
            except ConsensusFailed:
                continue
            assert position >= frame_ends[-2]
            assert found == states[-2]


def state_of(files: MemoryFiles) -> tuple[object, ...]:
    """Return what a start finds, on a copy of the disk."""
    names = [name for name in files.list_directory(FOLDER) if name.endswith(".journal")]
    copy = with_bytes(files.read(f"{FOLDER}/{names[0]}")) if names else MemoryFiles()
    copy.make_directories(FOLDER)
    log = Journal(copy, FOLDER, reserve_bytes=RESERVE).recover()
    return log.term, log.is_member, log.commit_end, log.start_offset, log.previous_epoch, log.entries
