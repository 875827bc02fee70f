"""Whole voters with their disks: snapshots that arrive, disks that are full or new, and what is told meanwhile."""

import asyncio

import pytest
from simulated_quorum import Quorum

from penstock.chaos.simulation.simulated_voter import FOLDER, SimulatedVoter
from penstock.quorum.raft.consensus import CommitPosition, OutcomeUnknown


def left_behind(quorum: Quorum) -> SimulatedVoter:
    """Let one follower miss so much that only a snapshot brings it back. It is cut off."""
    quorum.commit(b"first")
    behind, _ = quorum.followers()
    quorum.until(quorum.is_equal)
    quorum.isolate(behind.node_id)
    for round_number in range(2):
        # Entries since the last but one snapshot are kept for those who are a little behind.
        quorum.commit(*(b"%d.%d" % (round_number, number) + bytes(200) for number in range(50)))
        assert quorum.leader.save_snapshot()
        quorum.run(5)
    return behind


def test_a_snapshot_for_which_there_is_no_room_waits_until_there_is(caplog: pytest.LogCaptureFixture) -> None:
    with Quorum() as quorum:
        behind = left_behind(quorum)
        files = behind.files
        files.capacity_bytes = files.total_bytes("/") - files.free_bytes("/") + 500
        quorum.heal()
        quorum.run(10)
        assert behind.is_up
        assert not behind.has_failed
        assert behind.commands == [b"first"]
        assert not [name for name in files.list_directory("/metadata") if "checkpoint" in name]
        files.capacity_bytes = None
        quorum.until(quorum.is_equal)
        quorum.commit(b"last")
        quorum.until(quorum.is_equal)
        behind.kill(has_power=False)
        behind.start()
        quorum.until(quorum.is_equal)
    given_up = [
        record for record in caplog.records if "Failed to store the leader's metadata snapshot" in record.getMessage()
    ]
    assert len(given_up) == 1


@pytest.mark.parametrize("count", [1, 2, 4])
def test_reads_of_a_snapshot_for_a_peer_that_fail_are_tried_again(count: int) -> None:
    with Quorum() as quorum:
        behind = left_behind(quorum)
        quorum.leader.files.fail("read", count=count)
        quorum.heal()
        quorum.until(quorum.is_equal)
        assert behind.is_up
        assert not any(voter.has_failed for voter in quorum.voters.values())


def test_a_leader_whose_snapshot_cannot_be_read_gives_its_place_to_one_that_reads_its_own() -> None:
    with Quorum() as quorum:
        behind = left_behind(quorum)
        leader = quorum.leader
        leader.is_failure_expected = True
        leader.files.fail("read", count=None)
        quorum.heal()
        quorum.until(lambda: behind.commands == leader.commands)
        assert str(leader.failure).startswith("The newest metadata snapshot cannot be read: ")
        leader.files.heal()


def test_a_snapshot_that_arrived_and_cannot_be_read_back_comes_again() -> None:
    with Quorum() as quorum:
        behind = left_behind(quorum)
        behind.files.fail("read", count=2)
        quorum.heal()
        quorum.until(quorum.is_equal)
        assert not behind.has_failed


def test_a_journal_device_that_fails_stops_the_voter_with_a_sentence() -> None:
    with Quorum() as quorum:
        quorum.commit(b"first")
        failing, other = quorum.followers()
        failing.is_failure_expected = True
        failing.files.fail("sync", count=None)
        quorum.commit(b"second")
        quorum.until(lambda: failing.has_failed)
        assert failing.failure is not None
        assert str(failing.failure).startswith("The metadata journal in /metadata cannot be written: ")
        failing.files.heal()
        failing.kill(has_power=True)
        failing.start()
        quorum.commit(b"third")
        quorum.until(quorum.is_equal)
        assert other.commands == [b"first", b"second", b"third"]


def test_proposals_that_a_snapshot_jumped_over_have_an_unknown_outcome() -> None:
    with Quorum() as quorum:
        quorum.commit(b"first")
        quorum.until(quorum.is_equal)
        old = quorum.leader
        assert old.voter is not None
        assert old.loop is not None
        waiting: list[asyncio.Future[CommitPosition]] = []
        # It stands still with proposals that no other voter has, and wakes up when the others are past them.
        quorum.isolate(old.node_id)
        for number in range(3):
            waiting.append(old.voter.propose(b"lost %d" % number, epoch=old.voter.epoch))
        quorum.run(0.2)
        old.loop.pause()
        quorum.until(lambda: any(voter.is_leader and voter is not old for voter in quorum.voters.values()))
        for round_number in range(2):
            quorum.commit(*(b"%d.%d" % (round_number, number) for number in range(50)))
            assert quorum.leader.save_snapshot()
            quorum.run(5)
        quorum.heal()
        old.loop.resume()
        quorum.until(quorum.is_equal)
        for future in waiting:
            with pytest.raises(OutcomeUnknown):
                future.result()
        assert not any(command.startswith(b"lost") for command in old.commands)


def test_two_emptied_disks_of_three_forget_nothing_that_the_third_has() -> None:
    with Quorum() as quorum:
        quorum.commit(b"first", b"second")
        quorum.until(quorum.is_equal)
        *emptied, last = quorum.voters.values()
        for voter in (*emptied, last):
            voter.kill(has_power=True)
        for voter in emptied:
            voter.swap_disk()
            voter.start()
        quorum.run(20)
        assert not any(voter.is_leader for voter in emptied)
        # Neither do they when it is back: it alone is a member, and no majority.
        last.start()
        quorum.run(20)
        assert not any(voter.is_leader for voter in quorum.voters.values())
        # What one voter has, copied by hand to another whose process is down, makes a majority.
        first, second = emptied
        last.kill(has_power=True)
        first.kill(has_power=True)
        for name in first.files.list_directory(FOLDER):
            first.files.remove(f"{FOLDER}/{name}")
        for name in last.files.list_directory(FOLDER):
            first.files.write(f"{FOLDER}/{name}", last.files.read(f"{FOLDER}/{name}"))
        last.start()
        first.start()
        quorum.commit(b"third")
        quorum.until(lambda: quorum.is_equal() and second.voter is not None and second.voter.is_member)
        assert second.commands == [b"first", b"second", b"third"]


def test_a_voter_that_hears_no_leader_names_none() -> None:
    """Brokers that fetch from it are sent on then: what it has may be old."""
    with Quorum() as quorum:
        quorum.commit(b"first")
        member, swapped = quorum.followers()
        swapped.kill(has_power=True)
        swapped.swap_disk()
        quorum.commit(b"second")
        # The disk is new, and no voter hears that it has caught up: it does not count, and has no election to begin.
        for peer_id in (member.node_id, quorum.leader.node_id):
            quorum.network.cut(swapped.node_id, peer_id)
        swapped.start()
        quorum.until(lambda: swapped.voter is not None and swapped.voter.leader_id == quorum.leader.node_id)
        assert swapped.voter is not None
        assert not swapped.voter.is_member
        for cut_off in (member, swapped):
            quorum.isolate(cut_off.node_id)
        quorum.run(1.2)
        for cut_off in (member, swapped):
            assert cut_off.voter is not None
            assert cut_off.voter.leader_id is None
        quorum.heal()
        quorum.commit(b"third")
        quorum.until(quorum.is_equal)
