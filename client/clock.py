"""The clock of programs that look from outside: commands and local clusters.

A node never imports this; its two clocks are passed in.
"""

import time
from collections.abc import Callable


def now_ms() -> int:
    """Wall time in milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds on a clock that only goes forward; only differences mean something."""
    return time.monotonic()


def monotonic_ns() -> int:
    """Nanoseconds on the same clock, which all processes of a machine share."""
    return time.monotonic_ns()


def pause(seconds: float) -> None:
    """For the step of a poll with a deadline, and for nothing else."""
    time.sleep(seconds)


def wait_until(condition: Callable[[], bool], *, timeout_s: float, interval_s: float = 0.005) -> bool:
    """Polls `condition` until it holds or the time is over; returns whether it held. It is asked at least once."""
    deadline_s = monotonic_s() + timeout_s
    while not condition():
        if monotonic_s() >= deadline_s:
            return False
        pause(interval_s)
    return True
