"""How long something may take yet."""

from __future__ import annotations

import time
from typing import Final

_PAUSE_S: Final = 0.1


class Deadline:
    """On a clock that only goes forward."""

    def __init__(self, timeout_s: float) -> None:
        self._end_s = time.monotonic() + timeout_s  # noqa: TID251 - tasks of Spark have no loop

    @property
    def left_s(self) -> float:
        """Never negative."""
        return max(0.0, self._end_s - time.monotonic())  # noqa: TID251

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    def pause(self) -> None:
        """Between two attempts."""
        time.sleep(min(_PAUSE_S, self.left_s))  # noqa: TID251
