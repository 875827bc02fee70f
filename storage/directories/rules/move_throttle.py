"""How fast logs are moved: `replica.alter.log.dirs.io.max.bytes.per.second`, which may change at any time (KIP-113)."""

from collections.abc import Callable
from typing import Final

_PAUSE_S_MAX: Final = 0.5
"""After which the rate is asked again."""
_PIECES_PER_S: Final = 4
"""At a low rate: a second's worth at once would be a burst."""
_PIECE_BYTES_MIN: Final = 4096


class MoveThrottle:
    """`take` what is copied, then pause while `pause_s` says so, and tell `pass_s` how long that was."""

    def __init__(self, bytes_per_s: Callable[[], float]) -> None:
        self._bytes_per_s = bytes_per_s
        self._owed_bytes = 0.0
        self._rate = 0.0

    def piece_bytes(self, max_bytes: int) -> int:
        """How much to copy at once."""
        return int(max(min(max_bytes, self._bytes_per_s() / _PIECES_PER_S), _PIECE_BYTES_MIN))

    def take(self, size_bytes: int) -> None:
        self._rate_now()
        self._owed_bytes += size_bytes

    def pause_s(self) -> float:
        """0 when nothing is owed; a rate of 0 stops all moves."""
        rate = self._rate_now()
        if rate <= 0:
            return _PAUSE_S_MAX
        pause_s = self._owed_bytes / rate
        if pause_s < 1e-3:
            # Too short to sleep: it is added to the next.
            return 0
        return min(pause_s, _PAUSE_S_MAX)

    def pass_s(self, seconds: float) -> None:
        self._owed_bytes = max(self._owed_bytes - seconds * max(self._bytes_per_s(), 0), 0)

    def _rate_now(self) -> float:
        rate = self._bytes_per_s()
        if 0 < rate < self._rate:
            # What was moved before is owed for no longer than it was then.
            self._owed_bytes *= rate / self._rate
        if rate > 0:
            self._rate = rate
        return rate
