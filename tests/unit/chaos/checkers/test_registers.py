from __future__ import annotations

from random import Random
from typing import Any

import pytest
from concurrent_objects import random_register
from histories import planted, told
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.object_models import Action
from penstock.chaos.checkers.registers import check_registers
from penstock.chaos.histories.operation import History


def wrote(process: int, value: object, key: str = "k") -> list[tuple[int, str, Any, Any]]:
    return [(process, "write", "invoke", {"k": key, "v": value}), (process, "write", "ok", {"k": key, "v": value})]


def has_read(process: int, value: object, *final: str) -> list[Any]:
    asked, told = {"k": "k"}, {"k": "k", "v": value}
    return [(process, "read", "invoke", asked, *final), (process, "read", "ok", told, *final)]


def found(history: History) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [(one.type, one.allowed, one.operations) for one in check_registers(history).findings]


@pytest.mark.parametrize("again", [(), ((9, "write", "invoke", {"k": "k", "v": 2}),)], ids=["zones", "search"])
def test_an_overwritten_value_may_be_read_for_a_while_but_not_at_the_end(again: tuple[Any, ...]) -> None:
    # A second write of the same value makes the checker search for an order.
    stale = planted(*wrote(0, 1), *wrote(0, 2), *has_read(1, 1), *again)
    assert found(stale) == [("stale-read", True, (1, 3, 5))]
    (kind, allowed, operations), *_ = found(planted(*wrote(0, 1), *wrote(0, 2), *has_read(1, 1, "final"), *again))
    assert (kind, allowed) in [("lost-write", False), ("non-linearizable", False)]
    assert {3, 5} <= {*operations}


def test_the_age_of_a_stale_read_is_told() -> None:
    checked = check_registers(planted(*wrote(0, 1), *wrote(0, 2), *has_read(1, 1)))
    assert checked.statistics["worst-staleness-ms"] == 1.0
    assert checked.findings[0].detail == {"stale_ms": 1.0}


def test_a_process_does_not_go_back() -> None:
    history = planted(*wrote(0, 1), *wrote(0, 2), *has_read(1, 2), *has_read(1, 1))
    assert ("nonmonotonic-read", False, (5, 7)) in found(history)
    other = planted(*wrote(0, 1), *wrote(0, 2), *has_read(1, 2), *has_read(2, 1))
    assert {kind for kind, _, _ in found(other)} == {"stale-read"}
    assert ("nonmonotonic-read", False, (3, 5)) in found(planted(*wrote(0, 1), *has_read(1, 1), *has_read(1, None)))


def test_a_write_of_unknown_outcome_that_was_read_is_old_by_then() -> None:
    unknown = [(0, "write", "invoke", {"k": "k", "v": 1}), (0, "write", "info", None, "no answer")]
    history = planted(*unknown, *has_read(2, 1), *wrote(3, 2), *has_read(1, 2), *has_read(1, 1))
    assert ("nonmonotonic-read", False, (7, 9)) in found(history)
    # Not read before: it may have taken effect after the other one.
    assert not found(planted(*unknown, *wrote(3, 2), *has_read(1, 2), *has_read(1, 1)))


def test_values_from_nowhere_are_found() -> None:
    failed = [(0, "write", "invoke", {"k": "k", "v": 7}), (0, "write", "fail", None, "refused")]
    assert found(planted(*failed, *has_read(1, 7))) == [("G1a", False, (1, 3))]
    assert found(planted(*wrote(0, 1), *has_read(1, 9))) == [("unexpected", False, (3,))]
    early = planted(*has_read(1, 1), *wrote(0, 1))
    assert [(kind, allowed) for kind, allowed, _ in found(early)] == [("non-linearizable", False)]


def test_an_unknown_write_takes_effect_late_or_never() -> None:
    lost = [(5, "write", "invoke", {"k": "k", "v": 7}), (5, "write", "info", None, "no answer")]
    assert not found(planted(*lost, *wrote(0, 1), *has_read(1, 1), *has_read(1, 7), *has_read(1, 7)))
    back = found(planted(*lost, *wrote(0, 1), *has_read(1, 7), *wrote(0, 2), *has_read(1, 7, "final")))
    assert [(kind, allowed) for kind, allowed, _ in back] == [("lost-write", False)]


@pytest.mark.thorough
def test_an_order_that_is_not_found_in_time_is_neither_a_failure_nor_a_success() -> None:
    # Equal values make the checker search, writes that overlap make many orders, and none of them allows the last read.
    together = range(1, 19)
    overlapping = [
        (process, "write", kind, {"k": "k", "v": process}) for kind in ("invoke", "ok") for process in together
    ]
    history = planted(*wrote(0, 0), *wrote(0, 99), *wrote(0, 99), *overlapping, *has_read(20, 0, "final"))
    assert found(history) == [("undecided", True, ())]


def test_keys_are_judged_one_by_one() -> None:
    history = planted(*wrote(0, 1), *wrote(0, 2, "other"), *has_read(1, 1))
    assert not found(history)
    assert check_registers(history).statistics["registers"] == 2


def _words(action: Action) -> tuple[str, Any, Any, str | None]:
    if action.kind == "read":
        return "read", {"k": "k"}, {"k": "k", "v": action.argument}, None
    return "write", {"k": "k", "v": action.argument}, None, None


@pytest.mark.thorough
@given(seed=st.integers(0, 1 << 32), values=st.sampled_from([None, 3]))
def test_a_register_that_works_is_clean(seed: int, values: int | None) -> None:
    steps = random_register(Random(seed), values=values, operations=40, broken_share=0)
    assert not found(told(steps, _words))
