"""Clock and chance of everything in this interpreter, replaced for a simulated run.

Clients read `time.monotonic`, shuffle with `random` and draw from `os.urandom`, some already when they are imported. So
this is done before any of them is, in an interpreter that does nothing else, and never undone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

from .process import current_process

# 2026-01-01 00:00:00 UTC.
START_MS = 1_767_225_600_000


class World:
    """What time it is. `loop_s` is the loop's time of the run that goes on."""

    def __init__(self) -> None:
        self.loop_s: Callable[[], float] = lambda: 0.0

    def wall_clock_ms(self) -> int:
        """As the current process believes it to be."""
        process = current_process()
        offset_ms = 0 if process is None else process.clock_offset_ms
        return START_MS + int(self.loop_s() * 1000) + offset_ms

    def replace(self, seed: int) -> None:
        """From now on nothing here depends on when and where it runs."""
        clocks: dict[str, Callable[[], float]] = {
            "time": lambda: self.wall_clock_ms() / 1000,
            "time_ns": lambda: self.wall_clock_ms() * 1_000_000,
            "monotonic": lambda: self.loop_s(),
            "monotonic_ns": lambda: int(self.loop_s() * 1e9),
            "perf_counter": lambda: self.loop_s(),
            "perf_counter_ns": lambda: int(self.loop_s() * 1e9),
        }
        for name, clock in clocks.items():
            setattr(time, name, clock)
        for name, draw in {"choice": _choice, "shuffle": _shuffle}.items():
            setattr(random, name, draw)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        random.seed(seed)
        draw = random.Random(f"urandom {seed}").randbytes
        # The second is what SystemRandom imported.
        for module, name in ((os, "urandom"), (random, "_urandom")):
            setattr(module, name, draw)


# Clients choose from sets of tuples with a None, whose order is that of None's address before Python 3.12.


def _choice(values: Any) -> Any:
    return random.Random.choice(_generator(), sorted(values, key=repr))


def _shuffle(values: Any) -> None:
    values.sort(key=repr)
    random.Random.shuffle(_generator(), values)


def _generator() -> random.Random:
    generator: random.Random = random.getrandbits.__self__  # type: ignore[attr-defined]
    return generator
