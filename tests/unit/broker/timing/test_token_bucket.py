"""Kafka's token bucket (KIP-599): it begins full, may be overdrawn once, and is paid back at the rate."""

from __future__ import annotations

import pytest

from penstock.broker.timing.rules.token_bucket import TokenBucket

RATE = 2.0


def made() -> TokenBucket:
    return TokenBucket(burst_ms=11_000)


def test_a_bucket_begins_full() -> None:
    assert made().tokens(RATE, 123_456) == 22


def test_a_debt_is_waited_for_at_the_rate() -> None:
    bucket = made()
    bucket.take(30, RATE, 0)
    assert bucket.tokens(RATE, 0) == -8
    assert bucket.throttle_time_ms(RATE, 0) == 4000
    assert bucket.throttle_time_ms(RATE, 3999) == 1
    assert bucket.throttle_time_ms(RATE, 4000) == 0


def test_a_bucket_is_never_more_than_full() -> None:
    bucket = made()
    bucket.take(-100, RATE, 0)
    assert bucket.tokens(RATE, 1_000_000) == 22


def test_a_lower_rate_leaves_less_of_what_was_saved() -> None:
    bucket = made()
    assert bucket.tokens(RATE, 0) == 22
    assert bucket.tokens(1.0, 0) == 11


@pytest.mark.parametrize("size", [1, 5, 50])
def test_a_client_that_waits_for_its_debt_settles_at_its_quota(size: int) -> None:
    """Virtual time: within 5 % of the quota, behind what it could save."""
    bucket = made()
    now_ms = taken = 0
    while now_ms < 1_000_000:
        throttle_ms = bucket.throttle_time_ms(RATE, now_ms)
        if not throttle_ms:
            bucket.take(size, RATE, now_ms)
            taken += size
        now_ms += max(throttle_ms, 1)
    assert taken == pytest.approx(RATE * 1000 + 22, rel=0.05)
