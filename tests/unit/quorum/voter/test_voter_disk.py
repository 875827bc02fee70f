"""Journal and snapshots of one folder, as a start finds them after every kind of end (D5, D8, D9; B9, B10)."""

import pytest

from penstock.protocol.ids import ControllerEpoch
from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.raft.journal_items import CommitMark, LogEntry, Membership, Term
from penstock.quorum.voter.voter_disk import RecoveredState, VoterDisk
from penstock.storage.disk.memory_files import MemoryFiles

FOLDER = "/metadata"


def disk(files: MemoryFiles) -> VoterDisk:
    return VoterDisk(files, FOLDER, reserve_bytes=1024)


def recovered(files: MemoryFiles) -> RecoveredState:
    files.kill()
    opened = disk(files)
    opened.open()
    return opened.recover()


def written(count: int = 50) -> tuple[MemoryFiles, VoterDisk]:
    files = MemoryFiles()
    voter_disk = disk(files)
    voter_disk.open()
    voter_disk.recover()
    entries = [LogEntry(offset, 1, b"%d" % offset) for offset in range(count)]
    voter_disk.write((), (), [Term(1, 1), Membership(True), *entries, CommitMark(count)])
    return files, voter_disk


def save(voter_disk: VoterDisk, end_offset: int, epoch: int = 1) -> None:
    writer = voter_disk.begin_snapshot(end_offset=end_offset, epoch=ControllerEpoch(epoch))
    writer.append([b"state"])
    writer.finish()


def test_a_stop_between_snapshot_and_trim_keeps_the_rest_of_the_log() -> None:
    """B9, D8: the library cleared its journal when it did not begin exactly at the dump."""
    files, voter_disk = written()
    save(voter_disk, 20)
    state = recovered(files)
    assert state.snapshot is not None
    assert state.snapshot.end_offset == 20
    assert state.log.end_offset == 50
    assert state.log.entry(49).command == b"49"
    assert state.commit_end == 50


def test_a_stop_between_an_installed_snapshot_and_the_journal_begins_behind_the_snapshot() -> None:
    files, voter_disk = written()
    save(voter_disk, 80, epoch=3)
    state = recovered(files)
    assert (state.log.start_offset, state.log.end_offset, state.log.previous_epoch) == (80, 80, 3)
    assert (state.commit_end, state.log.term, state.log.is_member) == (80, Term(1, 1), True)


def test_an_installed_snapshot_of_another_history_voids_the_tail() -> None:
    files, voter_disk = written()
    save(voter_disk, 40, epoch=3)
    state = recovered(files)
    assert (state.log.start_offset, state.log.end_offset) == (40, 40)


@pytest.mark.parametrize("keep_bytes", [0, 10, 60])
def test_a_snapshot_that_is_cut_short_stops_the_start(keep_bytes: int) -> None:
    """B10, D9: the library logged it and ran with an empty state."""
    files, voter_disk = written()
    save(voter_disk, 20)
    files.open(f"{FOLDER}/{20:020}-{1:010}.checkpoint").truncate(keep_bytes)
    with pytest.raises(ConsensusFailed, match="The metadata snapshot cannot be used"):
        recovered(files)


@pytest.mark.parametrize("skip", range(12))
def test_power_lost_while_the_journal_is_trimmed_loses_nothing(skip: int) -> None:
    """D5: the library cleared its journal and wrote it again."""
    files, voter_disk = written()
    voter_disk.journal.roll()
    voter_disk.write((), (), [LogEntry(50, 1, b"50")])
    save(voter_disk, 50)
    files.fail(skip=skip, count=None)
    try:
        voter_disk.journal.trim_to(50)
        voter_disk.snapshots.remove_below(50)
    except (ConsensusFailed, OSError):
        pass
    files.heal()
    state = recovered(files)
    assert state.log.end_offset == 51
    assert state.log.entry(50).command == b"50"


def test_a_frame_whose_sync_failed_is_written_again_at_the_next_start() -> None:
    """What a failed sync leaves in memory is not on the disk, and no later sync puts it there."""
    files, voter_disk = written(3)
    files.fail("sync")
    with pytest.raises(ConsensusFailed, match="cannot be written"):
        voter_disk.write((), (), [LogEntry(3, 1, b"in doubt")])
    files.kill()
    after = disk(files)
    after.open()
    assert after.recover().log.end_offset == 4
    after.write((), (), [LogEntry(4, 1, b"next")])
    from random import Random

    for seed in range(20):
        files.crash(Random(seed))
        opened = disk(files)
        opened.open()
        assert opened.recover().log.end_offset == 5
