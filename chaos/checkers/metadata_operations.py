"""Whether topics, their partitions and configurations change one operation at a time: linearizability of metadata.

Each topic name is an object of its own (`object_models.topic`). A refusal says something, too: that there was a topic
of that name, or none. A broker answers reads with the metadata that it has replayed, so a *stale-read* is allowed
unless the read is final; changes, and refusals of changes, come from the active controller and are never stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..histories.operation import History, Pair
from .finding import Checked, Findings
from .linearizability import Step, evidence, linearize
from .object_models import UNSET, Action, topic
from .registers import indices, undecided

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
    for name, of_topic in pairs.items():
        strict = [step for pair in of_topic if (step := _step(pair, settings, stale=False)) is not None]
        operations += len(strict)
        found = linearize(strict, topic)
        if found.outcome == "linearizable":
            continue
        relaxed = [step for pair in of_topic if (step := _step(pair, settings, stale=True)) is not None]
        without_stale = linearize(relaxed, topic)
        if "unknown" in (found.outcome, without_stale.outcome):
            undecided(findings, name)
            continue
        is_stale = without_stale.outcome == "linearizable"
        judged, steps = (found, strict) if is_stale else (without_stale, relaxed)
        assert judged.end is not None, "of a history without a linearization"
        proof = indices(evidence(steps, topic, judged.end))
        action = next(step.action for step in steps if step.returned == judged.end)
        assert isinstance(action, Action)
        states = " or ".join(map(str, judged.states[:3]))
        findings.add(
            "stale-read" if is_stale else "non-linearizable",
            f"{name}: {action.kind} ({_told(action)}) has no place, where the topic could be {states}",
            proof,
            key=name,
            why_allowed=STALE_IS_ALLOWED if is_stale else None,
        )
    return findings.checked({"topics": len(pairs), "judged-operations": operations})


def _step(pair: Pair, settings: set[tuple[str, str]], *, stale: bool) -> Step | None:
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
    final = pair.invocation.final or (pair.completion is not None and pair.completion.final)
    invoked = -1 if stale and f in _READS and not final else pair.invocation.index
    is_change = f not in _READS and pair.outcome != "fail"
    return Step(invoked, returned, action, is_change)


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


def _told(action: Action) -> str:
    return ", ".join(str(one) for one in (action.argument, action.value) if one is not None)


def is_refusal(pair: Pair) -> bool:
    """Whether it failed because of what the topic was: the answer of a cluster that works."""
    return pair.outcome == "fail" and pair.invocation.f in _OPERATIONS and _refusal(pair) is not None
