"""The verdict on a run: what its checkers find, and whether the run shows anything at all.

A run is invalid, not valid, when it could not have failed: no operation that needs the cluster succeeded; a fault that
was declared did not occur or did not take hold; a link did not work again after its fault had ended; a process went on
under its number after an unknown outcome, or completed what it had not begun; a checker could not decide. Source of the
principle: parsley-jepsen, "a run whose declared fault never fired is invalid".

The nemesis writes of each fault two `info` events of its kind, a beginning and an end. Where it knows that the fault
did not take hold, either event has `"took_hold": false` in its value, and `error` says why. Partitions are proved by
canaries, `{"link": [source, target], "works": bool, "during": kind or null}`: one has to fail during each of them,
before the next of its kind begins.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ..histories.operation import NEMESIS, History, Operation
from .finding import UNDECIDED, Checked, Checker, Finding, Verdict, worst_first

CANARY: Final = "canary"
# Kinds of faults that begin so make links fail, as a canary can tell; others are proved by the nemesis itself.
PARTITION: Final = "partition"
# What a client does by itself, whether a cluster answers or not.
_OF_THE_CLIENT: Final = frozenset({"assign", "subscribe", "crash", "debug-topic-partitions"})


def judge(
    history: History,
    checkers: Mapping[str, Checker],
    *,
    declared: Collection[str] = (),
    allowances: Mapping[str, str] | None = None,
) -> Verdict:
    """What `checkers`, by name, say of `history`. `declared` are the kinds of faults that the run was to have.
    `allowances` has types of findings that its faults allow, as they go beyond what is guaranteed, with the sentence
    that allows them. Raises ValueError for values that are not those of the workload."""
    checked = {name: _checked(name, checker, history) for name, checker in checkers.items()}
    findings = worst_first(_allowed(finding, allowances or {}) for one in checked.values() for finding in one.findings)
    counts: Counter[str] = Counter()
    for one in checked.values():
        counts.update(one.counts)
    run = _Run()
    last_index = 0
    for operation in history.operations:
        run.feed(operation)
        last_index = operation.index
    notes = (
        *run.notes(last_index),
        *(f"the fault {kind} never occurred" for kind in sorted({*declared} - run.begun.keys())),
        *(finding.message for finding in findings if finding.type == UNDECIDED),
    )
    has_anomaly = any(not finding.allowed for finding in findings)
    return Verdict(
        valid="anomalies" if has_anomaly else "invalid-run" if notes else "valid",
        findings=tuple(findings),
        counts=dict(counts),
        statistics={"operations": run.statistics()}
        | {name: one.statistics for name, one in checked.items() if one.statistics},
        notes=notes,
    )


def _checked(name: str, checker: Checker, history: History) -> Checked:
    try:
        return checker(history)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"the checker {name} expected operations of the workload {history.header.workload!r}, with values as "
            f"docs/correctness.md has them, and found another ({type(error).__name__}: {error})"
        ) from error


def _allowed(finding: Finding, allowances: Mapping[str, str]) -> Finding:
    if finding.allowed or finding.type not in allowances:
        return finding
    return msgspec.structs.replace(finding, allowed=True, why_allowed=allowances[finding.type])


@dataclass(slots=True)
class _Run:
    """What is known of a run after some of its events."""

    outcomes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    begun: Counter[str] = field(default_factory=Counter)
    # Of each partition that holds: how many of its canaries failed, and how many worked in spite of it.
    canaries: dict[str, tuple[int, int]] = field(default_factory=dict)
    # By kind of fault, the last reason why one did not take hold.
    without_effect: dict[str, tuple[int, str]] = field(default_factory=dict)
    # By link, the last canary of a quiet time, if it failed.
    broken: dict[str, int] = field(default_factory=dict)
    # Processes that are at an operation, and those whose last outcome was unknown.
    busy: set[int | str] = field(default_factory=set)
    gone: set[int | str] = field(default_factory=set)
    revenants: dict[int | str, int] = field(default_factory=dict)
    # By process, the first completion of nothing.
    strays: dict[int | str, int] = field(default_factory=dict)
    has_success: bool = False

    def feed(self, operation: Operation) -> None:
        if operation.process == NEMESIS:
            self._feed_fault(operation)
            return
        if operation.type == "invoke":
            if operation.process in self.gone or operation.process in self.busy:
                self.revenants.setdefault(operation.process, operation.index)
            self.busy.add(operation.process)
            return
        if operation.process not in self.busy:
            self.strays.setdefault(operation.process, operation.index)
        self.busy.discard(operation.process)
        if operation.type == "info":
            self.gone.add(operation.process)
        self.outcomes[operation.f][operation.type] += 1
        self.has_success = self.has_success or (operation.type == "ok" and _needs_cluster(operation))

    def _feed_fault(self, operation: Operation) -> None:
        value: Mapping[str, Any] = operation.value if isinstance(operation.value, dict) else {}
        if operation.f == CANARY:
            during = value.get("during")
            works = bool(value.get("works"))
            if during is not None:
                failed, worked = self.canaries.get(during, (0, 0))
                self.canaries[during] = failed + (not works), worked + works
            elif works:
                self.broken.pop(_link(value), None)
            else:
                self.broken[_link(value)] = operation.index
            return
        if "begin" in value:
            # Of one that still holds, all canaries were sent by now.
            self._prove(operation.f, operation.index)
            self.begun[operation.f] += 1
            self.canaries[operation.f] = 0, 0
        elif "end" in value:
            self._prove(operation.f, operation.index)
        if value.get("took_hold") is False or operation.error is not None:
            self.without_effect[operation.f] = operation.index, operation.error or "the nemesis saw no effect"

    def _prove(self, kind: str, index: int) -> None:
        """At the end of a fault or when the next of its kind begins; a second time, it says nothing."""
        if kind not in self.canaries:
            return
        failed, worked = self.canaries.pop(kind)
        if kind.startswith(PARTITION) and not failed:
            tried = f"{worked} canaries went through" if worked else "no canary was sent"
            self.without_effect.setdefault(kind, (index, f"{tried} while it was declared"))

    def notes(self, last_index: int) -> Iterator[str]:
        """Why the run shows nothing, a sentence each. Faults that hold yet end at `last_index`, with the history."""
        for kind in sorted(self.canaries):
            self._prove(kind, last_index)
        if not self.has_success:
            yield "no operation of a client succeeded that needs a cluster, so nothing was put to the test"
        for kind, (index, reason) in sorted(self.without_effect.items()):
            yield f"the fault {kind} did not take hold (event {index}): {reason}"
        for link, index in sorted(self.broken.items()):
            yield f"the link {link} did not work after its fault had ended (event {index})"
        for process, index in sorted(self.revenants.items(), key=lambda item: item[1]):
            yield f"process {process} went on after an outcome that it did not know (event {index})"
        for process, index in sorted(self.strays.items(), key=lambda item: item[1]):
            yield f"process {process} completed what it had not begun (event {index})"

    def statistics(self) -> dict[str, dict[str, int]]:
        """Completions by operation and outcome."""
        return {f: dict(outcomes) for f, outcomes in sorted(self.outcomes.items())}


def _needs_cluster(operation: Operation) -> bool:
    """Whether only a cluster can have answered so: a poll that returned nothing may have reached none."""
    if operation.f in _OF_THE_CLIENT:
        return False
    if operation.f not in ("poll", "txn") or not isinstance(operation.value, list):
        return True
    return any(micro and (micro[0] != "poll" or any(micro[1:])) for micro in operation.value)


def _link(value: Mapping[str, Any]) -> str:
    return " → ".join(map(str, value.get("link") or ["?"]))
