"""Calls that change files, run in the executor so that no stop leaves one behind.

Cancelling a task does not end the call that it waits for: the thread goes on, and would write to files that are being
closed, or in a folder whose lock another process has by now.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def run_unbroken(loop: asyncio.AbstractEventLoop, call: Callable[[*Ts], T], *args: *Ts) -> T:
    """Run the call in the executor; a task that is cancelled meanwhile ends when the call has ended, not before."""
    running = loop.run_in_executor(None, call, *args)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not running.cancelled():
            # What came of it concerns no task any more.
            running.exception()
        raise cancelled
    return running.result()
