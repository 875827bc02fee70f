"""Durations of the last minute, for their average and maximum. Kafka: `Sensor` with `Avg` and `Max`."""

from collections import deque
from typing import Final

WINDOW_MS: Final = 60_000
# With more than these in a minute the window is shorter.
_KEPT_MAX: Final = 4_096


class RecentTimes:
    """Of one kind; durations and times in milliseconds of one clock."""

    def __init__(self) -> None:
        self._noted: deque[tuple[int, int]] = deque(maxlen=_KEPT_MAX)

    def note(self, duration_ms: int, now_ms: int) -> None:
        self._noted.append((now_ms, duration_ms))

    def average_and_max(self, now_ms: int) -> tuple[float, int]:
        """Zeros when there was none."""
        while self._noted and self._noted[0][0] <= now_ms - WINDOW_MS:
            self._noted.popleft()
        durations = [duration_ms for _, duration_ms in self._noted]
        return (sum(durations) / len(durations), max(durations)) if durations else (0.0, 0)
