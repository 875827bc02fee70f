"""How fast requests are taken, so that they do not hold up records: a token bucket (GCRA), which delays or refuses."""

from __future__ import annotations


class Pace:
    """So many units each second, and `burst` at once after a silence."""

    __slots__ = ("_burst_s", "_next_s", "_unit_s")

    def __init__(self, *, units_per_s: float, burst: float) -> None:
        self._unit_s = 1 / units_per_s
        self._burst_s = burst * self._unit_s
        self._next_s = float("-inf")

    def delay_s(self, now_s: float, units: float = 1.0) -> float:
        """Take these units; return how long to wait before their use."""
        start_s = max(self._next_s, now_s - self._burst_s)
        self._next_s = start_s + units * self._unit_s
        return max(0.0, self._next_s - now_s)

    @property
    def next_s(self) -> float:
        """From when on one unit can be taken without a delay."""
        return self._next_s + self._unit_s

    def take(self, now_s: float) -> bool:
        """Take one unit if it needs no delay; return whether it was taken."""
        if now_s < self.next_s:
            return False
        self.delay_s(now_s)
        return True
