"""Known bugs of the library's own shell, each replayed against the voter (B1 to B12), and the rules around them."""

import pytest
from quorum_table import TIMING, Table, elected

from penstock.protocol.ids import NodeId
from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.raft.inbox import PeerGone
from penstock.quorum.raft.journal_items import Term
from penstock.quorum.raft.messages import (
    Append,
    AppendAck,
    BarrierAck,
    BarrierProbe,
    EntryBody,
    PreVote,
    PreVoteRequest,
    SnapshotPart,
    TermNotice,
    Vote,
    VoteRequest,
)
from penstock.quorum.raft.snapshot_transfer import FinishSnapshot, OutgoingSnapshot, checksum


def stale_heartbeat(table: Table, follower: int) -> Append:
    """Return a heartbeat as the leader sent it a while ago."""
    for source_id, target_id, message in reversed(table.sent):
        if (source_id, target_id) == (table.leader_id, follower) and isinstance(message, Append):
            return message
    raise AssertionError("no heartbeat was sent")


def test_a_delayed_heartbeat_takes_nothing_from_the_log() -> None:
    """B1: the library cuts the log behind the entry before every append."""
    table = elected()
    follower = table.followers[0]
    table.run(0.3)
    stale = stale_heartbeat(table, follower)
    table.propose(table.leader_id, *(b"%d" % number for number in range(10)))
    table.run(0.5)
    assert table.logs[follower].end_offset == 11
    step = table.step(follower, (table.leader_id, stale))
    assert (table.logs[follower].end_offset, step.commit_end, step.items) == (11, 11, [])


def test_delayed_entries_take_nothing_from_the_log() -> None:
    """B1, with entries in the message: what is there already is not written again."""
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    table.propose(leader, b"a", b"b", b"c")
    table.run(0.5)
    term = table.cores[leader].term
    stale = Append(term, 0, term, 1, (EntryBody(term, b"a"),))
    step = table.step(follower, (leader, stale))
    assert (table.logs[follower].end_offset, step.commit_end, step.items) == (4, 4, [])


def test_a_delayed_heartbeat_takes_nothing_that_is_not_committed_yet() -> None:
    """B1: what was acknowledged may be committed, though this voter has not heard so."""
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    term = table.cores[leader].term
    stale = Append(term, 0, term, 1, ())
    table.step(follower, (leader, Append(term, 0, term, 1, (EntryBody(term, b"a"), EntryBody(term, b"b")))))
    step = table.step(follower, (leader, stale))
    assert (table.logs[follower].end_offset, step.commit_end, step.items) == (3, 1, [])


def test_entries_that_conflict_replace_the_tail() -> None:
    """Raft §5.3."""
    table = elected()
    old = table.leader_id
    table.isolate(old)
    table.propose(old, b"lost 1", b"lost 2")
    table.run(3)
    new = table.leader_id
    assert new != old
    table.propose(new, b"kept")
    table.run(0.5)
    table.cut.clear()
    table.run(1)
    commands = [table.logs[old].entry(offset).command for offset in range(table.logs[old].end_offset)]
    assert commands == [table.logs[new].entry(offset).command for offset in range(table.logs[new].end_offset)]
    assert b"kept" in commands
    assert b"lost 1" not in commands


def candidate(table: Table) -> int:
    """Return a voter that campaigns and that no voter answers."""
    node_id = table.followers[0]
    table.is_lost = lambda *_: True
    end_ms = table.now_ms + 1_500
    while not any(isinstance(message, PreVoteRequest) for source, _, message in table.sent if source == node_id):
        assert table.now_ms < end_ms
        table.now_ms += 10
        table.step(node_id)
    return node_id


def test_a_voter_has_one_vote() -> None:
    """B2: the library counts answers, not voters."""
    table = elected(5)
    node_id = candidate(table)
    others = [peer_id for peer_id in table.ids if peer_id != node_id]
    term = table.cores[node_id].term + 1
    for peer_id in others[:2]:
        table.step(node_id, (peer_id, PreVote(term - 1, term)))
    assert table.cores[node_id].term == term
    for _ in range(4):
        table.step(node_id, (others[0], Vote(term)))
    assert not table.cores[node_id].is_leader
    table.step(node_id, (others[1], Vote(term)))
    assert table.cores[node_id].is_leader


def test_a_vote_counts_in_its_own_term_only() -> None:
    """Raft §5.2; the library's votes carry no term."""
    table = elected(5)
    node_id = candidate(table)
    others = [peer_id for peer_id in table.ids if peer_id != node_id]
    term = table.cores[node_id].term + 1
    for peer_id in others[:2]:
        table.step(node_id, (peer_id, PreVote(term - 1, term)))
    for peer_id in others:
        table.step(node_id, (peer_id, Vote(term - 1)))
    assert (table.cores[node_id].term, table.cores[node_id].is_leader) == (term, False)
    for peer_id in others[:2]:
        table.step(node_id, (peer_id, Vote(term)))
    assert table.cores[node_id].is_leader


def test_no_voter_votes_for_a_log_that_ends_before_its_own() -> None:
    """Raft §5.4.1."""
    table = elected()
    leader, (follower, other) = table.leader_id, table.followers
    term = table.cores[leader].term
    table.step(follower, (leader, Append(term, 0, term, 1, (EntryBody(term, b"a"), EntryBody(term, b"b")))))
    shorter = table.step(follower, (other, VoteRequest(term + 1, 1, term, True)))
    older = table.step(follower, (other, VoteRequest(term + 2, 9, term - 1, True)))
    equal = table.step(follower, (other, VoteRequest(term + 3, 2, term, True)))
    votes = [[message for _, message in step.messages if isinstance(message, Vote)] for step in (shorter, older, equal)]
    assert votes == [[], [], [Vote(term + 3)]]


def test_a_voter_has_one_pre_vote() -> None:
    table = elected(5)
    node_id = candidate(table)
    others = [peer_id for peer_id in table.ids if peer_id != node_id]
    term = table.cores[node_id].term
    for _ in range(4):
        table.step(node_id, (others[0], PreVote(term, term + 1)))
    assert table.cores[node_id].term == term


def test_an_acknowledgement_counts_in_its_own_term_only() -> None:
    """B3: the library's acknowledgements carry no term."""
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    table.cut = {(a, b) for a in table.ids for b in table.ids}
    (entry,) = table.propose(leader, b"only here")
    term = table.cores[leader].term
    step = table.step(leader, (follower, AppendAck(term - 1, entry.offset + 1, True, True, 7)))
    assert step.commit_end == 1
    step = table.step(leader, (follower, AppendAck(term, entry.offset + 1, True, True, 7)))
    assert step.commit_end == 2


def test_an_acknowledgement_beyond_the_log_commits_nothing_more() -> None:
    table = elected()
    leader = table.leader_id
    term = table.cores[leader].term
    step = table.step(leader, (table.followers[0], AppendAck(term, 10_000, True, True, 7)))
    assert step.commit_end == 1


def part(term: int, end_offset: int, epoch: int, chunks: tuple[bytes, ...], *, is_last: bool) -> SnapshotPart:
    return SnapshotPart(term, end_offset, epoch, 0, chunks, checksum(chunks), is_last)


def test_a_snapshot_message_commits_nothing() -> None:
    """B4: any snapshot message moved the commit index over entries that no voter had compared."""
    table = elected()
    old = table.leader_id
    table.isolate(old)
    table.propose(old, b"phantom 1", b"phantom 2")
    table.run(0.05)
    new = next(node_id for node_id in table.ids if node_id != old)
    term = table.cores[old].term + 1
    step = table.step(old, (new, part(term, 40, 2, (b"chunk",), is_last=False)))
    assert step.commit_end == 1
    assert table.logs[old].end_offset == 3
    step = table.step(old, (new, Append(term, 39, 2, 40, ())))
    assert step.commit_end == 1


def test_what_follows_an_installed_snapshot_is_not_acknowledged_with_it() -> None:
    """No leader has compared it: entries of another one may lie there in its log."""
    table = elected()
    leader, (follower, next_leader) = table.leader_id, table.followers
    term = table.cores[leader].term
    entries = tuple(EntryBody(term, b"%d" % number) for number in range(5))
    table.step(follower, (leader, Append(term, 0, term, 1, entries)))
    step = table.step(follower, (next_leader, part(term + 1, 4, term, (b"chunk",), is_last=True)))
    (finished,) = [work for work in step.snapshot_work if isinstance(work, FinishSnapshot)]
    table.cores[follower].on_snapshot_finished(finished)
    step = table.step(follower)
    assert (step.installed, table.logs[follower].end_offset) == (finished, 6)
    acknowledged = [message for _, message in step.messages if isinstance(message, AppendAck) and message.is_match]
    assert [message.next_offset for message in acknowledged] == [4]


def test_a_damaged_snapshot_part_is_neither_written_nor_acknowledged() -> None:
    """B5: a snapshot that could not be loaded was answered with success and replaced the good one."""
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    good = part(table.cores[leader].term, 40, 1, (b"chunk",), is_last=True)
    step = table.step(follower, (leader, good._replace(checksum=good.checksum ^ 1)))
    assert step.snapshot_work == []
    assert not any(isinstance(message, AppendAck) and message.is_match for _, message in step.messages)
    step = table.step(follower, (leader, good))
    assert [type(work).__name__ for work in step.snapshot_work] == ["KeepPart", "FinishSnapshot"]


def compacted(seed: int = 1) -> tuple[Table, int]:
    """Return a table whose leader has forgotten what the one that was isolated lacks, and that one."""
    table = elected(seed=seed)
    lagging = table.followers[0]
    table.isolate(lagging)
    table.propose(table.leader_id, *(b"%d" % number for number in range(30)))
    table.run(0.5)
    for node_id in table.ids:
        if node_id != lagging:
            table.cores[node_id].trim_to(25)
    return table, lagging


def test_a_voter_that_is_far_behind_gets_the_snapshot() -> None:
    table, lagging = compacted()
    leader = table.leader_id
    table.cut.clear()
    table.run(0.3)
    assert table.steps[leader][-1].wants_snapshot
    table.cores[leader].offer_snapshot(OutgoingSnapshot(28, 1, (b"a", b"b")))
    finished = False
    for _ in range(100):
        table.run(0.01)
        work = table.steps[lagging][-1].snapshot_work
        if work and isinstance(work[-1], FinishSnapshot):
            table.cores[lagging].on_snapshot_finished(work[-1])
            finished = True
    assert finished
    assert [step.installed for step in table.steps[lagging] if step.installed] == [FinishSnapshot(28, 1)]
    assert (table.logs[lagging].start_offset, table.logs[lagging].end_offset) == (28, 31)
    assert table.commit_end(lagging) == 31
    table.propose(leader, b"more")
    table.run(0.3)
    assert table.commit_end(lagging) == 32


def test_an_isolated_restarted_leader_commits_nothing_alone() -> None:
    """B8: after a restart the library took everything in its log for committed."""
    table = elected()
    leader = table.leader_id
    table.propose(leader, *(b"%d" % number for number in range(30)))
    table.run(0.5)
    for node_id in table.ids:
        table.start(node_id, commit_end=31, is_new_disk=False)
    table.run(3)
    leader = table.leader_id
    committed = table.commit_end(leader)
    table.cut = {(a, b) for a in table.ids for b in table.ids}
    table.propose(leader, b"not replicated")
    table.run(0.1)
    assert table.commit_end(leader) == committed


def terms(table: Table) -> set[int]:
    return {core.term for core in table.cores.values()}


def test_a_bridge_partition_starts_no_election() -> None:
    """B11: without pre-vote, two voters that both see the third took the leadership from each other for ever."""
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    before = terms(table)
    table.cut = {(leader, follower), (follower, leader)}
    table.run(20)
    assert terms(table) == before
    assert table.leader_id == leader


@pytest.mark.thorough
def test_a_voter_that_comes_back_after_long_disturbs_no_leader() -> None:
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    before = terms(table)
    table.isolate(follower)
    table.run(30)
    table.cut.clear()
    table.run(3)
    assert terms(table) == before
    assert table.leader_id == leader


def test_a_leader_that_hears_no_majority_steps_down() -> None:
    """B12: the library's leader stayed one for 27 s, and nothing taught it better."""
    table = elected()
    leader = table.leader_id
    token = object()
    table.isolate(leader)
    table.cores[leader].begin_barrier(token)
    table.run(1.2)
    assert not table.cores[leader].is_leader
    assert any(token in step.dropped_barriers for step in table.steps[leader])
    assert not any(result.token is token for step in table.steps[leader] for result in step.barriers)


def test_an_old_leader_is_told_of_the_new_term() -> None:
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    term = table.cores[leader].term
    table.cores[follower].step([(NodeId(leader), TermNotice(term + 5))], [])
    step = table.step(follower, (leader, Append(term, 0, 1, 1, ())))
    assert (leader, TermNotice(term + 5)) in step.messages
    table.step(leader, (follower, TermNotice(term + 5)))
    assert (table.cores[leader].is_leader, table.cores[leader].term) == (False, term + 5)


def test_votes_are_refused_while_a_leader_is_heard() -> None:
    table = elected()
    candidate_id, voter = table.followers
    term = table.cores[voter].term
    request = VoteRequest(term + 1, 0, term, False)
    step = table.step(voter, (candidate_id, request))
    assert not any(isinstance(message, Vote) for _, message in step.messages)
    assert table.cores[voter].term == term
    step = table.step(voter, (candidate_id, request._replace(is_transfer=True)))
    assert (candidate_id, Vote(term + 1)) in step.messages


def test_a_vote_is_on_the_disk_before_it_is_sent_and_survives_a_restart() -> None:
    """D2."""
    table = elected()
    candidate_id, voter = table.followers
    term = table.cores[voter].term + 1
    step = table.step(voter, (candidate_id, VoteRequest(term, 0, term - 1, True)))
    assert [item.voted_for for item in step.items if isinstance(item, Term)][-1] == candidate_id
    assert not any(isinstance(message, Vote) for _, message in step.early)
    table.start(voter, commit_end=1, is_new_disk=False)
    step = table.step(voter, (table.leader_id, VoteRequest(term, 5, term, True)))
    assert not any(isinstance(message, Vote) for _, message in step.messages)


def test_only_a_leader_s_entries_leave_before_its_disk_has_them() -> None:
    """D1."""
    table = elected()
    table.propose(table.leader_id, b"x")
    table.run(2)
    for steps in table.steps.values():
        for step in steps:
            for _, message in step.early:
                assert isinstance(message, Append | SnapshotPart) or type(message).__name__ == "BarrierProbe"
            if any(isinstance(item, Term) for item in step.items):
                assert step.early == []


def test_a_second_leader_in_a_term_stops_the_voter() -> None:
    table = elected()
    leader = table.leader_id
    forged = Append(table.cores[leader].term, 0, 1, 1, ())
    with pytest.raises(ConsensusFailed, match="says that it leads term"):
        table.step(leader, (table.followers[0], forged))


def test_the_loss_of_the_leader_s_process_is_answered_at_once() -> None:
    table = elected()
    dead = table.leader_id
    followers = table.followers
    table.isolate(dead)
    for follower in followers:
        table.step(follower, (dead, PeerGone()))
    table.run(0.6)
    assert any(table.cores[follower].is_leader for follower in followers)
    leader = next(follower for follower in followers if table.cores[follower].is_leader)
    assert table.commit_end(leader) == 2


def test_what_the_leader_sent_before_it_was_gone_does_not_hold_the_election_up() -> None:
    """A slow disk may let both wait for one step. An election may need a second round, but seldom does."""
    seeds = range(1, 11)
    assert sum(elects_at_once(seed) for seed in seeds) > len(seeds) / 2


def elects_at_once(seed: int) -> bool:
    """Before the time is over in which voters that just heard their leader do not campaign."""
    table = elected(seed=seed)
    dead, followers = table.leader_id, table.followers
    table.isolate(dead)
    for follower in followers:
        table.step(follower, (dead, stale_heartbeat(table, follower)), (dead, PeerGone()))
    table.run(0.45)
    return any(table.cores[follower].is_leader for follower in followers)


def test_a_leader_that_one_voter_takes_for_gone_goes_on_leading() -> None:
    """A network that refuses connections for it: no other voter helps, and its next heartbeat sets that one right."""
    table = elected()
    leader, before = table.leader_id, terms(table)
    for _ in range(20):
        table.step(table.followers[0], (leader, PeerGone()))
        table.run(0.09)
    assert (table.leader_id, terms(table)) == (leader, before)


def test_a_voter_that_is_wrong_about_the_leader_and_hears_nothing_asks_in_vain_and_not_for_ever_in_haste() -> None:
    table = elected()
    leader, wrong = table.leader_id, table.followers[0]
    before = terms(table)
    table.cut = {(leader, wrong), (wrong, leader)}
    table.step(wrong, (leader, PeerGone()))
    table.run(1.2)
    table.sent.clear()
    table.run(3)
    asked = [
        message for source_id, _, message in table.sent if source_id == wrong and isinstance(message, PreVoteRequest)
    ]
    assert 0 < len(asked) <= 2 * (3_000 / TIMING.election_min_ms + 1)
    assert (table.leader_id, terms(table)) == (leader, before)
    table.cut.clear()
    table.run(1)
    assert (table.leader_id, terms(table)) == (leader, before)


def test_the_loss_of_another_process_changes_nothing() -> None:
    table = elected()
    leader = table.leader_id
    lost, other = table.followers
    before = terms(table)
    table.step(other, (lost, PeerGone()))
    table.step(leader, (lost, PeerGone()))
    table.run(0.3)
    assert terms(table) == before


def test_a_barrier_needs_answers_sent_after_it_began() -> None:
    table = elected()
    leader, follower = table.leader_id, table.followers[0]
    term = table.cores[leader].term
    table.cut = {(a, b) for a in table.ids for b in table.ids}
    table.cores[leader].begin_barrier("one")
    assert table.step(leader).barriers == []
    assert table.step(leader, (follower, BarrierAck(term - 1, 1))).barriers == []
    assert table.step(leader, (follower, BarrierAck(term, 0))).barriers == []
    step = table.step(leader, (follower, BarrierAck(term, 1)))
    assert [(result.token, result.end_offset) for result in step.barriers] == [("one", 1)]


def test_a_new_leader_begins_no_barrier_before_an_entry_of_its_own_term_is_committed() -> None:
    table = elected()
    leader = candidate(table)
    voter = next(node_id for node_id in table.ids if node_id != leader)
    core = table.cores[leader]
    table.step(leader, (voter, PreVote(core.term, core.term + 1)))
    table.step(leader, (voter, Vote(core.term)))
    assert core.is_leader
    core.begin_barrier("one")
    step = table.step(leader)
    assert not any(isinstance(message, BarrierProbe) for _, message in step.early + step.messages)
    assert not core.has_new_barriers


def test_a_quorum_is_fresh_only_while_a_majority_answers() -> None:
    table = elected()
    leader = table.leader_id
    assert [table.cores[node_id].has_fresh_quorum for node_id in table.ids] == [
        node_id == leader for node_id in table.ids
    ]
    table.isolate(table.followers[0])
    table.run(0.6)
    assert table.cores[leader].has_fresh_quorum
    table.isolate(table.followers[1])
    table.run(0.6)
    assert table.cores[leader].is_leader
    assert not table.cores[leader].has_fresh_quorum
