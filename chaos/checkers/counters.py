"""Whether counters count what was added, once: each read lies between what was added for certain before it and all that
may have been.

At least what was acknowledged before the read began, and at most that and everything that was asked for before it
returned, but for what certainly failed. What one process reads never falls. A leader that was replaced may answer with
less for a while: a *stale-read*, allowed unless the read is final.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..histories.operation import History, Pair
from .finding import Checked, Findings
from .micro_operations import is_final
from .registers import STALE_IS_ALLOWED

NOT_IDEMPOTENT = "the producers are not idempotent, and what they send again may be there twice"


@dataclass(slots=True)
class _Counter:
    acknowledged: int = 0
    possible: int = 0
    # By process, the highest value that it has read, and where.
    read: dict[int | str, tuple[int, int]] = field(default_factory=dict)


def check_counters(history: History) -> Checked:
    """Operations `add` {"k", "n"}, n not negative, and `read` {"k"} → {"k", "n"}."""
    findings = Findings()
    counters: dict[str, _Counter] = {}
    pairs = {pair.invocation.index: pair for pair in history.pairs() if pair.invocation.f in ("add", "read")}
    completed = {pair.index: pair for pair in pairs.values() if pair.outcome == "ok"}
    # By invocation of a read, what was acknowledged then.
    least: dict[int, int] = {}
    for operation in history.operations:
        pair = pairs.get(operation.index)
        if pair is not None:
            one = counters.setdefault(_key(pair), _Counter())
            if operation.f == "read":
                least[operation.index] = one.acknowledged
            elif pair.outcome != "fail":
                one.possible += operation.value["n"]
            continue
        pair = completed.get(operation.index)
        if pair is None:
            continue
        one = counters.setdefault(_key(pair), _Counter())
        if operation.f == "add":
            one.acknowledged += pair.invocation.value["n"]
        else:
            _judge(findings, history, one, pair, least[pair.invocation.index])
    return findings.checked(
        {
            "counters": len(counters),
            "reads": len(least),
            "acknowledged": {key: one.acknowledged for key, one in counters.items()},
            "possible": {key: one.possible for key, one in counters.items()},
        }
    )


def _judge(findings: Findings, history: History, one: _Counter, pair: Pair, least: int) -> None:
    key, told, process = _key(pair), pair.value["n"], pair.invocation.process
    highest, before = one.read.get(process, (0, pair.index))
    if told > one.possible:
        message = f"{key} reads {told}, and at most {one.possible} can have been added"
        why = None if history.header.idempotent else NOT_IDEMPOTENT
        findings.add("counted-twice", message, (pair.index,), key=key, why_allowed=why)
    elif told < least:
        message = f"{key} reads {told}, and {least} had been acknowledged before"
        if is_final(pair):
            findings.add("lost-write", message, (pair.index,), key=key)
        else:
            findings.add("stale-read", message, (pair.index,), key=key, why_allowed=STALE_IS_ALLOWED)
    if told < highest:
        message = f"process {process} reads {highest} of {key} and then {told}"
        findings.add("nonmonotonic-read", message, (before, pair.index), key=key)
    else:
        one.read[process] = told, pair.index


def _key(pair: Pair) -> str:
    return str(pair.invocation.value["k"])
