"""A wall clock that is wrong for a moment decides nothing; one that is corrected is followed in time."""

from __future__ import annotations

import pytest

from penstock.broker.node.steady_clock import STEP_MS, TRUST_MS, SteadyClock

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
TEN_YEARS_MS = 10 * 365 * 24 * HOUR_MS


def test_it_shows_the_wall_clock_while_that_runs_as_it_should() -> None:
    clock = SteadyClock(START_MS, 5_000)
    assert [clock.now_ms(START_MS + ms, 5_000 + ms) for ms in (0, 10, HOUR_MS)] == [
        START_MS,
        START_MS + 10,
        START_MS + HOUR_MS,
    ]


def test_small_corrections_are_followed_however_many() -> None:
    clock = SteadyClock(START_MS, 0)
    for number in range(1, 100):
        wall_ms = START_MS + number * (1_000 + STEP_MS)
        assert clock.now_ms(wall_ms, number * 1_000) == wall_ms


@pytest.mark.parametrize("jump_ms", [HOUR_MS, TEN_YEARS_MS, -HOUR_MS, -TEN_YEARS_MS])
def test_jump_that_is_taken_back_was_never_seen(jump_ms: int) -> None:
    clock = SteadyClock(START_MS, 0)
    for loop_ms in range(0, TRUST_MS, 60_000):
        assert clock.now_ms(START_MS + jump_ms + loop_ms, loop_ms) == START_MS + loop_ms
        assert not clock.is_wall_clock_trusted
    assert clock.now_ms(START_MS + TRUST_MS, TRUST_MS) == START_MS + TRUST_MS
    assert clock.is_wall_clock_trusted


@pytest.mark.parametrize("jump_ms", [HOUR_MS, TEN_YEARS_MS, -HOUR_MS, -TEN_YEARS_MS])
def test_jump_that_lasts_is_believed(jump_ms: int) -> None:
    clock = SteadyClock(START_MS, 0)
    assert clock.now_ms(START_MS + jump_ms, 0) == START_MS
    assert clock.now_ms(START_MS + jump_ms + TRUST_MS, TRUST_MS) == START_MS + jump_ms + TRUST_MS
    assert clock.is_wall_clock_trusted


def test_clock_that_jumps_on_is_not_believed_before_it_rests() -> None:
    clock = SteadyClock(START_MS, 0)
    for hours in range(10):
        loop_ms = hours * TRUST_MS
        assert clock.now_ms(START_MS + loop_ms + (hours + 1) * TEN_YEARS_MS, loop_ms) == START_MS + loop_ms
