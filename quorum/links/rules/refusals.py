"""Log lines about refused links, bounded in number whatever peers connect.

A peer's sentence is written when it is another than the one before, or when the last of these was long ago. Peers
put into it what they like, so a peer has one line in ten seconds, and all of them together have some tens.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

logger = logging.getLogger(__name__)

PAUSE_S: Final = 10.0
AGAIN_S: Final = 600.0
LINES_PER_PAUSE_MAX: Final = 32
# Remembered; the least recent peer is forgotten, and logged again when it returns.
_PEERS_MAX: Final = 256


@dataclass(slots=True)
class _Told:
    sentence: str
    logged_s: float
    noted_s: float


class Refusals:
    """Of one node. `clock` is the loop's, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[str, _Told] = {}
        self._pause_from_s = float("-inf")
        self._line_count = 0

    def note(self, peer: str, sentence: str) -> None:
        """Log the sentence, unless it is what was logged last about this peer or there is too much of it."""
        now_s = self._clock()
        told = self._told.pop(peer, None)
        if told is not None:
            is_known = told.sentence == sentence and now_s - told.noted_s < AGAIN_S
            if is_known or now_s - told.logged_s < PAUSE_S:
                told.noted_s = now_s
                self._told[peer] = told
                return
        if now_s - self._pause_from_s >= PAUSE_S:
            self._pause_from_s, self._line_count = now_s, 0
        self._line_count += 1
        if self._line_count > LINES_PER_PAUSE_MAX:
            if self._line_count == LINES_PER_PAUSE_MAX + 1:
                logger.warning("Quorum links refused: too many to name them all")
            return
        if len(self._told) >= _PEERS_MAX:
            del self._told[next(iter(self._told))]
        self._told[peer] = _Told(sentence, now_s, now_s)
        logger.warning("Quorum link refused: %s", sentence)
