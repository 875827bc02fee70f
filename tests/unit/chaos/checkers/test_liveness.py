from __future__ import annotations

from random import Random
from typing import Any

import pytest
from histories import MS, numbered
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.finding import Checked
from penstock.chaos.checkers.liveness import check_liveness
from penstock.chaos.histories.operation import NEMESIS, EventType, Operation


def did(begun: int, ended: int, process: int = 0, key: str = "t-0", kind: EventType = "ok") -> list[Any]:
    value = [["send", key, 1]]
    return [
        (begun, Operation(0, "invoke", process, 0, "send", value)),
        (ended, Operation(0, kind, process, 0, "send", value)),
    ]


def fault(begin: int, end: int | None) -> list[Any]:
    events = [(begin, Operation(0, "info", NEMESIS, 0, "partition", {"begin": {}}))]
    return events if end is None else [*events, (end, Operation(0, "info", NEMESIS, 0, "partition", {"end": {}}))]


def judged(*events: Any, bound_s: float = 1.0) -> Checked:
    return check_liveness(numbered(events), bound_s=bound_s)


def stalls(checked: Checked) -> list[tuple[str | None, float]]:
    return [(one.key, one.detail["s"]) for one in checked.findings]


def test_what_stalls_under_a_fault_is_no_finding() -> None:
    checked = judged(*did(0, 1), *fault(10, 9_000), *did(20, 9_100))
    assert not checked.findings
    assert checked.statistics["longest-waits-of-keys-s"] == {"t-0": 0.1}
    assert checked.statistics["first-success-s"] == {"t-0": 0.1}


def test_an_operation_that_is_open_when_all_is_healed_waits_from_then_on() -> None:
    checked = judged(*did(0, 1), *fault(10, 1_000), *did(20, 3_000))
    assert stalls(checked) == [(None, 2.0), ("t-0", 2.0)]
    assert {one.operations for one in checked.findings} == {(3, 5)}


def test_attempts_that_fail_do_not_end_a_wait() -> None:
    failing = [event for n in range(10) for event in did(1_000 + n * 500, 1_400 + n * 500, n, kind="info")]
    assert stalls(judged(*fault(10, 900), *failing)) == [("t-0", 4.9)]
    assert stalls(judged(*fault(10, 900), *failing, *did(6_000, 7_000, 20))) == [("t-0", 6.0)]


def test_time_in_which_nothing_is_asked_is_no_wait() -> None:
    assert not judged(*fault(10, 900), *did(1_000, 1_001), *did(50_000, 50_001)).findings


def test_a_pause_after_an_attempt_that_failed_is_no_wait_where_others_succeed_meanwhile() -> None:
    """Keys are taken turns at, and the last transaction of a turn was aborted."""
    failed = did(1_000, 1_001, kind="fail")
    others = did(1_002, 1_003, 1, "t-1")
    assert not judged(*fault(10, 900), *failed, *others, *did(50_000, 50_001)).findings
    assert stalls(judged(*fault(10, 900), *failed, *did(50_000, 50_001)))[-1] == ("t-0", 49.001), "no client could ask"
    assert stalls(judged(*fault(10, 900), *failed, *others, *did(5_000, 5_001)))[-1] == ("t-0", 4.001), "asked again"
    slow = judged(*fault(10, 900), *did(1_000, 4_000, kind="fail"), *did(4_001, 4_002, 1, "t-1"), *did(50_000, 50_001))
    assert stalls(slow) == [(None, 3.0), ("t-0", 3.0)], "what it waited before"


def test_a_process_that_is_never_answered_waits_to_the_end() -> None:
    silent = (1_000, Operation(0, "invoke", 7, 0, "poll", [["poll"]]))
    busy = [event for n in range(20) for event in did(1_000 + n * 500, 1_001 + n * 500)]
    assert stalls(judged(*fault(10, 900), silent, *busy)) == [(None, 9.501)]


def test_a_dead_client_does_not_hold_its_key_back() -> None:
    asked = (1_000, Operation(0, "invoke", 7, 0, "send", [["send", "t-0", 1]]))
    others = [event for n in range(20) for event in did(1_000 + n * 500, 1_001 + n * 500, 1, "t-1")]
    assert [key for key, _ in stalls(judged(*fault(10, 900), asked, *did(1_002, 1_003), *others))] == [None]


def test_nothing_is_judged_where_a_fault_never_ended() -> None:
    checked = judged(*fault(10, None), *did(20, 9_000))
    assert not checked.findings
    assert checked.statistics == {"healed": False}


def test_a_refusal_of_metadata_is_an_answer() -> None:
    asked = {"name": "t", "partitions": 1, "configs": None}
    events = []
    for n in range(10):
        events += [
            (n * 500, Operation(0, "invoke", 0, 0, "create-topic", asked)),
            (n * 500 + 1, Operation(0, "fail", 0, 0, "create-topic", None, "TOPIC_ALREADY_EXISTS")),
        ]
    assert not judged(*events).findings


@given(seed=st.integers(0, 1 << 32))
def test_the_longest_wait_is_what_its_definition_says(seed: int) -> None:
    rng = Random(seed)
    healed = rng.randrange(2_000)
    events: list[Any] = fault(0, healed)
    waits = [0.0]
    moment = 10
    for _ in range(20):
        begun = moment + rng.randrange(300)
        moment = begun + 1 + rng.randrange(300)
        if {begun, moment} & {healed}:
            continue
        events += did(begun, moment)
        if moment > healed:
            waits.append((moment - max(begun, healed)) * MS / 1e9)
    checked = judged(*events, bound_s=0.2)
    assert checked.statistics["longest-waits-of-keys-s"].get("t-0", 0.0) == pytest.approx(max(waits))
    assert bool(checked.findings) is (max(waits) > 0.2)
