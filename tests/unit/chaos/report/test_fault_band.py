"""Faults as bands over the time of a run."""

from __future__ import annotations

from typing import Any

from penstock.chaos.histories.operation import NEMESIS, Header, History, Operation
from penstock.chaos.report.fault_band import FaultBand, fault_bands

END = 100


def bands(*events: tuple[int, str, Any]) -> list[FaultBand]:
    operations = [Operation(n, "info", NEMESIS, time, f, value) for n, (time, f, value) in enumerate(events)]
    return fault_bands(History(Header(workload="queue"), operations), END)


def canary(time: int, *, works: bool, during: str | None) -> tuple[int, str, Any]:
    return time, "canary", {"link": ["1", "2"], "works": works, "during": during}


def test_a_fault_lasts_from_its_first_event_to_the_next_of_its_kind() -> None:
    kill, pause = bands(
        (10, "kill", {"begin": {"nodes": ["1"]}}),
        (20, "pause", {"begin": {"nodes": ["2"]}}),
        (30, "kill", {"end": {}}),
        (40, "pause", {"end": {}}),
    )
    assert (kill.begin_ns, kill.end_ns, kill.fault) == (10, 30, {"nodes": ["1"]})
    assert (pause.begin_ns, pause.end_ns, pause.number) == (20, 40, 2)


def test_a_fault_that_is_never_ended_lasts_as_long_as_the_run() -> None:
    (band,) = bands((10, "kill", {"begin": {}}))
    assert (band.end_ns, band.is_ended) == (END, False)


def test_an_event_without_a_beginning_is_a_fault_of_one_moment() -> None:
    (band,) = bands((10, "bit-flip", {"node": "1"}))
    assert (band.begin_ns, band.end_ns, band.is_ended) == (10, 10, True)


def test_a_partition_is_proved_by_a_canary_that_failed_meanwhile_and_works_afterwards() -> None:
    begin: tuple[int, str, Any] = (10, "partition", {"begin": {}})
    end: tuple[int, str, Any] = (30, "partition", {"end": {}})
    fails = canary(15, works=False, during="partition")

    def proof(*events: tuple[int, str, Any]) -> str:
        return bands(*sorted(events, key=lambda event: event[0]))[0].proof

    assert proof(begin, end, fails, canary(40, works=True, during=None)) == "proved"
    assert proof(begin, end, fails, canary(40, works=False, during=None)) == "not healed"
    assert proof(begin, end, canary(15, works=True, during="partition")) == "without effect"
    assert proof(begin, end) == "no canary"
    # A canary of another fault says nothing of this one.
    assert proof(begin, end, canary(15, works=False, during="kill")) == "no canary"


def test_what_the_nemesis_saw_without_effect_is_not_proved() -> None:
    (band,) = bands((10, "clock-bump", {"begin": {}}), (20, "clock-bump", {"end": {}, "took_hold": False}))
    assert band.proof == "without effect"
    (band,) = bands((10, "clock-bump", {"begin": {}}), (20, "clock-bump", {"end": {}}))
    assert band.proof == "took hold"


def test_a_fault_is_named_by_its_kind_and_what_it_hits() -> None:
    (band,) = bands((10, "partition", {"begin": {"kind": "partition", "selector": "leaders"}}))
    assert band.name == "partition:leaders"
