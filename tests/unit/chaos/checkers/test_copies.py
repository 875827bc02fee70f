"""Each anomaly of a transactional copy is found where it is, and a history without one passes."""

from __future__ import annotations

import pytest

from penstock.chaos.checkers.copies import Anomaly, Attempt, Output, Place, judge

INPUTS = [Place(partition, offset) for partition in (0, 1) for offset in range(4)]
# Two inputs a transaction, which go to the one partition of the copy.
OUTPUTS = [
    Output(Place(0, offset), source, f"1-{number}")
    for offset, (source, number) in enumerate(zip(INPUTS, (1, 1, 2, 2, 3, 3, 4, 4), strict=True))
]
ATTEMPTS = {f"1-{number}": Attempt(output_count=2, is_committed=True) for number in range(1, 5)}


def anomalies(outputs: list[Output], attempts: dict[str, Attempt] | None = None) -> set[Anomaly]:
    return {finding.anomaly for finding in judge(INPUTS, outputs, {**ATTEMPTS, **(attempts or {})})}


def test_copy_of_each_input_once_has_no_finding() -> None:
    assert judge(INPUTS, OUTPUTS, ATTEMPTS) == judge(INPUTS, OUTPUTS) == []


def test_outputs_of_several_input_partitions_may_alternate() -> None:
    alternating = [OUTPUTS[index] for index in (0, 4, 1, 5, 2, 6, 3, 7)]
    assert judge(INPUTS, alternating, ATTEMPTS) == []


def test_transaction_whose_commit_had_no_answer_is_there_or_not() -> None:
    unknown = {"1-4": Attempt(output_count=2)}
    assert anomalies(OUTPUTS, unknown) == set()
    again = [*OUTPUTS[:6], *(output._replace(transaction="2-1") for output in OUTPUTS[6:])]
    assert anomalies(again, {**unknown, "2-1": ATTEMPTS["1-4"]}) == set()


def test_aborted_transactions_leave_nothing() -> None:
    assert anomalies(OUTPUTS, {"1-9": Attempt(is_committed=False), "1-10": Attempt()}) == set()


@pytest.mark.parametrize(
    ("outputs", "attempts", "expected"),
    [
        (OUTPUTS[:6], {}, {Anomaly.LOST, Anomaly.LOST_TRANSACTION}),
        (OUTPUTS[:7], {}, {Anomaly.LOST, Anomaly.TORN}),
        ([*OUTPUTS, OUTPUTS[7]._replace(place=Place(0, 8))], {}, {Anomaly.DUPLICATED, Anomaly.TORN}),
        ([OUTPUTS[1], OUTPUTS[0], *OUTPUTS[2:]], {}, {Anomaly.REORDERED}),
        ([*OUTPUTS, Output(Place(0, 9), Place(7, 0), None)], {}, {Anomaly.FOREIGN}),
        (OUTPUTS, {"1-2": Attempt(output_count=2, is_committed=False)}, {Anomaly.ABORTED_READ}),
        (OUTPUTS, {"1-2": Attempt(is_committed=False)}, {Anomaly.ABORTED_READ}),
        (OUTPUTS, {"1-2": Attempt()}, {Anomaly.ABORTED_READ}),
        ([*OUTPUTS[:7], OUTPUTS[7]._replace(transaction="9-9")], {}, {Anomaly.ABORTED_READ, Anomaly.TORN}),
    ],
)
def test_anomaly_is_found(outputs: list[Output], attempts: dict[str, Attempt], expected: set[Anomaly]) -> None:
    assert anomalies(outputs, attempts) == expected


def test_finding_says_what_and_where() -> None:
    (finding,) = judge(INPUTS, OUTPUTS[:7])
    assert str(finding) == "LOST: an input has no output: 1/3"
