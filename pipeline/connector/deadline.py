"""How long something may take yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_PAUSE_S: Final = 0.1


class Deadline:
    """On a clock that only goes forward. It is over, too, as soon as `is_given_up` is true."""

    def __init__(self, timeout_s: float, is_given_up: Callable[[], bool] = lambda: False) -> None:
        self._is_given_up = is_given_up
        self._end_s = time.monotonic() + timeout_s  # noqa: TID251 - tasks of Spark have no loop

    @property
    def left_s(self) -> float:
        """Never negative."""
        return max(0.0, self._end_s - time.monotonic())  # noqa: TID251

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0 or self._is_given_up()

    def pause(self) -> None:
        """Between two attempts."""
        time.sleep(min(_PAUSE_S, self.left_s))  # noqa: TID251
