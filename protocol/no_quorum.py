"""The sentence for a metadata quorum without a majority: nodes send it in error messages, the terminal knows it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

# How the sentence begins, whichever node says it.
NO_QUORUM: Final = "no quorum: "
_SENTENCE: Final = re.compile(rb"no quorum: [ -~]{1,1000}? not answer")


def no_quorum(voter_ids: Collection[int], unreached_ids: Collection[int]) -> str | None:
    """The sentence; None while the voters that can be reached are a majority."""
    silent = sorted(set(voter_ids) & set(unreached_ids))
    reached_count, needed_count = len(voter_ids) - len(silent), len(voter_ids) // 2 + 1
    if not silent or reached_count >= needed_count:
        return None
    verb = "does" if len(silent) == 1 else "do"
    return (
        f"{NO_QUORUM}{reached_count} of {len(voter_ids)} voters, {needed_count} needed; {node_names(silent)} {verb}"
        " not answer"
    )


def find_no_quorum(text: bytes) -> str | None:
    """The sentence in an error message, or in a whole response; other messages are of no interest."""
    found = _SENTENCE.search(text)
    return None if found is None else found.group().decode()


def node_names(node_ids: Collection[int]) -> str:
    """`node 1`, `nodes 1 and 2`, `nodes 1, 2 and 3`."""
    *others, last = map(str, sorted(node_ids))
    return f"nodes {', '.join(others)} and {last}" if others else f"node {last}"
