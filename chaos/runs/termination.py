"""SIGTERM ends a run in order, as Ctrl-C does: its nodes, its clients and its proxy end with it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

STATUS: Final = 128 + signal.SIGTERM
"""As of a process that the signal ended."""


@contextmanager
def ended_in_order() -> Iterator[None]:
    """What is within is left by SystemExit when SIGTERM comes; for the main thread. One that comes again, while
    everything is being ended, changes nothing."""

    def end(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(STATUS)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
