"""A signal to stop that comes in the middle of a step is handled at its end."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.local.held_signals import stop_signals_held


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def step(number: signal.Signals, done: list[str]) -> None:
    with stop_signals_held():
        with stop_signals_held():
            os.kill(os.getpid(), number)
            done.append("inner")
        done.append("outer")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_for_the_end_of_the_step(number: signal.Signals) -> None:
    done: list[str] = []
    former = signal.signal(number, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            step(number, done)
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, former)
    assert done == ["inner", "outer"]


def test_one_that_is_ignored_stays_so() -> None:
    done: list[str] = []
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        step(signal.SIGHUP, done)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, former)
    assert done == ["inner", "outer"]


def test_other_threads_have_nothing_to_hold() -> None:
    def handler() -> object:
        with stop_signals_held():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handler).result() == signal.getsignal(signal.SIGINT)
