from __future__ import annotations

from random import Random
from typing import Any

from histories import numbered, planted
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.counters import check_counters
from penstock.chaos.histories.operation import Header, History, Operation


def added(process: int, number: int, kind: str = "ok") -> list[Any]:
    value = {"k": "t-0", "n": number}
    return [(process, "add", "invoke", value), (process, "add", kind, value if kind == "ok" else None)]


def has_read(process: int, number: int, *final: str) -> list[Any]:
    return [
        (process, "read", "invoke", {"k": "t-0"}, *final),
        (process, "read", "ok", {"k": "t-0", "n": number}, *final),
    ]


def found(history: History) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [(one.type, one.allowed, one.operations) for one in check_counters(history).findings]


def test_what_was_acknowledged_counts() -> None:
    assert not found(planted(*added(0, 3), *added(0, 4), *has_read(1, 7, "final")))
    assert found(planted(*added(0, 3), *added(0, 4), *has_read(1, 3, "final"))) == [("lost-write", False, (5,))]
    assert found(planted(*added(0, 3), *added(0, 4), *has_read(1, 3))) == [("stale-read", True, (5,))]


def test_nothing_counts_twice() -> None:
    history = planted(*added(0, 3), *has_read(1, 6))
    assert found(history) == [("counted-twice", False, (3,))]
    other = History(Header(workload="counter", idempotent=False), history.operations)
    assert found(other) == [("counted-twice", True, (3,))]


def test_what_is_unknown_counts_or_not_and_what_failed_does_not() -> None:
    for told in (3, 7):
        assert not found(planted(*added(0, 3), *added(1, 4, "info"), *has_read(2, told, "final")))
    assert [kind for kind, _, _ in found(planted(*added(0, 3, "fail"), *has_read(2, 3)))] == ["counted-twice"]


def test_an_addition_that_is_under_way_counts_or_not() -> None:
    under_way = [(0, "add", "invoke", {"k": "t-0", "n": 5}), *has_read(1, 5), (0, "add", "ok", {"k": "t-0", "n": 5})]
    assert not found(planted(*under_way, *has_read(1, 5)))


def test_what_a_process_reads_never_falls() -> None:
    history = planted(*added(0, 3), *added(1, 4, "info"), *has_read(2, 7), *has_read(2, 3))
    assert found(history) == [("nonmonotonic-read", False, (5, 7))]


@given(seed=st.integers(0, 1 << 32))
def test_a_counter_that_works_is_clean(seed: int) -> None:
    rng = Random(seed)
    total = 0
    late: list[int] = []
    events: list[tuple[int, Operation]] = []
    lives = {client: client for client in range(4)}
    # By client, the operation that is under way, and its answer once it took effect.
    under_way: dict[int, tuple[str, int | None]] = {}
    for moment in range(200):
        client = rng.randrange(4)
        process = lives[client]
        if late and rng.random() < 0.1:
            total += late.pop()
        if client not in under_way:
            f = rng.choice(["add", "read"])
            value = {"k": "t-0", "n": 2} if f == "add" else {"k": "t-0"}
            events.append((moment, Operation(0, "invoke", process, 0, f, value)))
            under_way[client] = f, None
            continue
        f, answer = under_way.pop(client)
        if answer is not None:
            events.append((moment, Operation(0, "ok", process, 0, f, {"k": "t-0", "n": answer})))
        elif f == "add" and rng.random() < 0.2:
            events.append((moment, Operation(0, "info", process, 0, f, error="no answer")))
            lives[client] += 4
            late.append(2)
        elif f == "add" and rng.random() < 0.2:
            events.append((moment, Operation(0, "fail", process, 0, f, error="refused")))
        else:
            total += 2 if f == "add" else 0
            under_way[client] = f, 2 if f == "add" else total
    assert not found(numbered(events))
