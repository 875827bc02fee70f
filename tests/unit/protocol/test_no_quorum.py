"""The sentence for a quorum without a majority."""

import pytest

from penstock.protocol.no_quorum import find_no_quorum, no_quorum


@pytest.mark.parametrize(
    ("voters", "unreached", "sentence"),
    [
        ((1, 2, 3), (), None),
        ((1, 2, 3), (2,), None),
        ((1, 2, 3), (3, 2), "no quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"),
        ((1, 2, 3), (1, 2, 3), "no quorum: 0 of 3 voters, 2 needed; nodes 1, 2 and 3 do not answer"),
        ((1, 2), (2,), "no quorum: 1 of 2 voters, 2 needed; node 2 does not answer"),
        ((1, 2, 3, 4), (3, 4), "no quorum: 2 of 4 voters, 3 needed; nodes 3 and 4 do not answer"),
        # Brokers that do not vote do not count.
        ((1, 2, 3), (4, 5), None),
    ],
)
def test_sentence_counts_voters_and_names_those_that_are_missing(
    voters: tuple[int, ...], unreached: tuple[int, ...], sentence: str | None
) -> None:
    assert no_quorum(voters, unreached) == sentence


def test_sentence_is_found_in_a_response_and_other_messages_are_not() -> None:
    sentence = no_quorum((1, 2, 3), (2, 3))
    assert sentence is not None
    told = b"\0\1\2" + f"The controller did not answer: {sentence}.".encode() + b"\0\0"
    assert find_no_quorum(told) == sentence
    # As HTTP says it.
    assert find_no_quorum(f"N{sentence[1:]}.".encode()) == sentence
    assert find_no_quorum(b"This server is not the leader for that topic-partition.") is None
    assert find_no_quorum(b"no quorum: \xff" + bytes(2000)) is None
