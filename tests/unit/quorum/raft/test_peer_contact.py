"""Which voters count as reached, with and without a leader."""

from typed_ids import node_ids

from penstock.protocol.ids import NodeId
from penstock.quorum.raft.peer_contact import SILENCE_MS_MAX, PeerContact

TWO, THREE = node_ids(2, 3)


def contact() -> PeerContact:
    """Of node 1, in contact with both others."""
    contact = PeerContact((TWO, THREE), 0)
    for peer_id in (TWO, THREE):
        contact.on_link(peer_id, is_up=True)
        contact.on_message(peer_id, 0)
    return contact


def test_voter_without_a_link_is_not_reached() -> None:
    assert PeerContact((TWO, THREE), 0).unreached_ids(0) == {TWO, THREE}
    found = contact()
    assert found.unreached_ids(0) == frozenset()
    found.on_link(TWO, is_up=False)
    assert found.unreached_ids(0) == {TWO}
    assert (found.heard_ms(TWO), found.heard_ms(THREE)) == (None, 0)


def test_follower_is_not_missed_though_it_says_nothing_while_there_is_a_leader() -> None:
    found = contact()
    found.on_leadership(TWO, 10)
    assert found.unreached_ids(100 * SILENCE_MS_MAX) == frozenset()


def test_voter_that_is_silent_while_there_is_no_leader_is_not_reached() -> None:
    found = contact()
    found.on_leadership(TWO, 10)
    found.on_leadership(None, 50_000)
    found.on_leadership(None, 51_000)
    assert found.unreached_ids(50_000 + SILENCE_MS_MAX - 1) == frozenset()
    found.on_message(THREE, 50_000 + SILENCE_MS_MAX - 1)
    assert found.unreached_ids(50_000 + SILENCE_MS_MAX) == {TWO}
    found.on_leadership(NodeId(3), 60_000)
    assert found.unreached_ids(70_000) == frozenset()
