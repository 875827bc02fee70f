"""What goes wrong with the tier of a simulated cluster: calls that fail, and outages for seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .disk_faults import FaultSchedule
from .simulated_tier import SimulatedTier

_OUTAGES_S: Final = ((0.2, 1.0), (1.0, 6.0))
_FAILED_CALLS: Final = (1, 1, 2, 5, 20)


class TierFaults:
    def __init__(self, faults: FaultSchedule, tier: SimulatedTier) -> None:
        self._faults = faults
        self._tier = tier
        self._random = tier.random
        self.actions: tuple[tuple[str, float, Callable[[], None]], ...] = (
            ("tier-outage", 0.010, self.take_out),
            ("tier-error", 0.030, self.fail_calls),
        )
        """With the kind of each, and the chance at each step."""

    def take_out(self) -> None:
        """For all nodes, for a time of its own."""
        if self._tier.is_out:
            return
        duration_s = self._random.uniform(*self._random.choice(_OUTAGES_S))
        self._faults.note("tier outage", f"{duration_s:.3f}")
        self._tier.is_out = True
        self._faults.later(duration_s, self._bring_back)

    def fail_calls(self) -> None:
        """Of whichever node comes next; some have done what was asked."""
        count = self._random.choice(_FAILED_CALLS)
        self._faults.note("tier error", count)
        self._tier.failures_left = count

    def heal(self) -> None:
        self._bring_back()
        self._tier.failures_left = 0

    def _bring_back(self) -> None:
        self._tier.is_out = False
