"""What clients did, over time: rates, latencies, records not read yet, and what each process was busy with. Pure.

Times are nanoseconds since the run began. What is drawn is bounded, however long a history is.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from ..histories.operation import Pair

SECOND_NS: Final = 1_000_000_000
# Points of a line: more than a wide screen has pixels are not seen.
BUCKETS_MAX: Final = 600
_WIDTHS_S: Final = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
# These wait for records: their durations say how long there was nothing, not how fast a cluster is.
WAITING: Final = frozenset({"poll", "assign", "subscribe", "crash", "debug-topic-partitions"})
# Not a question to the cluster: the client is gone, as it should be.
CRASH: Final = "crash"
# Cells of the scatter plot; each keeps one dot.
_CELLS_ACROSS: Final = 400
_CELLS_A_DECADE: Final = 14

Outcome = Literal["ok", "fail", "info"]


class Series(Struct, frozen=True):
    """`values[n]` holds from `times_ns[n]` to the next time; None where it is not known."""

    name: str
    times_ns: list[int]
    values: list[float | None]


class Dots(Struct, frozen=True):
    """`points` are (invoked at, latency), both in nanoseconds."""

    f: str
    outcome: Outcome
    points: list[tuple[int, int]]


class Busy(Struct, frozen=True):
    """One process had operations of that outcome open from `begin_ns` to `end_ns`."""

    begin_ns: int
    end_ns: int
    outcome: Outcome
    count: int


def bucket_ns(end_ns: int) -> int:
    """A round width with which a run has at most BUCKETS_MAX buckets, or little more than that for one of weeks."""
    for width_s in _WIDTHS_S:
        if end_ns <= width_s * SECOND_NS * BUCKETS_MAX:
            return int(width_s * SECOND_NS)
    return int(_WIDTHS_S[-1] * SECOND_NS)


def rates(pairs: Sequence[Pair], end_ns: int) -> tuple[list[Series], Series]:
    """Operations a second: those that took place by function, most frequent first, and those that failed or whose
    outcome is unknown."""
    width_ns = bucket_ns(end_ns)
    count = max(1, math.ceil(end_ns / width_ns))
    by_f: dict[str, list[int]] = {}
    bad = [0] * count
    for pair in pairs:
        at = min(count - 1, (pair.completion or pair.invocation).time // width_ns)
        if pair.outcome == "ok":
            by_f.setdefault(pair.invocation.f, [0] * count)[at] += 1
        elif pair.invocation.f != CRASH:
            bad[at] += 1
    times_ns = [number * width_ns for number in range(count)]

    def series(name: str, counts: list[int]) -> Series:
        return Series(name, times_ns, [SECOND_NS * one / min(width_ns, max(1, end_ns)) for one in counts])

    ordered = sorted(by_f.items(), key=lambda item: (-sum(item[1]), item[0]))
    return [series(f, counts) for f, counts in ordered], series("failed or unknown", bad)


def latencies(pairs: Sequence[Pair], end_ns: int) -> tuple[list[Dots], list[Series]]:
    """One dot for each cell of time and latency, and p50 and p99 of what took place, without what waits for records."""
    width_ns = max(1, end_ns // _CELLS_ACROSS)
    cells: dict[tuple[str, Outcome], dict[tuple[int, int], tuple[int, int]]] = {}
    bucket = bucket_ns(end_ns)
    by_bucket: dict[int, list[int]] = {}
    for pair in pairs:
        if pair.completion is None or pair.invocation.f in WAITING:
            continue
        began_ns = pair.invocation.time
        latency_ns = max(1, pair.completion.time - began_ns)
        cell = began_ns // width_ns, int(math.log10(latency_ns) * _CELLS_A_DECADE)
        cells.setdefault((pair.invocation.f, pair.outcome), {}).setdefault(cell, (began_ns, latency_ns))
        if pair.outcome == "ok":
            by_bucket.setdefault(began_ns // bucket, []).append(latency_ns)
    dots = [Dots(f, outcome, sorted(kept.values())) for (f, outcome), kept in sorted(cells.items())]
    times_ns = [number * bucket for number in range(max(1, math.ceil(end_ns / bucket)))]
    lines = []
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        values = [_quantile(by_bucket.get(number), share) for number in range(len(times_ns))]
        lines.append(Series(name, times_ns, values))
    return dots, lines


def _quantile(values: list[int] | None, share: float) -> float | None:
    if not values:
        return None
    return float(sorted(values)[min(len(values) - 1, int(len(values) * share))])


def sent(pair: Pair) -> Iterator[tuple[str, Any, int | None]]:
    """(key, value, offset) of each record that the operation sends; the offset is known once it was acknowledged."""
    if pair.invocation.f in ("send", "txn") and isinstance(pair.value, list):
        for step in pair.value:
            if isinstance(step, list) and len(step) == 3 and step[0] == "send":
                told = step[2]
                if isinstance(told, list) and len(told) == 2:
                    yield step[1], told[1], told[0]
                else:
                    yield step[1], told, None


def polled(pair: Pair) -> Iterator[tuple[str, int, Any]]:
    """(key, offset, value) of each record that the operation read."""
    if pair.invocation.f in ("poll", "txn") and isinstance(pair.value, list):
        for step in pair.value:
            if isinstance(step, list) and len(step) == 2 and step[0] == "poll" and isinstance(step[1], Mapping):
                for key, records in step[1].items():
                    for offset, value in records:
                        yield key, offset, value


def hashable(value: Any) -> Any:
    """A list as a tuple, as JSON has only lists."""
    return tuple(hashable(one) for one in value) if isinstance(value, list) else value


def unseen(pairs: Sequence[Pair], end_ns: int) -> Series | None:
    """Records that were acknowledged and that no poll has returned yet, over time; None if nothing reads them."""
    acknowledged: dict[tuple[str, Any], int] = {}
    seen: dict[tuple[str, Any], int] = {}
    for pair in pairs:
        if pair.outcome != "ok" or pair.completion is None:
            continue
        for key, value, _ in sent(pair):
            acknowledged.setdefault((key, hashable(value)), pair.completion.time)
        for key, _, value in polled(pair):
            read = key, hashable(value)
            seen[read] = min(seen.get(read, end_ns), pair.completion.time)
    # What is sent into topics that no client reads, as those of an application's input, is not unseen.
    if {key for key, _ in acknowledged}.isdisjoint(key for key, _ in seen):
        return None
    width_ns = bucket_ns(end_ns)
    count = max(1, math.ceil(end_ns / width_ns))
    changes = [0] * (count + 1)
    for record, time_ns in acknowledged.items():
        read_ns = seen.get(record)
        if read_ns is not None and read_ns <= time_ns:
            continue
        changes[min(count, -(-time_ns // width_ns))] += 1
        if read_ns is not None:
            changes[min(count, -(-read_ns // width_ns))] -= 1
    values: list[float | None] = []
    total = 0
    for change in changes:
        total += change
        values.append(float(total))
    return Series("unseen", [min(end_ns, number * width_ns) for number in range(count + 1)], values)


def client_lanes(pairs: Sequence[Pair], end_ns: int) -> dict[int, list[Busy]]:
    """By client: what its processes were busy with. Neighbours of one outcome that a screen cannot tell apart are one.

    A process whose outcome was unknown goes on as another process, a stride further: that is the same client.
    """
    stride = _stride(pairs)
    gap_ns = max(1, end_ns // 1000)
    open_spans: dict[tuple[int, Outcome], Busy] = {}
    lanes: dict[int, list[Busy]] = {}
    for pair in pairs:
        if not isinstance(pair.invocation.process, int) or pair.invocation.f == CRASH:
            continue
        client = pair.invocation.process % stride
        lane = lanes.setdefault(client, [])
        begin_ns = pair.invocation.time
        until_ns = end_ns if pair.completion is None else pair.completion.time
        last = open_spans.get((client, pair.outcome))
        if last is not None and begin_ns - last.end_ns <= gap_ns:
            last = Busy(last.begin_ns, max(last.end_ns, until_ns), pair.outcome, last.count + 1)
        else:
            if last is not None:
                lane.append(last)
            last = Busy(begin_ns, until_ns, pair.outcome, 1)
        open_spans[client, pair.outcome] = last
    for (client, _), last in open_spans.items():
        lanes[client].append(last)
    return {client: sorted(lane, key=lambda busy: busy.begin_ns) for client, lane in sorted(lanes.items())}


def _stride(pairs: Sequence[Pair]) -> int:
    """How far the numbers of a client's processes lie apart: all clients begin before the first of them fails."""
    first_end_ns = min(
        (pair.completion.time for pair in pairs if pair.completion is not None and pair.completion.type == "info"),
        default=None,
    )
    numbers = [
        pair.invocation.process
        for pair in pairs
        if isinstance(pair.invocation.process, int) and (first_end_ns is None or pair.invocation.time <= first_end_ns)
    ]
    return max(numbers, default=0) + 1


def outcomes(pairs: Sequence[Pair]) -> dict[str, Counter[str]]:
    """How many operations took place, failed, or are unknown, by function."""
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        counts.setdefault(pair.invocation.f, Counter())[pair.outcome] += 1
    return counts


def longest_stall_ns(pairs: Sequence[Pair]) -> tuple[int, int] | None:
    """(from, to) of the longest time between two operations that took place, without those that wait for records."""
    times = sorted(
        pair.completion.time
        for pair in pairs
        if pair.completion is not None and pair.outcome == "ok" and pair.invocation.f not in WAITING
    )
    return max(itertools.pairwise(times), key=lambda span: span[1] - span[0], default=None)
