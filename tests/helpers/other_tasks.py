"""The end of a process that shares its loop with the test: no task of it takes another step."""

import asyncio
import inspect


async def end_other_tasks() -> None:
    """Cancel all tasks of the loop but the caller's, and those that they leave behind, until none is left.

    Each has its first step before: one that is cancelled earlier never begins its coroutine, and what
    that was given is never closed, as a connection that the loop has just accepted.
    """
    cancelled: set[asyncio.Task[object]] = set()
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others - cancelled:
            coroutine = task.get_coro()
            if not inspect.iscoroutine(coroutine) or inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED:
                cancelled.add(task)
                task.cancel()
        await asyncio.sleep(0)
