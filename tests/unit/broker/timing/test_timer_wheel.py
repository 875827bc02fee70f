"""Deadlines are never met early, late by less than a tick, and what was removed does not expire."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.timing.timer_wheel import TimerWheel


def test_entry_expires_at_its_deadline_rounded_up() -> None:
    wheel: TimerWheel[str] = TimerWheel(5)
    wheel.add("a", 12)
    assert wheel.next_deadline_ms == 15
    assert list(wheel.advance(14)) == []
    assert list(wheel.advance(15)) == ["a"]
    assert wheel.next_deadline_ms is None


def test_removed_entry_does_not_expire() -> None:
    wheel: TimerWheel[str] = TimerWheel(5)
    tick = wheel.add("a", 10)
    wheel.add("b", 10)
    wheel.remove("a", tick)
    wheel.remove("a", tick)
    assert list(wheel.advance(100)) == ["b"]
    wheel.remove("b", tick)


def test_everything_can_be_taken_at_once_in_order() -> None:
    wheel: TimerWheel[str] = TimerWheel(1)
    for entry, deadline_ms in (("c", 30), ("a", 10), ("b", 20), ("a2", 10)):
        wheel.add(entry, deadline_ms)
    assert list(wheel.take_all()) == ["a", "a2", "b", "c"]
    assert len(wheel) == 0
    assert list(wheel.advance(100)) == []


@given(
    tick_ms=st.integers(1, 20),
    deadlines=st.lists(st.integers(0, 300), max_size=50),
    steps=st.lists(st.integers(0, 60), max_size=20),
)
def test_no_entry_is_early_lost_or_a_tick_late(tick_ms: int, deadlines: list[int], steps: list[int]) -> None:
    wheel: TimerWheel[tuple[int, int]] = TimerWheel(tick_ms)
    for number, deadline_ms in enumerate(deadlines):
        wheel.add((number, deadline_ms), deadline_ms)
    waiting = set(enumerate(deadlines))
    now_ms = 0
    for step in [*steps, 1000]:
        now_ms += step
        for entry in wheel.advance(now_ms):
            assert entry[1] <= now_ms
            waiting.remove(entry)
        assert all(deadline_ms + tick_ms > now_ms for _, deadline_ms in waiting)
    assert not waiting


def test_what_was_removed_makes_nothing_early() -> None:
    wheel: TimerWheel[str] = TimerWheel(1)
    tick = wheel.add("put off", 10)
    wheel.add("later", 30)
    wheel.remove("put off", tick)
    assert wheel.next_deadline_ms == 30
    wheel.add("again", 10)
    assert wheel.next_deadline_ms == 10
    assert list(wheel.advance(30)) == ["again", "later"]
