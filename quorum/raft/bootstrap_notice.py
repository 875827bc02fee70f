"""Tells an operator what a voter with an empty disk waits for."""

import logging
from collections.abc import Collection

logger = logging.getLogger(__name__)

# Voters that are started together find each other well within this time.
_PATIENCE_S = 5.0
_REPEAT_S = 60.0


class FoundingNotice:
    """Give it what is missing after each step: it says so when that lasts, and from time to time as long as it does."""

    def __init__(self, now_s: float) -> None:
        self._next_s = now_s + _PATIENCE_S

    def note(self, unheard_ids: Collection[int], now_s: float) -> None:
        """`unheard_ids` are the voters that have not said whether they have data."""
        if unheard_ids and now_s >= self._next_s:
            self._next_s = now_s + _REPEAT_S
            logger.warning(
                "metadata disk is empty: a new cluster begins when all controllers have said so of theirs; "
                "waiting for nodes %s, or for a leader",
                ", ".join(map(str, sorted(unheard_ids))),
            )
