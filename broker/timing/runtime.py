"""What the parts of one node share: its event loop, clocks, random numbers, and how a part ends the node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from msgspec import Struct


class Runtime(Struct, frozen=True, kw_only=True):
    """In simulations all of it is virtual, and drawn from one seed."""

    loop: asyncio.AbstractEventLoop
    wall_clock_ms: Callable[[], int]
    """Milliseconds since 1970, as the machine says: for timestamps."""
    steady_clock_ms: Callable[[], int]
    """The wall clock without its jumps (`SteadyClock`): for what expires by a timestamp on disk."""
    monotonic_ms: Callable[[], int]
    """The loop's clock: for timeouts. It means nothing after a restart."""
    random: Random
    fail: Callable[[str], None]
    """Stops the node; the argument is one sentence that says why it cannot go on."""
