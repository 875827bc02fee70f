"""The sentence for a metadata quorum without a majority: nodes send it in error messages, the terminal knows it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

# How the sentence begins, whichever node says it.
NO_QUORUM: Final = "no quorum: "
_SENTENCE: Final = re.compile(rb"[nN]o quorum: [ -~]{1,1000}? not answer")


def no_quorum(voter_ids: Collection[int], unreached_ids: Collection[int]) -> str | None:
    """The sentence; None while the voters that can be reached are a majority."""
    silent_count = len(set(voter_ids) & set(unreached_ids))
    if len(voter_ids) - silent_count >= majority(len(voter_ids)):
        return None
    return f"{NO_QUORUM}{reached_voters(voter_ids, unreached_ids)}"


def majority(voter_count: int) -> int:
    """How many voters must agree."""
    return voter_count // 2 + 1


def reached_voters(voter_ids: Collection[int], unreached_ids: Collection[int]) -> str:
    """`1 of 3 voters, 2 needed; nodes 2 and 3 do not answer`."""
    silent = sorted(set(voter_ids) & set(unreached_ids))
    there = f"{len(voter_ids) - len(silent)} of {len(voter_ids)} voters, {majority(len(voter_ids))} needed"
    if not silent:
        return there
    return f"{there}; {node_names(silent)} {'does' if len(silent) == 1 else 'do'} not answer"


def find_no_quorum(text: bytes) -> str | None:
    """The sentence in an error message, or in a whole response; other messages are of no interest.

    HTTP gives it as a sentence that begins with a capital.
    """
    found = _SENTENCE.search(text)
    return None if found is None else f"n{found.group().decode()[1:]}"


def node_names(node_ids: Collection[int]) -> str:
    """`node 1`, `nodes 1 and 2`, `nodes 1, 2 and 3`."""
    *others, last = map(str, sorted(node_ids))
    return f"nodes {', '.join(others)} and {last}" if others else f"node {last}"
