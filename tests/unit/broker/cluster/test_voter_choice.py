"""The order in which a node asks voters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from typed_ids import node_ids

from penstock.broker.cluster.rules.voter_choice import SilentVoters, VoterChoice
from penstock.protocol.ids import NodeId

VOTERS = node_ids(1, 2, 3)
PAUSE_MS = 2_000


def new_choice(silent: SilentVoters | None = None) -> VoterChoice:
    return VoterChoice(VOTERS, silent or SilentVoters(PAUSE_MS))


def test_the_leader_is_asked_first() -> None:
    assert new_choice().choose(NodeId(2), 0) == 2


def test_without_a_leader_the_voter_that_was_of_use_is_asked_again() -> None:
    choice = new_choice()
    choice.on_useful(choice.choose(NodeId(2), 0))
    assert choice.choose(None, 0) == 2


def test_a_voter_that_failed_is_not_asked_again_before_the_others_whatever_the_last_word_on_the_leader_is() -> None:
    choice = new_choice()
    asked = []
    for _ in VOTERS:
        asked.append(choice.choose(NodeId(3), 0))
        choice.on_refused(asked[-1])
    assert asked == [3, 1, 2]
    assert choice.is_round_over(0)
    assert choice.choose(NodeId(3), 0) == 3


def test_a_voter_that_is_named_anew_is_asked_once_more_at_once() -> None:
    choice = new_choice()
    for leader_id, asked in ((None, 1), (None, 2), (NodeId(1), 1), (None, 3)):
        assert choice.choose(leader_id, 0) == asked
        choice.on_refused(NodeId(asked))
    # A new round: names that change again and again keep no voter from being asked.
    assert choice.choose(NodeId(2), 0) == 2
    choice.on_refused(NodeId(2))
    for leader_id, asked in ((None, 3), (NodeId(2), 2), (NodeId(3), 3), (NodeId(2), 1)):
        assert choice.choose(leader_id, 0) == asked
        choice.on_refused(NodeId(asked))


def test_a_silent_voter_is_left_out_of_the_rounds_for_a_while() -> None:
    choice = new_choice()
    choice.on_silent(choice.choose(NodeId(3), 0), 0)
    for now_ms in range(0, PAUSE_MS, 100):
        voter_id = choice.choose(NodeId(3), now_ms)
        assert voter_id != 3
        choice.on_refused(voter_id)
    assert choice.choose(NodeId(3), PAUSE_MS) == 3


def test_what_one_request_found_silent_others_do_not_ask_first() -> None:
    silent = SilentVoters(PAUSE_MS)
    first, second = new_choice(silent), new_choice(silent)
    second.on_useful(second.choose(NodeId(3), 0))
    first.on_silent(first.choose(NodeId(3), 0), 0)
    assert second.choose(NodeId(3), 0) != 3


def test_an_answer_ends_the_silence() -> None:
    silent = SilentVoters(PAUSE_MS)
    choice = new_choice(silent)
    choice.on_silent(choice.choose(NodeId(3), 0), 0)
    choice.on_refused(NodeId(3))
    assert not silent.is_silent(NodeId(3), 0)


def test_when_all_are_silent_each_is_asked_in_turn() -> None:
    choice = new_choice()
    asked = []
    for _ in range(6):
        asked.append(choice.choose(None, 0))
        choice.on_silent(asked[-1], 0)
    assert asked == [1, 2, 3, 1, 2, 3]


def test_the_only_voter_is_asked_always() -> None:
    choice = VoterChoice(node_ids(7), SilentVoters(PAUSE_MS))
    for _ in range(3):
        assert choice.choose(NodeId(7), 0) == 7
        choice.on_silent(NodeId(7), 0)
        assert choice.is_round_over(0)


@given(st.lists(st.tuples(st.sampled_from((None, *VOTERS)), st.booleans(), st.integers(0, 700)), max_size=60))
def test_a_voter_that_answers_is_asked_in_each_round(
    steps: list[tuple[NodeId | None, bool, int]],
) -> None:
    """Voter 3 is dead or silent at random; 1 and 2 answer that they do not lead."""
    choice, now_ms, asked = new_choice(), 0, []
    for leader_id, is_silent, passed_ms in steps:
        now_ms += passed_ms
        voter_id = choice.choose(leader_id, now_ms)
        asked.append(voter_id)
        if voter_id == 3 and is_silent:
            choice.on_silent(NodeId(3), now_ms)
        else:
            choice.on_refused(voter_id)
    # First in one round and last in the next is the furthest apart; others may be asked twice in each.
    window = 4 * len(VOTERS) - 3
    for living in (1, 2):
        gaps = [one for one in range(len(asked) - window + 1) if living not in asked[one : one + window]]
        assert not gaps, asked
