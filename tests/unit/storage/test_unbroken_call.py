"""A task that is cancelled ends with its call in the executor, not before."""

import asyncio
from threading import Event

import pytest

from penstock.storage.unbroken_call import run_unbroken


def test_the_result_and_the_error_of_the_call_are_the_caller_s() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert await run_unbroken(loop, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await run_unbroken(loop, divmod, 7, 0)

    asyncio.run(run())


def test_a_task_cancelled_again_and_again_ends_when_its_call_has_ended() -> None:
    go_on = Event()

    def call() -> None:
        assert go_on.wait(10), "nobody lets it go on"
        raise ValueError("the task has no use for it")

    async def run() -> None:
        task = asyncio.ensure_future(run_unbroken(asyncio.get_running_loop(), call))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait({task}, timeout=0.02)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
