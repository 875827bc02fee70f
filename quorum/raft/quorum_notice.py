"""Tells an operator, again and again, that a node waits for a quorum and for whom."""

import logging
from typing import Final

from ...protocol.no_quorum import NO_QUORUM

logger = logging.getLogger(__name__)

# An election takes less, and so does the start of all nodes of a cluster together.
PATIENCE_MS: Final = 5_000
REPEAT_MS: Final = 10_000


class QuorumNotice:
    """Note each time why there is no leader; None when there is one."""

    def __init__(self) -> None:
        self._next_ms: int | None = None

    def note(self, problem: str | None, now_ms: int) -> None:
        """`problem` is the sentence of `no_quorum`, or another."""
        if problem is None:
            self._next_ms = None
        elif self._next_ms is None:
            self._next_ms = now_ms + PATIENCE_MS
        elif now_ms >= self._next_ms:
            self._next_ms = now_ms + REPEAT_MS
            logger.warning("Waiting for a quorum: %s", problem.removeprefix(NO_QUORUM))
