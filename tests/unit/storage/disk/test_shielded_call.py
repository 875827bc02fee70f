"""A task that is cancelled ends with its call in the executor, not before."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from penstock.storage.disk.shielded_call import run_unbroken


def test_the_result_and_the_error_of_the_call_are_the_caller_s() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert await run_unbroken(loop, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await run_unbroken(loop, divmod, 7, 0)

    asyncio.run(run())


def test_a_task_cancelled_again_and_again_ends_when_its_call_has_ended() -> None:
    has_begun, go_on = Event(), Event()

    def call() -> None:
        has_begun.set()
        assert go_on.wait(10), "the test does not let it go on"
        raise ValueError("the task has no use for it")

    async def run() -> None:
        task = asyncio.ensure_future(run_unbroken(asyncio.get_running_loop(), call))
        assert await asyncio.get_running_loop().run_in_executor(None, has_begun.wait, 10)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({task}, timeout=0.02)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_call_that_has_not_begun_when_its_task_is_cancelled_never_does() -> None:
    go_on = Event()
    made: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        first = loop.run_in_executor(None, go_on.wait, 10)
        task = asyncio.ensure_future(run_unbroken(loop, made.append, "late"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        assert await first
        await loop.run_in_executor(None, int)

    asyncio.run(run())
    assert made == []
