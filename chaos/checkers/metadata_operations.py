"""Whether topics, their partitions and configurations change one operation at a time: linearizability of metadata.

Each topic name is an object of its own (`object_models.topic`). A refusal says something, too: that there was a topic
of that name, or none. A broker answers reads with the metadata that it has replayed, so a *stale-read* is allowed
unless the read is final; changes, and refusals of changes, come from the active controller and are never stale.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..histories.operation import History, Pair
from .finding import Checked, Findings
from .linearizability import Step
from .micro_operations import is_final
from .object_models import UNSET, Action, topic
from .object_orders import find_disorder

STALE_IS_ALLOWED: Final = "a broker answers with the metadata that it has replayed, which are behind the controller's"

_READS: Final = ("describe-topic", "get-config")
_OPERATIONS: Final = (*_READS, "create-topic", "delete-topic", "create-partitions", "set-config")
# Names of Apache Kafka and of librdkafka.
_MISSING: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID"})
_EXISTS: Final = frozenset({"TOPIC_ALREADY_EXISTS"})
_NOT_LARGER: Final = frozenset({"INVALID_PARTITIONS"})


def check_metadata(history: History) -> Checked:
    """Operations `create-topic`, `delete-topic`, `create-partitions`, `set-config`, `describe-topic` and `get-config`.

    A configuration that no operation set may be read as anything that no operation sets it to.
    """
    findings = Findings()
    pairs: dict[str, list[Pair]] = {}
    settings: set[tuple[str, str]] = set()
    for pair in history.pairs():
        value = pair.invocation.value
        if isinstance(value, dict) and "name" in value:
            pairs.setdefault(value["name"], []).append(pair)
            settings |= _settings(pair.invocation.f, value)
    operations = 0
    undecided = 0
    for name, of_topic in pairs.items():
        foreign = _find_foreign(findings, name, of_topic, settings)
        firm: list[Step] = []
        lenient: list[Step] = []
        for pair in of_topic:
            step = _step(pair, settings)
            if step is not None and step.returned not in foreign:
                (lenient if pair.invocation.f in _READS and not is_final(pair) else firm).append(step)
        operations += len(firm) + len(lenient)
        undecided += not find_disorder(findings, name, firm, lenient, topic, why_stale=STALE_IS_ALLOWED)
    return findings.checked({"topics": len(pairs), "judged-operations": operations, "topics-not-decided": undecided})


def _find_foreign(
    findings: Findings, name: str, pairs: Sequence[Pair], settings: set[tuple[str, str]]
) -> set[int | None]:
    """Reads of what no operation that may have succeeded had asked for before: their events."""
    foreign: set[int | None] = set()
    asked: dict[Hashable, int] = {}
    for pair in pairs:
        change = None if pair.outcome == "fail" else _change(pair.invocation.f, pair.invocation.value)
        for told in () if change is None else _told_by(change):
            asked.setdefault(told, pair.invocation.index)
    for pair in pairs:
        read = _step(pair, settings) if pair.invocation.f in _READS else None
        if read is None or read.returned is None:
            continue
        assert isinstance(read.action, Action)
        kind, argument, value = read.action
        if kind not in ("describe", "get"):
            continue
        told = argument if kind == "describe" else (argument, value)
        if told is not None and value != UNSET and asked.get(told, read.returned) >= read.returned:
            what = f"{argument} partitions" if kind == "describe" else f"{argument}={value}"
            message = f"{name} is told to have {what}, which nothing that may have succeeded had asked for before"
            findings.add("unexpected", message, (read.returned,), key=name)
            foreign.add(read.returned)
    return foreign


def _told_by(change: Action) -> Iterator[Hashable]:
    """What reads may tell once it is done: numbers of partitions, pairs of a key and its value."""
    kind, argument, value = change
    if kind in ("create", "grow"):
        yield argument
    if kind == "create":
        assert isinstance(value, tuple)
        yield from value
    if kind == "set":
        yield argument, value


def _step(pair: Pair, settings: set[tuple[str, str]]) -> Step | None:
    """None for what says nothing: a read without an answer, a failure that says nothing of the topic."""
    f = pair.invocation.f
    action: Action | None
    if pair.outcome == "fail":
        action = _refusal(pair)
    elif f in _READS:
        action = _answer(pair, settings) if pair.outcome == "ok" else None
    else:
        action = _change(f, pair.invocation.value)
    if action is None:
        return None
    returned = None if pair.outcome == "info" else pair.index
    return Step(pair.invocation.index, returned, action, f not in _READS and pair.outcome != "fail")


def _change(f: str, value: Mapping[str, Any]) -> Action | None:
    match f:
        case "create-topic":
            configs = value.get("configs") or {}
            return Action("create", value["partitions"], tuple(sorted((key, str(configs[key])) for key in configs)))
        case "delete-topic":
            return Action("delete")
        case "create-partitions":
            return Action("grow", value["total"])
        case "set-config":
            return Action("set", value["key"], str(value["value"]))
    return None


def _answer(pair: Pair, settings: set[tuple[str, str]]) -> Action:
    """Of a read: the value alone, or within what was asked."""
    asked, told = pair.invocation.value, pair.value
    if pair.invocation.f == "describe-topic":
        return Action("describe", told.get("partitions") if isinstance(told, dict) else told)
    value = str(told.get("value") if isinstance(told, dict) else told)
    return Action("get", asked["key"], value if (asked["key"], value) in settings else UNSET)


def _refusal(pair: Pair) -> Action | None:
    completion = pair.completion
    assert completion is not None, "of what failed"
    # The code's name may be followed by a sentence.
    told = completion.value if isinstance(completion.value, str) else completion.error or ""
    code = told.replace(":", " ").split(" ")[0].lstrip("_")
    f, value = pair.invocation.f, pair.invocation.value
    if code in _MISSING:
        return Action("describe", None) if f == "describe-topic" else Action("missing")
    if code in _EXISTS and f == "create-topic":
        return Action("exists")
    if code in _NOT_LARGER and f == "create-partitions":
        return Action("not-larger", value["total"])
    return None


def _settings(f: str, value: Mapping[str, Any]) -> set[tuple[str, str]]:
    """What an operation sets, or tries to: keys with values."""
    if f == "set-config":
        return {(value["key"], str(value["value"]))}
    if f == "create-topic":
        return {(key, str(one)) for key, one in (value.get("configs") or {}).items()}
    return set()


def is_refusal(pair: Pair) -> bool:
    """Whether it failed because of what the topic was: the answer of a cluster that works."""
    return pair.outcome == "fail" and pair.invocation.f in _OPERATIONS and _refusal(pair) is not None
