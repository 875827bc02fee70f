"""Requests beyond the pace wait."""

from penstock.broker.admin.rules.pace import Pace


def test_a_burst_is_taken_at_once_and_the_rest_at_the_pace() -> None:
    pace = Pace(units_per_s=10, burst=3)
    delays = [pace.delay_s(100.0) for _ in range(5)]
    assert [round(delay, 6) for delay in delays] == [0, 0, 0, 0.1, 0.2]


def test_a_silence_gives_back_no_more_than_the_burst() -> None:
    pace = Pace(units_per_s=10, burst=2)
    assert pace.delay_s(0.0, units=2) == 0
    assert round(pace.delay_s(0.1), 6) == 0
    assert round(pace.delay_s(1_000.0, units=4), 6) == 0.2


def test_what_costs_more_holds_up_the_next() -> None:
    pace = Pace(units_per_s=100, burst=1)
    assert round(pace.delay_s(0.0, units=50), 6) == 0.49
    assert round(pace.delay_s(0.0), 6) == 0.5
