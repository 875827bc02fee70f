"""Kafka's rate over samples, and the throttle time that follows from it: KIP-13, `Rate`, `QuotaUtils`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.timing.rules.sampled_rate import SampledRate
from penstock.broker.timing.rules.token_bucket import THROTTLE_MS_MAX

NUM, WINDOW_MS = 11, 1000


def made(sample_count: int = NUM, window_ms: int = WINDOW_MS) -> SampledRate:
    return SampledRate(sample_count=sample_count, window_ms=window_ms)


class Reference:
    """The same by all samples, as Kafka's classes describe it: nothing is kept but a list of values."""

    def __init__(self, sample_count: int, window_ms: int) -> None:
        self.sample_count, self.window_ms = sample_count, window_ms
        self.samples: list[list[tuple[int, int]]] = []
        self.starts: list[int] = []

    def record(self, value: int, now_ms: int) -> None:
        if not self.starts or now_ms - self.starts[-1] >= self.window_ms:
            self.starts.append(now_ms)
            self.samples.append([])
        self.samples[-1].append((now_ms, value))

    def rate(self, now_ms: int) -> float:
        alive = [
            (start, values)
            for start, values in zip(self.starts, self.samples, strict=True)
            if now_ms - values[-1][0] < self.sample_count * self.window_ms
        ]
        elapsed_ms = now_ms - alive[0][0] if alive else 0
        missing = max(0, self.sample_count - 1 - elapsed_ms // self.window_ms)
        total = sum(value for _, values in alive for _, value in values)
        return total * 1000 / max(elapsed_ms + missing * self.window_ms, 1)


def test_first_values_are_divided_by_the_whole_samples() -> None:
    rate = made()
    rate.record(1000, 0)
    assert rate.rate(0) == 100
    assert rate.rate(500) == 1000 / 10.5


def test_values_count_until_their_sample_is_old() -> None:
    rate = made()
    rate.record(1000, 0)
    assert rate.rate(10_999) > 0
    assert rate.rate(11_000) == 0


def test_throttle_time_is_as_quota_utils_has_it() -> None:
    rate = made(10, 1000)
    rate.record(500, 0)
    # 500 over nine whole seconds is 55.6 a second, and 50 over ten.
    assert rate.throttle_time_ms(56, 0) == 0
    assert rate.throttle_time_ms(50, 0) == 1000
    # What passes of a sample is added to the nine whole ones.
    assert rate.throttle_time_ms(50, 400) == 600


def test_what_is_taken_back_does_not_count() -> None:
    rate = made()
    rate.record(5000, 0)
    rate.record(-5000, 1)
    assert rate.rate(1) == 0
    assert rate.throttle_time_ms(1, 1) == 0


def test_no_throttle_time_is_more_than_a_response_can_say() -> None:
    rate = made()
    rate.record(1e18, 0)
    assert rate.throttle_time_ms(1e-9, 0) == THROTTLE_MS_MAX
    assert rate.throttle_time_ms(0, 0) == THROTTLE_MS_MAX


@given(
    sample_count=st.integers(1, 12),
    window_ms=st.sampled_from((1, 10, 1000)),
    steps=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 10**9)), min_size=1, max_size=30),
)
def test_the_rate_is_that_of_all_samples(sample_count: int, window_ms: int, steps: list[tuple[int, int]]) -> None:
    rate, reference = made(sample_count, window_ms), Reference(sample_count, window_ms)
    now_ms = 0
    for passed_ms, value in steps:
        now_ms += passed_ms
        rate.record(value, now_ms)
        reference.record(value, now_ms)
        assert rate.rate(now_ms) == reference.rate(now_ms)


@pytest.mark.parametrize("excess", [1, 50, 90])
def test_after_the_throttle_time_the_rate_is_within_the_bound(excess: int) -> None:
    """For as long as the time by which is divided grows: a sample."""
    rate = made()
    rate.record(1000 + excess, 0)
    throttle_ms = rate.throttle_time_ms(100, 0)
    assert rate.throttle_time_ms(100, throttle_ms - 1) > 0
    assert rate.throttle_time_ms(100, throttle_ms) == 0


@pytest.mark.parametrize("sizes", [(10,), (25,), (100,), (10, 100)], ids=str)
@pytest.mark.parametrize("round_trip_ms", [1, 20])
def test_a_client_that_waits_as_it_is_told_settles_at_its_quota(sizes: tuple[int, ...], round_trip_ms: int) -> None:
    """Virtual time: it sends what it may at once, waits, and over many windows it has its quota, within 5 %.

    `sizes` of requests are in percent of what the quota allows in a second.
    """
    bound, from_ms, until_ms = 100, 33_000, 333_000
    rate = made()
    now_ms = sent = number = 0
    while now_ms < until_ms:
        size = sizes[number % len(sizes)]
        number += 1
        rate.record(size, now_ms)
        sent += size if now_ms >= from_ms else 0
        now_ms += rate.throttle_time_ms(bound, now_ms) + round_trip_ms
    assert sent == pytest.approx(bound * (until_ms - from_ms) / 1000, rel=0.05)
