"""Requests by API and version, and the stages of their times."""

from __future__ import annotations

import pytest

from penstock.broker.network.rules.request_statistics import (
    BURST_MAX,
    FEW_OF,
    MANY_PER_S,
    OF_NODE,
    TIMED_PER_S,
    VERSION_BITS,
    RequestStatistics,
    RequestTimer,
)

MS = 1_000_000
"""In the nanoseconds of histograms."""


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> float:
        return self.now_ms / 1000


def test_stages_of_a_request_that_waits_add_up_to_its_total() -> None:
    kind = RequestStatistics().add_kind(1, 18, 0)
    clock = Clock()
    clock.now_ms = 2
    timed = RequestTimer(kind, clock, received_s=0.0)
    clock.now_ms = 5
    timed.on_returned()
    clock.now_ms = 15
    timed.on_answered()
    clock.now_ms = 16
    timed.on_sent()
    times = kind.times
    assert [one.sum_ns for one in times.histograms] == [2 * MS, 3 * MS, 10 * MS, 1 * MS, 16 * MS]
    assert [one.count for one in times.histograms] == [1] * 5


def test_a_request_that_is_answered_by_its_handler_waits_for_nothing() -> None:
    kind = RequestStatistics().add_kind(0, 13, 0)
    clock = Clock()
    timed = RequestTimer(kind, clock, received_s=0.0)
    clock.now_ms = 4
    timed.on_answered()
    timed.on_sent()
    assert kind.times.local.sum_ns == 4 * MS
    assert kind.times.remote.sum_ns == 0


def test_of_many_requests_one_of_several_is_timed_and_stands_for_all() -> None:
    statistics = RequestStatistics()
    kind = statistics.add_kind(0, 13, 0)
    kind.count = 2 * MANY_PER_S + 2
    statistics.adapt(2.0, 0)
    assert kind.mask == FEW_OF - 1
    timed = RequestTimer(kind, Clock(), received_s=0.0)
    timed.on_answered()
    timed.on_sent()
    assert kind.times.total.count == FEW_OF
    kind.count += 2 * MANY_PER_S
    statistics.adapt(2.0, 1)
    assert kind.mask == 0


@pytest.mark.parametrize(("arrived", "one_of"), [(200, 1), (201, 16), (3_199, 16), (3_200, 32), (50_000, 256)])
def test_the_more_requests_the_fewer_of_them_are_timed(arrived: int, one_of: int) -> None:
    statistics = RequestStatistics()
    kind = statistics.add_kind(0, 13, 0)
    kind.count = arrived
    statistics.adapt(1.0, 0)
    assert kind.mask + 1 == one_of
    assert arrived < 16 * MANY_PER_S or TIMED_PER_S <= arrived / one_of < 2 * TIMED_PER_S


def test_of_a_burst_after_quiet_times_ever_fewer_are_timed_and_all_are_stood_for() -> None:
    statistics = RequestStatistics()
    kind = statistics.add_kind(0, 13, 0)
    statistics.adapt(1.0, 0)
    timed_count = 0
    burst = 100_000
    for _ in range(burst):
        kind.count += 1
        if not kind.count & kind.mask:
            timed_count += 1
            timer = RequestTimer(kind, Clock(), received_s=0.0)
            timer.on_answered()
            timer.on_sent()
    assert timed_count < 15 * BURST_MAX
    assert 0.8 * burst < kind.times.total.count < 1.2 * burst
    statistics.adapt(1_000.0, 1)
    assert kind.mask == 0


def test_versions_share_the_times_of_their_api_but_nodes_have_their_own() -> None:
    statistics = RequestStatistics()
    old, new = statistics.add_kind(1, 17, 0), statistics.add_kind(1, 18, 0)
    of_node = statistics.add_kind(1, 18, OF_NODE)
    assert old.times is new.times is not of_node.times
    assert set(statistics.kinds) == {1 << VERSION_BITS | 17, 1 << VERSION_BITS | 18, 1 << VERSION_BITS | 18 | OF_NODE}


def test_errors_are_counted_by_api() -> None:
    statistics = RequestStatistics()
    for api_key, error in ((0, 6), (0, 6), (1, 1)):
        statistics.note_error(api_key, error)
    assert statistics.errors == {(0, 6): 2, (1, 1): 1}
