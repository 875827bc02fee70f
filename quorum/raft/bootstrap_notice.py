"""Tells an operator what a voter with an empty disk waits for."""

import logging
from collections.abc import Collection

from ...protocol.no_quorum import node_names

logger = logging.getLogger(__name__)

# Voters that are started together find each other well within this time.
_PATIENCE_MS = 5_000
_REPEAT_MS = 10_000


class BootstrapNotice:
    """Give it what is missing after each step: it says so when that lasts, and from time to time as long as it does."""

    def __init__(self, now_ms: int) -> None:
        self._next_ms = now_ms + _PATIENCE_MS

    def note(self, unheard_ids: Collection[int], now_ms: int) -> None:
        """`unheard_ids` are the voters that have not said whether they have data."""
        if unheard_ids and now_ms >= self._next_ms:
            self._next_ms = now_ms + _REPEAT_MS
            logger.warning(
                "Metadata disk is empty: a new cluster begins when all controllers have said so of theirs; "
                "waiting for %s, or for a leader",
                node_names(unheard_ids),
            )
