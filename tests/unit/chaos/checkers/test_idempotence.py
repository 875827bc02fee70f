from __future__ import annotations

from random import Random
from typing import Any

from histories import numbered, planted
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.idempotence import check_idempotence
from penstock.chaos.histories.operation import History, Operation


def sent(process: int, value: int, offset: int | None, kind: str = "ok") -> list[Any]:
    done = None if offset is None else [["send", "t-0", [offset, value]]]
    return [(process, "send", "invoke", [["send", "t-0", value]]), (process, "send", kind, done)]


def polled(**records: int) -> list[Any]:
    """Values by offset, as o5=7."""
    told = [["poll", {"t-0": [[int(offset[1:]), value] for offset, value in records.items()]}]]
    return [(9, "poll", "invoke", [["poll"]], "final"), (9, "poll", "ok", told, "final")]


def found(history: History) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [(one.type, one.allowed, one.operations) for one in check_idempotence(history).findings]


def test_a_value_is_there_once() -> None:
    assert not found(planted(*sent(0, 5, 0), *polled(o0=5), *polled(o0=5)))
    assert found(planted(*sent(0, 5, 0), *polled(o0=5, o1=5))) == [("duplicate", False, (1, 3))]
    lost = sent(0, 5, None, "info")
    assert found(planted(*lost, *polled(o0=5, o1=5))) == [("duplicate", False, (3,))]


def test_values_of_a_process_are_in_the_order_of_its_sends() -> None:
    assert found(planted(*sent(0, 5, 3), *sent(0, 6, 2))) == [("nonmonotonic-send", False, (1, 3))]
    assert not found(planted(*sent(0, 5, 3), *sent(1, 6, 2))), "of two producers"


def test_the_offset_of_a_send_without_an_outcome_is_what_consumers_saw() -> None:
    history = planted(*sent(0, 5, 3), *sent(0, 6, None, "info"), *polled(o2=6, o3=5))
    assert found(history) == [("nonmonotonic-send", False, (1, 3, 5))]


def test_what_certainly_failed_is_not_there() -> None:
    assert found(planted(*sent(0, 5, None, "fail"), *polled(o0=5))) == [("G1a", False, (1, 3))]


@given(seed=st.integers(0, 1 << 32))
def test_producers_that_work_are_clean(seed: int) -> None:
    rng = Random(seed)
    log: list[int] = []
    # Of sends without an outcome: they may be stored later, and their producer sends no more.
    late: list[int] = []
    events: list[tuple[int, Operation]] = []
    lives = {client: client for client in range(3)}
    for value in range(50):
        moment = value * 10
        client = rng.randrange(3)
        events.append((moment, Operation(0, "invoke", lives[client], 0, "send", [["send", "t-0", value]])))
        if late and rng.random() < 0.3:
            log.append(late.pop())
        if rng.random() < 0.8:
            log.append(value)
            done = [["send", "t-0", [len(log) - 1, value]]]
            events.append((moment + 1, Operation(0, "ok", lives[client], 0, "send", done)))
        else:
            events.append((moment + 1, Operation(0, "info", lives[client], 0, "send", error="no answer")))
            lives[client] += 3
            late.append(value)
    told = [["poll", {"t-0": [[offset, value] for offset, value in enumerate(log)]}]]
    events.append((1_000, Operation(0, "invoke", 999, 0, "poll", [["poll"]], final=True)))
    events.append((1_001, Operation(0, "ok", 999, 0, "poll", told, final=True)))
    assert not found(numbered(events))
