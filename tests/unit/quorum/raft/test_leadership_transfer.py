"""Leadership transfer (Raft thesis §3.10)."""

import pytest
from quorum_table import Table, elected

from penstock.protocol.ids import NodeId
from penstock.quorum.raft.consensus import TransferFailed
from penstock.quorum.raft.leadership_transfer import TIMEOUT_MS, LeadershipTransfer
from penstock.quorum.raft.messages import Append, RaftMessage, TimeoutNow


def transfer_to(table: Table, target_id: NodeId | None) -> tuple[LeadershipTransfer, int]:
    """Run until it is done; return it and how long that took."""
    leader_id = table.leader_id
    begun_ms = table.now_ms
    transfer = table.cores[leader_id].begin_transfer(target_id)
    while not transfer.is_done:
        assert table.now_ms < begun_ms + 3 * TIMEOUT_MS
        table.run(0.01)
    return transfer, table.now_ms - begun_ms


def keep_entries_from(table: Table, node_id: int) -> None:
    """Let heartbeats through, so that the node stays in touch."""
    table.is_lost = lambda _, to_id, message: to_id == node_id and isinstance(message, Append) and bool(message.entries)


def test_leadership_goes_to_a_voter_that_has_everything() -> None:
    table = elected()
    term, target_id = table.cores[table.leader_id].term, table.followers[0]
    transfer, duration_ms = transfer_to(table, NodeId(target_id))
    assert (transfer.leader_id, table.leader_id) == (target_id, target_id)
    assert table.cores[target_id].term == term + 1
    assert duration_ms < 100


def test_without_a_target_it_goes_to_the_voter_that_has_the_most() -> None:
    table = elected(5)
    leader_id, (first, *others) = table.leader_id, table.followers
    table.is_lost = lambda _, target_id, message: target_id in others[1:] and isinstance(message, Append)
    table.propose(leader_id, b"a")
    table.run(0.3)
    table.isolate(first)
    table.cores[leader_id].set_link(NodeId(first), is_up=False)
    assert transfer_to(table, None)[0].leader_id == others[0]


def test_a_target_that_lags_gets_everything_first() -> None:
    table = elected()
    leader_id, target_id = table.leader_id, table.followers[0]
    table.is_lost = lambda _, to_id, message: (
        to_id == target_id and isinstance(message, Append) and bool(message.entries)
    )
    table.propose(leader_id, b"a", b"b")
    table.run(0.2)
    assert table.logs[target_id].end_offset == 1
    transfer = table.cores[leader_id].begin_transfer(NodeId(target_id))
    table.run(0.2)
    assert table.cores[leader_id].holds_proposals
    assert not any(isinstance(message, TimeoutNow) for _, _, message in table.sent)
    table.is_lost = lambda *_: False
    table.cores[leader_id].set_link(NodeId(target_id), is_up=True)
    table.run(0.3)
    assert transfer.leader_id == target_id
    assert table.logs[target_id].entry(2).command == b"b"


def test_a_target_that_does_not_catch_up_leaves_the_leader_leading() -> None:
    table = elected()
    leader_id, target_id = table.leader_id, table.followers[0]
    term = table.cores[leader_id].term
    table.is_lost = lambda _, to_id, message: (
        to_id == target_id and isinstance(message, Append) and bool(message.entries)
    )
    table.propose(leader_id, b"a")
    transfer, duration_ms = transfer_to(table, NodeId(target_id))
    with pytest.raises(
        TransferFailed, match=f"Node {target_id} did not catch up within 1 s: it has the log to offset 1"
    ):
        _ = transfer.leader_id
    assert duration_ms == pytest.approx(TIMEOUT_MS, abs=200)
    assert (table.leader_id, table.cores[leader_id].term) == (leader_id, term)
    assert not table.cores[leader_id].holds_proposals
    table.propose(leader_id, b"b")
    table.run(0.3)
    assert table.commit_end(leader_id) == 3


def test_a_target_that_does_not_take_over_leaves_the_leader_leading() -> None:
    table = elected()
    leader_id, target_id = table.leader_id, table.followers[0]
    table.is_lost = lambda *sent: isinstance(sent[2], TimeoutNow)
    transfer, _ = transfer_to(table, NodeId(target_id))
    with pytest.raises(TransferFailed, match=f"Node {target_id} has everything and did not take over within 1 s"):
        _ = transfer.leader_id
    assert table.leader_id == leader_id
    asked = [message for _, _, message in table.sent if isinstance(message, TimeoutNow)]
    assert 8 <= len(asked) <= 11


def test_a_request_that_is_lost_is_made_again() -> None:
    table = elected()
    lost: list[RaftMessage] = []

    def lose_first(_source: int, _target: int, message: RaftMessage) -> bool:
        if isinstance(message, TimeoutNow) and not lost:
            lost.append(message)
            return True
        return False

    table.is_lost = lose_first
    target_id = table.followers[1]
    assert transfer_to(table, NodeId(target_id))[0].leader_id == target_id
    assert lost


@pytest.mark.parametrize(
    ("target_id", "sentence"),
    [(9, "Node 9 is not one of the other voters."), (None, "No other voter can be reached.")],
)
def test_a_transfer_without_a_target_that_can_lead_fails_at_once(target_id: NodeId | None, sentence: str) -> None:
    table = elected()
    for peer_id in table.followers:
        table.cores[table.leader_id].set_link(NodeId(peer_id), is_up=False)
    transfer, duration_ms = transfer_to(table, target_id)
    with pytest.raises(TransferFailed) as caught:
        _ = transfer.leader_id
    assert str(caught.value) == sentence
    assert duration_ms < 50


def test_an_unreachable_target_is_known_at_once() -> None:
    table = elected()
    target_id = table.followers[0]
    table.cores[table.leader_id].set_link(NodeId(target_id), is_up=False)
    with pytest.raises(TransferFailed, match=f"Node {target_id} cannot be reached"):
        _ = transfer_to(table, NodeId(target_id))[0].leader_id


def test_only_one_is_under_way() -> None:
    table = elected()
    core = table.cores[table.leader_id]
    core.begin_transfer(None)
    with pytest.raises(TransferFailed, match="under way already"):
        core.begin_transfer(None)


def test_it_waits_until_what_was_proposed_is_committed() -> None:
    """A proposer that waits for an entry is answered by the leader that took it."""
    table = elected(5)
    leader_id, (target_id, *others) = table.leader_id, table.followers
    table.is_lost = lambda _, to_id, message: to_id in others and isinstance(message, Append)
    table.propose(leader_id, b"a")
    transfer = table.cores[leader_id].begin_transfer(NodeId(target_id))
    table.run(0.2)
    assert (table.logs[target_id].end_offset, table.commit_end(leader_id)) == (2, 1)
    assert not any(isinstance(message, TimeoutNow) for _, _, message in table.sent)
    table.is_lost = lambda *_: False
    for peer_id in others:
        table.cores[leader_id].set_link(NodeId(peer_id), is_up=True)
    table.run(0.3)
    assert transfer.leader_id == target_id
    assert table.commit_end(leader_id) >= 2


def test_a_leader_that_no_voter_follows_after_all_says_so() -> None:
    transfer = LeadershipTransfer(NodeId(2), now_ms=0, ask_again_ms=100)
    transfer.note_leader(None, 500)
    assert not transfer.is_done
    transfer.note_leader(None, 500 + TIMEOUT_MS)
    with pytest.raises(TransferFailed, match="no new leader appeared"):
        _ = transfer.leader_id


def test_a_leader_that_is_elected_again_says_so() -> None:
    transfer = LeadershipTransfer(NodeId(2), now_ms=0, ask_again_ms=100)
    transfer.note_leader(None, 500)
    assert transfer.proceed({}, (), log_end=1, commit_end=1, now_ms=600) is None
    with pytest.raises(TransferFailed, match="this node leads again"):
        _ = transfer.leader_id
