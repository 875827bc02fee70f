"""Who may vote: empty disks of a new cluster, and a new disk under an old id."""

from quorum_table import Table, elected

from penstock.protocol.ids import NodeId
from penstock.quorum.raft.messages import Admission, CensusReply, CensusRequest, PreVote, RaftMessage, Vote, VoteRequest


def test_a_new_cluster_needs_all_voters_to_say_that_their_disks_are_empty() -> None:
    table = Table()
    table.cut = {(a, b) for a in table.ids for b in table.ids}
    table.run(3)
    assert not any(core.is_member for core in table.cores.values())
    table.cut -= {(1, 2), (2, 1)}
    table.run(3)
    assert not any(core.is_member for core in table.cores.values())
    assert [table.cores[node_id].unheard_ids for node_id in table.ids] == [{3}, {3}, {1, 2}]
    # 1 hears all of them, the others do not hear each other: it alone is a member, and no majority.
    table.cut -= {(1, 3), (3, 1)}
    table.run(3)
    assert not any(core.is_leader for core in table.cores.values())
    table.cut.clear()
    table.run(3)
    assert all(core.is_member for core in table.cores.values())
    assert not table.cores[1].unheard_ids
    assert table.leader_id in table.ids


def test_a_new_cluster_of_which_one_voter_goes_again_has_a_quorum() -> None:
    table = Table()
    # All have answered each other, and 3 is gone before anyone is elected.
    table.run(0.05)
    assert all(core.is_member for core in table.cores.values())
    table.isolate(3)
    table.run(3)
    assert table.leader_id in (1, 2)


def test_an_empty_disk_that_hears_of_data_waits() -> None:
    table = Table()
    table.cut = {(a, b) for a in table.ids for b in table.ids}
    table.step(1)
    request = next(message for _, _, message in table.sent if isinstance(message, CensusRequest))
    table.step(
        1,
        (2, CensusReply(0, request.disk_incarnation, True)),
        (3, CensusReply(0, request.disk_incarnation, False)),
    )
    table.run(1)
    assert not table.cores[1].is_member
    assert not table.cores[1].unheard_ids


def test_an_answer_to_an_earlier_run_does_not_count() -> None:
    table = Table()
    table.cut = {(a, b) for a in table.ids for b in table.ids}
    table.step(1)
    request = next(message for _, _, message in table.sent if isinstance(message, CensusRequest))
    table.step(
        1,
        (2, CensusReply(0, request.disk_incarnation + 1, False)),
        (3, CensusReply(0, request.disk_incarnation + 1, False)),
    )
    table.run(1)
    assert not table.cores[1].is_member


def test_a_new_disk_under_an_old_id_waits_until_it_has_caught_up() -> None:
    table = elected()
    leader = table.leader_id
    swapped, other = table.followers
    table.propose(leader, *(b"%d" % number for number in range(5)))
    table.run(0.5)
    table.isolate(swapped)
    table.start(swapped)
    # The other follower is gone too: with the new disk alone nothing is committed.
    table.cut = {(a, b) for a in table.ids for b in table.ids if other in (a, b)}
    table.propose(leader, b"not committed")
    table.run(0.5)
    assert table.logs[swapped].end_offset == 7
    assert not table.cores[swapped].is_member
    assert table.commit_end(leader) == 6
    term = table.cores[leader].term
    step = table.step(swapped, (other, VoteRequest(term + 1, 20, term, True)))
    assert not any(isinstance(message, Vote | PreVote) for _, message in step.messages)
    # With a majority that does not count it, an entry proposed since lets it back in.
    table.cut.clear()
    table.run(1.2)
    while not table.cores[swapped].is_member:
        if table.steps[table.leader_id][-1].wants_entry:
            table.propose(table.leader_id, b"since")
        assert table.now_ms < 60_000
        table.run(0.1)


def test_a_leader_asks_for_an_entry_when_a_disk_comes_back() -> None:
    table = elected()
    leader, swapped = table.leader_id, table.followers[0]
    table.start(swapped)
    table.run(0.5)
    assert table.steps[leader][-1].wants_entry
    assert not table.cores[swapped].is_member
    table.propose(leader, b"")
    table.run(0.5)
    assert table.cores[swapped].is_member
    assert not table.steps[leader][-1].wants_entry


def test_the_vote_of_an_old_disk_elects_no_leader_beside_the_one_that_the_new_disk_counts_for() -> None:
    """Of five voters. A candidate that had the old disk's vote lacks the entry that let the new disk in again, and a
    majority has it."""
    table = elected(5)
    leader = table.leader_id
    candidate, swapped, second, third = table.followers
    term = table.cores[leader].term
    # The candidate does not hear the leader any more, and its vote requests reach one voter, then none.
    everyone = {(a, b) for a in table.ids for b in table.ids if candidate in (a, b)}
    table.cut = everyone - {(candidate, swapped), (swapped, candidate)}
    request = VoteRequest(term + 1, table.logs[candidate].end_offset - 1, table.logs[candidate].last_epoch, True)
    votes = table.step(swapped, (candidate, request)).messages
    assert [message for _, message in votes if isinstance(message, Vote)] == [Vote(term + 1)]
    old_vote = next(message for _, message in votes if isinstance(message, Vote))
    # Its disk is replaced; the vote is still on its way. The leader of the earlier term lets the new disk in.
    table.cut = everyone
    table.start(swapped)
    while not table.cores[swapped].is_member:
        assert table.leader_id == leader
        if table.steps[leader][-1].wants_entry:
            table.propose(leader, b"since")
        assert table.now_ms < 60_000
        table.run(0.1)
    assert table.cores[leader].term == term
    # Now the candidate's requests get through to everyone, with the same term and log, and so does the old vote.
    for voter in (swapped, second, third):
        answers = table.step(voter, (candidate, request)).messages
        assert not any(isinstance(message, Vote | PreVote) for _, message in answers)
    core = table.cores[candidate]
    core._rules.on_higher_term(NodeId(leader), term)
    core._campaign(table.now_ms)
    assert core.term == term + 1
    table.step(candidate, (swapped, old_vote))
    assert not core.is_leader
    table.cut = set()
    table.run(3)
    assert {table.commit_end(node_id) for node_id in table.ids} == {table.logs[table.leader_id].end_offset}


def test_an_admission_of_an_earlier_run_or_term_lets_no_voter_in() -> None:
    table = elected()
    leader, swapped = table.leader_id, table.followers[0]
    table.is_lost = lambda _source, _target, message: isinstance(message, Admission)
    table.start(swapped)
    table.run(0.5)
    table.propose(leader, b"")
    table.run(0.5)
    admission: RaftMessage = next(message for _, _, message in table.sent if isinstance(message, Admission))
    table.start(swapped)
    table.run(0.2)
    table.step(swapped, (leader, admission))
    assert not table.cores[swapped].is_member
