"""Work in a thread ends however its context is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from penstock.local.background_work import BackgroundWork

DEADLINE_S = 60.0


class Interrupted(BaseException):
    """As KeyboardInterrupt and SystemExit: no `except Exception` stops it."""


class Waiting(BackgroundWork):
    """Goes on until it is told to end."""

    def __init__(self) -> None:
        super().__init__("waiting")
        self.has_begun = Event()
        self.has_ended = Event()

    def _work(self) -> None:
        self.has_begun.set()
        self._is_ended.wait()
        self.has_ended.set()


class Signalling(Waiting):
    """Sends this process a signal as soon as it has begun, which is often before `__enter__` has returned."""

    def _work(self) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        super()._work()


class InterruptedPool(ThreadPoolExecutor):
    """The signal comes when the work has begun, and before its future is there."""

    def submit(self, *args: Any, **named: Any) -> Future[Any]:
        super().submit(*args, **named)
        raise Interrupted


class Failing(BackgroundWork):
    def _work(self) -> None:
        raise OSError("no answer")


@pytest.fixture
def interrupting_signal() -> Iterator[None]:
    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


def test_it_goes_on_until_the_end_of_the_context() -> None:
    with Waiting() as work:
        assert work.has_begun.wait(DEADLINE_S)
        assert not work.has_ended.is_set()
    assert work.has_ended.is_set()


def test_an_interrupted_beginning_leaves_no_thread() -> None:
    work = Waiting()
    work._pool = InterruptedPool(1)
    with pytest.raises(Interrupted), work:
        pytest.fail("it was not entered")
    assert work.has_ended.is_set()


@pytest.mark.usefixtures("interrupting_signal")
def test_a_signal_at_any_time_of_the_beginning_leaves_no_thread() -> None:
    for _ in range(50):
        work = Signalling()
        with pytest.raises(Interrupted), work:
            # Here it waits where the signal came after `__enter__`.
            Event().wait(DEADLINE_S)
        assert work.has_ended.wait(DEADLINE_S)


def test_what_goes_wrong_in_it_is_told_at_the_end() -> None:
    with pytest.raises(OSError, match="no answer"), Failing("failing"):
        pass


def test_the_error_that_leaves_the_context_comes_first() -> None:
    with pytest.raises(ValueError, match="the first"), Failing("failing"):
        raise ValueError("the first")
