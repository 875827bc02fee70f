"""Wall time for decisions: whether records are old enough to be deleted, and producers idle enough to be forgotten.

Such decisions compare the time of day with what is on disk, so the loop's clock alone will not do; but deleting cannot
be undone, and a wall clock may be wrong for a moment. So time here goes by the loop's clock, and follows the wall clock
only where that moves along with it:

    the wall clock is                          then
    within `STEP_MS` of what it should be      it is followed: that is how a clock is kept right
    further off, forward or back               the old time goes on, until the new one has lasted `TRUST_MS`
"""

from typing import Final

STEP_MS: Final = 60_000
"""More than a clock is corrected by in small steps between two looks, and little beside any retention."""
TRUST_MS: Final = 3_600_000
"""A wall clock that has differed for this long is right, and the time before was wrong."""


class SteadyClock:
    """Values in, values out: the caller passes what both clocks show. Call it every minute or so."""

    __slots__ = ("_offset_ms", "_other_offset_ms", "_other_since_ms")

    def __init__(self, wall_ms: int, loop_ms: int) -> None:
        # Wall time less loop time, as it is believed; and as it has been lately, when that is something else.
        self._offset_ms = wall_ms - loop_ms
        self._other_offset_ms: int | None = None
        self._other_since_ms = 0

    @property
    def is_wall_clock_trusted(self) -> bool:
        return self._other_offset_ms is None

    def now_ms(self, wall_ms: int, loop_ms: int) -> int:
        """The time that the clock shows, which is believed or not."""
        offset_ms = wall_ms - loop_ms
        if abs(offset_ms - self._offset_ms) <= STEP_MS:
            self._offset_ms = offset_ms
            self._other_offset_ms = None
        elif self._other_offset_ms is None or abs(offset_ms - self._other_offset_ms) > STEP_MS:
            self._other_offset_ms = offset_ms
            self._other_since_ms = loop_ms
        elif loop_ms - self._other_since_ms >= TRUST_MS:
            self._offset_ms = offset_ms
            self._other_offset_ms = None
        else:
            self._other_offset_ms = offset_ms
        return loop_ms + self._offset_ms
