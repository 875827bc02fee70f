from __future__ import annotations

from random import Random
from typing import Any

import pytest
from concurrent_objects import random_topic
from histories import planted, told
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.metadata_operations import check_metadata
from penstock.chaos.checkers.object_models import UNSET, Action
from penstock.chaos.histories.operation import History


def did(f: str, answer: Any = None, *, final: bool = False, **value: Any) -> list[Any]:
    asked = {"name": "t", **value}
    told = asked if answer is None else {**asked, **answer}
    more = ("final",) if final else ()
    return [(0, f, "invoke", asked, *more), (0, f, "ok", told, *more)]


def refused(f: str, error: str, **value: Any) -> list[Any]:
    return [(0, f, "invoke", {"name": "t", **value}), (0, f, "fail", None, error)]


CREATED = did("create-topic", partitions=3, configs={"a": "1"})


def found(history: History) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [(one.type, one.allowed, one.operations) for one in check_metadata(history).findings]


@pytest.mark.parametrize(
    ("events", "operations"),
    [
        (did("create-topic", partitions=1, configs=None), (1, 3)),
        (refused("create-partitions", "INVALID_PARTITIONS", total=9), (1, 3)),
        (refused("delete-topic", "UNKNOWN_TOPIC_OR_PARTITION"), (1, 3)),
        (did("describe-topic", {"partitions": None}, final=True), (1, 3)),
        (did("get-config", {"value": "2"}, key="a", final=True), (1, 3)),
        (did("delete-topic") + refused("create-topic", "TOPIC_ALREADY_EXISTS", partitions=1), (3, 5)),
        (did("delete-topic") + did("set-config", key="a", value="5"), (3, 5)),
    ],
    ids=["created twice", "refused to grow", "missing", "gone", "another value",
         "exists after its deletion", "set after its deletion"],
)  # fmt: skip
def test_what_has_no_place_is_found_with_its_evidence(events: list[Any], operations: tuple[int, ...]) -> None:
    ((kind, allowed, evidence),) = found(planted(*CREATED, *events))
    assert (kind, allowed) == ("non-linearizable", False)
    assert evidence[-1] == operations[-1]
    assert {*evidence} <= {*operations, 1}


def test_what_no_operation_asked_for_is_found() -> None:
    assert found(planted(*CREATED, *did("describe-topic", {"partitions": 9}))) == [("unexpected", False, (3,))]
    failed = refused("create-partitions", "INVALID_REPLICATION_FACTOR", total=9)
    told = did("describe-topic", {"partitions": 9}, final=True)
    assert found(planted(*CREATED, *failed, *told)) == [("unexpected", False, (5,))]
    early = did("get-config", {"value": "7"}, key="a") + did("set-config", key="a", value="7")
    assert found(planted(*CREATED, *early)) == [("unexpected", False, (3,))]


def test_a_read_that_is_refused_says_that_there_is_no_topic() -> None:
    refusals = refused("get-config", "UNKNOWN_TOPIC_OR_PARTITION", key="a")
    assert not found(planted(*refusals, *CREATED))
    assert found(planted(*CREATED, *refusals)) == [("stale-read", True, (1, 3))]


def test_a_broker_may_be_behind_until_the_end() -> None:
    behind = did("describe-topic", {"partitions": None})
    assert found(planted(*CREATED, *behind)) == [("stale-read", True, (1, 3))]
    old = did("get-config", {"value": "1"}, key="a")
    changed = did("set-config", key="a", value="2")
    assert [kind for kind, _, _ in found(planted(*CREATED, *changed, *old))] == ["stale-read"]


def test_a_change_without_an_answer_may_come_late_or_never() -> None:
    lost = [(7, "delete-topic", "invoke", {"name": "t"}), (7, "delete-topic", "info", None, "no answer in time")]
    gone = did("describe-topic", {"partitions": None}, final=True)
    there = did("describe-topic", {"partitions": 3}, final=True)
    assert not found(planted(*CREATED, *lost, *there, *gone))
    assert [kind for kind, _, _ in found(planted(*CREATED, *lost, *gone, *there))] == ["non-linearizable"]


def test_failures_that_say_nothing_of_the_topic_are_left_out() -> None:
    checked = check_metadata(planted(*CREATED, *refused("create-topic", "NOT_CONTROLLER", partitions=1)))
    assert not checked.findings
    assert checked.statistics == {"topics": 1, "judged-operations": 1, "topics-not-decided": 0}


def _words(action: Action) -> tuple[str, Any, Any, str | None]:
    name, argument = {"name": "t"}, action.argument
    match action.kind:
        case "create":
            assert isinstance(action.value, tuple)
            return "create-topic", {**name, "partitions": argument, "configs": dict(action.value)}, None, None
        case "grow":
            return "create-partitions", {**name, "total": argument}, None, None
        case "set":
            return "set-config", {**name, "key": argument, "value": action.value}, None, None
        case "describe":
            return "describe-topic", name, {**name, "partitions": argument}, None
        case "get":
            value = None if action.value == UNSET else action.value
            return "get-config", {**name, "key": argument}, {**name, "key": argument, "value": value}, None
        case "exists":
            return "create-topic", {**name, "partitions": 1, "configs": None}, None, "TOPIC_ALREADY_EXISTS"
        case "missing":
            return "delete-topic", name, None, "_UNKNOWN_TOPIC_OR_PART: no such topic"
        case "not-larger":
            return "create-partitions", {**name, "total": argument}, None, "INVALID_PARTITIONS"
    return "delete-topic", name, None, None


@given(seed=st.integers(0, 1 << 32))
def test_topics_that_work_are_clean(seed: int) -> None:
    assert not found(told(random_topic(Random(seed), operations=40, broken_share=0), _words))
