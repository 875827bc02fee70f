"""Each workload's history is judged by the checkers that it needs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from histories import planted

from penstock.chaos.checkers.catalogue import checkers_of
from penstock.chaos.checkers.judge import judge
from penstock.chaos.histories.operation import Header, History
from penstock.chaos.workloads.catalogue import WORKLOADS


def did(f: str, asked: Any, answered: Any = None, *, final: bool = False) -> list[Any]:
    more = ("final",) if final else ()
    return [(0, f, "invoke", asked, *more), (0, f, "ok", asked if answered is None else answered, *more)]


def sent(offset: int, value: int) -> list[Any]:
    return did("send", [["send", "t-0", value]], [["send", "t-0", [offset, value]]])


def polled(key: str, *records: list[Any]) -> list[Any]:
    return did("poll", [["poll"]], [["poll", {key: [*records]}]], final=True)


ANOMALIES = {
    "queue": ("unseen", [*sent(0, 1), *sent(1, 2), *polled("t-0", [0, 1])]),
    "idempotent": ("nonmonotonic-send", [*sent(1, 1), *sent(0, 2), *polled("t-0", [0, 2], [1, 1])]),
    "exactly-once": ("lost-output", [*sent(0, 1), *polled("t-out-0")]),
    "group-auto-commit": ("skipped", [*sent(0, 1), *sent(1, 2), *polled("t-0", [1, 2])]),
    "register": ("lost-write", [
        *did("write", {"k": "r", "v": 1}), *did("write", {"k": "r", "v": 2}),
        *did("read", {"k": "r"}, {"k": "r", "v": 1}, final=True),
    ]),
    "counter": ("counted-twice", [*did("add", {"k": "c", "n": 1}), *did("read", {"k": "c"}, {"k": "c", "n": 2})]),
    "metadata": ("non-linearizable", [
        *did("create-topic", {"name": "t", "partitions": 1}),
        *did("delete-topic", {"name": "t"}), *did("delete-topic", {"name": "t"}),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("workload", ANOMALIES)
def test_an_anomaly_of_each_workload_is_found_by_its_name(workload: str) -> None:
    kind, events = ANOMALIES[workload]
    history = planted(*events)
    header = msgspec.structs.replace(history.header, workload=workload)
    verdict = judge(History(header, history.operations), checkers_of(header))
    assert verdict.valid == "anomalies"
    assert kind in {finding.type for finding in verdict.findings if not finding.allowed}
    assert verdict.statistics["liveness"]["healed"], "whether everything goes on is asked of each"


def test_what_a_workload_asks_for_is_what_judges_it() -> None:
    for name, workload in WORKLOADS.items():
        assert {*checkers_of(Header(workload=name))} == {*workload.checkers, "liveness"}, name
