"""What clients did, over time, as a report draws it."""

from __future__ import annotations

from typing import Any

from penstock.chaos.histories.operation import EventType, Operation, Pair
from penstock.chaos.report.client_series import (
    SECOND_NS,
    client_lanes,
    latencies,
    longest_stall_ns,
    outcomes,
    rates,
    unseen,
)

MS = 1_000_000


def pair(
    begin_s: float, end_s: float | None, f: str, value: Any = None, outcome: EventType = "ok", process: int = 0
) -> Pair:
    invocation = Operation(0, "invoke", process, int(begin_s * SECOND_NS), f, value)
    if end_s is None:
        return Pair(invocation, None)
    return Pair(invocation, Operation(1, outcome, process, int(end_s * SECOND_NS), f, value))


def send(begin_s: float, end_s: float, value: int, outcome: EventType = "ok") -> Pair:
    told = [0, value] if outcome == "ok" else value
    return pair(begin_s, end_s, "send", [["send", "t-0", told]], outcome)


def poll(begin_s: float, end_s: float, *values: int) -> Pair:
    return pair(begin_s, end_s, "poll", [["poll", {"t-0": [[0, value] for value in values]}]])


def test_rates_count_what_took_place_by_function_and_the_rest_apart() -> None:
    pairs = [send(0, 0.1, 1), send(0.1, 0.2, 2), send(0.2, 0.3, 3, "info"), poll(0.6, 0.7), pair(0.6, None, "send")]
    # A crash is meant to be one.
    pairs.append(pair(0.6, 0.7, "crash", outcome="info"))
    series, bad = rates(pairs, SECOND_NS)
    assert [(one.name, one.values) for one in series] == [("send", [4.0, 0.0]), ("poll", [0.0, 2.0])]
    # An operation that was never completed is counted where it began.
    assert bad.values == [2.0, 2.0]
    assert outcomes(pairs[:-1]) == {"send": {"ok": 2, "info": 2}, "poll": {"ok": 1}}


def test_latencies_leave_out_what_waits_for_records() -> None:
    dots, (p50, p99) = latencies([send(0, 0.01, 1), send(0.1, 0.12, 2), send(0.2, 0.23, 3), poll(0, 5)], SECOND_NS)
    assert [(one.f, one.outcome, len(one.points)) for one in dots] == [("send", "ok", 3)]
    assert p50.values[0] == 20 * MS
    assert p99.values[0] == 30 * MS
    assert p50.values[1] is None


def test_however_many_operations_there_are_the_dots_are_bounded() -> None:
    pairs = [send(n / 400, n / 400 + 0.001 * (1 + n % 7), n) for n in range(20_000)]
    dots, _ = latencies(pairs, 50 * SECOND_NS)
    assert sum(len(one.points) for one in dots) < 5_000


def test_a_record_is_unseen_from_its_acknowledgement_to_the_first_poll_with_it() -> None:
    series = unseen([send(0, 0.4, 1), send(0, 0.4, 2), send(0, 0.4, 3, "info"), poll(1, 1.4, 1, 3)], 3 * SECOND_NS)
    assert series is not None
    at = dict(zip(series.times_ns, series.values, strict=True))
    # What is unknown is no acknowledged record; the second one is never read.
    assert [at[int(time * SECOND_NS)] for time in (0, 0.5, 1, 1.5, 3)] == [0, 2, 2, 1, 1]


def test_a_record_that_was_read_before_its_acknowledgement_was_never_unseen() -> None:
    series = unseen([send(0, 2, 1), poll(0, 1, 1)], 3 * SECOND_NS)
    assert series is not None
    assert set(series.values) == {0.0}


def test_histories_without_records_have_no_unseen_ones() -> None:
    assert unseen([pair(0, 1, "write", {"k": 1, "v": 2})], SECOND_NS) is None


def test_what_goes_into_topics_that_no_client_reads_is_not_unseen() -> None:
    output = pair(0, 1, "poll", [["poll", {"out-0": [[0, ["t-0", 1]]]}]])
    assert unseen([send(0, 1, 1), output], SECOND_NS) is None


def test_a_client_goes_on_in_its_lane_after_an_unknown_outcome() -> None:
    pairs = [
        pair(0, 1, "send", process=0),
        pair(0, 1, "send", process=1),
        pair(2, 3, "send", outcome="info", process=1),
        pair(5, 6, "send", process=3),
        pair(0, 9, "send", process=2),
    ]
    lanes = client_lanes(pairs, 10 * SECOND_NS)
    assert list(lanes) == [0, 1, 2]
    # Process 3 is two clients further: 3 modulo the 3 clients that began.
    assert len(lanes[0]) == 2
    assert [busy.outcome for busy in lanes[1]] == ["ok", "info"]


def test_neighbouring_operations_of_one_outcome_are_one_bar() -> None:
    pairs = [pair(n * 0.01, n * 0.01 + 0.009, "send") for n in range(1000)]
    (bars,) = client_lanes(pairs, 10 * SECOND_NS).values()
    assert [bar.count for bar in bars] == [1000]


def test_the_longest_stall_is_between_two_operations_that_took_place() -> None:
    pairs = [send(0, 1, 1), send(1, 2, 2), send(2, 4, 3, "fail"), poll(4, 5), send(5, 6, 4)]
    assert longest_stall_ns(pairs) == (2 * SECOND_NS, 6 * SECOND_NS)
    assert longest_stall_ns(pairs[:1]) is None
