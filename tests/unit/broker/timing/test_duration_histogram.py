"""Durations in buckets: how exact they are, and the window of their quantiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.timing.rules.duration_histogram import (
    BUCKET_COUNT,
    FAST_UNITS,
    ROTATION_MS,
    STEPS,
    UNIT_BITS,
    WINDOW_MS,
    DurationHistogram,
    bucket_of,
    longest_s,
    quantiles_s,
    upper_bound_s,
)

LONGEST_NS = 100_000_000_000


@given(st.integers(min_value=1 << UNIT_BITS, max_value=LONGEST_NS))
def test_a_duration_is_below_the_end_of_its_bucket_by_an_eighth_at_most(duration_ns: int) -> None:
    histogram = DurationHistogram()
    histogram.add(duration_ns)
    end_s = longest_s(histogram.buckets)
    assert duration_ns / 1e9 < end_s <= (duration_ns / 1e9) * (1 + 1 / STEPS) + 2 * (1 << UNIT_BITS) / 1e9


@given(st.integers(min_value=0, max_value=1 << 40))
def test_buckets_are_in_the_order_of_durations(units: int) -> None:
    assert 0 <= bucket_of(units) <= bucket_of(units + 1) < BUCKET_COUNT
    assert bucket_of(units + 1) - bucket_of(units) <= 1
    assert upper_bound_s(bucket_of(units)) <= upper_bound_s(bucket_of(units + 1))


@pytest.mark.parametrize("duration_ns", [-5, 0, (FAST_UNITS << UNIT_BITS) - 1, FAST_UNITS << UNIT_BITS, 1 << 60])
def test_every_duration_is_counted(duration_ns: int) -> None:
    histogram = DurationHistogram()
    histogram.add(duration_ns)
    histogram.add(duration_ns, 16)
    assert histogram.count == 17
    assert histogram.sum_ns == 17 * duration_ns


def test_quantiles_are_those_of_the_counts() -> None:
    histogram = DurationHistogram()
    for number in range(1, 101):
        histogram.add(number * 1_000_000)
    half, most, nearly_all = quantiles_s(histogram.buckets, (0.5, 0.95, 0.999))
    assert 0.050 <= half <= 0.057
    assert 0.095 <= most <= 0.107
    assert 0.100 <= nearly_all <= 0.113
    assert quantiles_s([0] * BUCKET_COUNT, (0.5, 0.99)) == [0, 0]


def test_quantiles_forget_what_is_older_than_the_window() -> None:
    histogram = DurationHistogram()
    histogram.rotate(0)
    for _ in range(100):
        histogram.add(1_000_000_000)
    now_ms = 0
    while now_ms < WINDOW_MS:
        now_ms += ROTATION_MS
        histogram.rotate(now_ms)
        assert sum(histogram.recent(now_ms)) == (100 if now_ms < WINDOW_MS + ROTATION_MS else 0)
    now_ms += ROTATION_MS
    histogram.rotate(now_ms)
    histogram.add(1_000_000)
    assert sum(histogram.recent(now_ms)) == 1
    assert longest_s(histogram.recent(now_ms)) < 0.0012
    assert histogram.count == 101


def test_the_past_is_bounded() -> None:
    histogram = DurationHistogram()
    for now_ms in range(0, 20 * WINDOW_MS, ROTATION_MS // 10):
        histogram.rotate(now_ms)
    assert len(histogram._past) <= WINDOW_MS // ROTATION_MS + 2
