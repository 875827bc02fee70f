"""A call is waited for until its deadline, and no longer."""

from __future__ import annotations

import threading

import pytest

from penstock.chaos.workloads.overdue_call import call_within

LONG_S = 60.0


def test_a_call_that_returns_gives_what_it_returned() -> None:
    assert call_within(LONG_S, lambda: 7) == 7
    assert call_within(LONG_S, lambda: None) is None


def test_what_a_call_raises_is_raised() -> None:
    def refuse() -> None:
        raise KeyError("offset")

    with pytest.raises(KeyError, match="offset"):
        call_within(LONG_S, refuse)


def test_a_call_that_does_not_return_is_given_up_on() -> None:
    released = threading.Event()
    try:
        with pytest.raises(TimeoutError, match="no return within"):
            call_within(0.01, lambda: released.wait(LONG_S))
    finally:
        released.set()
