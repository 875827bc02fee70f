"""The verdict on a run: anomalies, or why it shows nothing."""

import re
from typing import Any

import msgspec
import pytest

from penstock.chaos.checkers.finding import KEPT_OF_A_TYPE, UNDECIDED, Checked, Findings, Verdict
from penstock.chaos.checkers.judge import judge
from penstock.chaos.histories.operation import NEMESIS, Header, History, Operation


def history(*events: tuple[str, int | str, str, Any], error: str | None = None) -> History:
    """Events as (type, process, f, value); `error` is that of the last one."""
    operations = [Operation(index, *event[:2], 10 * index, *event[2:]) for index, event in enumerate(events)]  # type: ignore[arg-type]
    if error is not None:
        operations[-1] = msgspec.structs.replace(operations[-1], error=error)
    return History(Header(workload="queue"), operations)


Event = tuple[str, int | str, str, Any]

SEND: tuple[Event, ...] = (("invoke", 1, "send", []), ("ok", 1, "send", []))
BEGIN: Event = ("info", NEMESIS, "partition-one", {"begin": {}})
END: Event = ("info", NEMESIS, "partition-one", {"end": {}})
FAILS: Event = ("info", NEMESIS, "canary", {"link": ["1", "2"], "works": False, "during": "partition-one"})


def canary(*, works: bool, during: str | None) -> tuple[str, str, str, Any]:
    return "info", NEMESIS, "canary", {"link": ["1", "2"], "works": works, "during": during}


def finds(*types: str, why_allowed: str | None = None) -> Any:
    def checker(_: History) -> Checked:
        findings = Findings()
        for type_ in types:
            findings.add(type_, "as planted", [1, 1], key="t-0", why_allowed=why_allowed)
        return findings.checked({"figure": 1})

    return checker


def test_a_partition_that_a_canary_proves_makes_a_valid_run() -> None:
    verdict = judge(
        history(*SEND, BEGIN, canary(works=False, during="partition-one"), END, canary(works=True, during=None)),
        {"quiet": finds()},
        declared=["partition-one"],
    )
    assert (verdict.valid, verdict.notes) == ("valid", ())
    assert verdict.statistics == {"operations": {"send": {"ok": 1}}, "quiet": {"figure": 1}}


@pytest.mark.parametrize(
    ("events", "error", "sentence"),
    [
        ([BEGIN, END], None, r"did not take hold \(event 3\): no canary was sent"),
        ([BEGIN, FAILS, END, BEGIN, END], None, r"\(event 6\): no canary was sent"),
        ([BEGIN], None, r"\(event 2\): no canary was sent"),
        ([BEGIN, canary(works=True, during="partition-one"), END], None, "1 canaries went through"),
        (
            [BEGIN, canary(works=False, during="partition-one"), END, canary(works=False, during=None)],
            None,
            r"the link 1 → 2 did not work after its fault had ended \(event 5\)",
        ),
        ([("info", NEMESIS, "kill", {"begin": {}, "took_hold": False})], None, "kill did not take hold .event 2."),
        ([("info", NEMESIS, "kill", {"begin": {}})], "no such process", "kill did not take hold .event 2.: no such"),
        (
            [("invoke", 2, "send", []), ("info", 2, "send", []), ("invoke", 2, "send", [])],
            None,
            r"process 2 went on after an outcome that it did not know \(event 4\)",
        ),
        (
            [("invoke", 2, "send", []), ("invoke", 2, "send", [])],
            None,
            r"process 2 went on after an outcome that it did not know \(event 3\)",
        ),
        ([("ok", 2, "send", [])], None, r"process 2 completed what it had not begun \(event 2\)"),
        ([], None, "the fault clock-bump never occurred"),
    ],
    ids=[
        "no canary",
        "no canary of the second",
        "no end",
        "works",
        "stays",
        "not taken",
        "error",
        "process",
        "no completion",
        "no invocation",
        "declared",
    ],
)
def test_a_run_whose_fault_never_took_hold_is_invalid(events: Any, error: str | None, sentence: str) -> None:
    declared = [] if events else ["clock-bump"]
    verdict = judge(history(*SEND, *events, error=error), {"quiet": finds()}, declared=declared)
    assert verdict.valid == "invalid-run"
    (note,) = verdict.notes
    assert re.search(sentence, note), note


def test_a_run_in_which_nothing_succeeded_is_invalid() -> None:
    """An unknown outcome is no success."""
    verdict = judge(history(("invoke", 1, "send", []), ("info", 1, "send", [])), {})
    assert (verdict.valid, len(verdict.notes)) == ("invalid-run", 1)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        ("assign", ["t-0"]),
        ("subscribe", ["t"]),
        ("poll", [["poll", {}]]),
        ("txn", [["poll", {}], ["poll"]]),
    ],
)
def test_what_a_client_does_without_a_cluster_is_no_success(f: str, value: Any) -> None:
    verdict = judge(history(("invoke", 1, f, value), ("ok", 1, f, value)), {})
    assert (verdict.valid, len(verdict.notes)) == ("invalid-run", 1)


def test_partitions_that_overlap_are_proved_by_the_canaries_of_each() -> None:
    proof = canary(works=False, during="partition-one")
    assert not judge(history(*SEND, BEGIN, proof, BEGIN, proof, END, END), {}).notes
    (note,) = judge(history(*SEND, BEGIN, BEGIN, proof, END, END), {}).notes
    assert "(event 3): no canary was sent" in note
    (note,) = judge(history(*SEND, BEGIN, proof, BEGIN, END, END), {}).notes
    assert "(event 5): no canary was sent" in note


def test_values_that_are_not_those_of_the_workload_are_refused_with_a_sentence() -> None:
    def reads_a_key(one: History) -> Checked:
        return Checked(statistics={"k": [operation.value["k"] for operation in one.operations]})

    with pytest.raises(ValueError, match="the checker register expected operations of the workload 'queue'"):
        judge(history(*SEND), {"register": reads_a_key})


def test_what_a_checker_could_not_decide_is_no_success() -> None:
    verdict = judge(history(*SEND), {"slow": finds(UNDECIDED, why_allowed="the search was given up")})
    assert (verdict.valid, verdict.notes) == ("invalid-run", ("as planted",))
    assert judge(history(*SEND), {"slow": finds(UNDECIDED), "loud": finds("lost-write")}).valid == "anomalies"


def test_an_anomaly_counts_even_in_a_run_whose_fault_did_not_take_hold() -> None:
    verdict = judge(history(*SEND, BEGIN, END), {"loud": finds("lost-write")})
    assert (verdict.valid, len(verdict.notes)) == ("anomalies", 1)
    assert verdict.findings[0].operations == (1,)


def test_what_is_allowed_makes_no_run_invalid_and_comes_last() -> None:
    allowed = finds("G0", why_allowed="writes are not isolated")
    assert judge(history(*SEND), {"quiet": allowed}).valid == "valid"
    verdict = judge(history(*SEND), {"quiet": allowed, "loud": finds("duplicate")})
    assert [finding.type for finding in verdict.findings] == ["duplicate", "G0"]


def test_faults_beyond_what_is_guaranteed_allow_their_losses_and_nothing_else() -> None:
    many = KEPT_OF_A_TYPE + 1
    checkers = {"loud": finds(*["lost-write"] * many)}
    verdict = judge(history(*SEND), checkers, allowances={"lost-write": "two of three lost power at once"})
    assert verdict.valid == "valid"
    assert {finding.why_allowed for finding in verdict.findings} == {"two of three lost power at once"}
    assert (len(verdict.findings), verdict.counts) == (KEPT_OF_A_TYPE, {"lost-write": many}), (
        "all are counted, some are kept"
    )
    assert judge(history(*SEND), checkers, allowances={"duplicate": "…"}).valid == "anomalies"


def test_a_verdict_is_the_same_again_after_json() -> None:
    verdict = judge(history(*SEND, BEGIN, END), {"loud": finds("lost-write", "G0")})
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict
