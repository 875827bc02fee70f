"""What a node does beside its requests, for as long as it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)


class BackgroundTasks:
    """None of them may end by an error: `fail` is told, with a sentence, when one does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fail: Callable[[str], None]) -> None:
        self._loop = loop
        self._fail = fail
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, work: Coroutine[None, None, None]) -> None:
        async def watch() -> None:
            try:
                await work
            except Exception:
                logger.exception("Task failed: task=%s", name)
                self._fail(f"The {name} ended by an unexpected error, see the log.")

        self._tasks.append(self._loop.create_task(watch()))

    async def stop(self) -> None:
        """Cancels all, and waits for their ends."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks.clear()
