"""Whether each key of a compacted topic was a register: what is read is the last value written, in an order that real
time does not forbid.

Where the values of a key differ, its clusters of operations are compared (`register_zones`); else an order is searched.
A read may be answered by a leader that does not know yet that it was replaced, so a value that was overwritten may be
read for a while: a *stale-read*, allowed unless the read is final. The order of writes, and what one process reads one
after the other, never goes back.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from ..histories.operation import History, Pair
from .finding import Checked, Findings
from .linearizability import Step
from .object_models import Action, register
from .object_orders import find_disorder
from .register_zones import Cluster, Violation, violations

STALE_IS_ALLOWED: Final = (
    "a leader that was replaced, and cannot know it yet, answers fetches with what it has; the final reads see all"
)


class _Write(NamedTuple):
    value: Hashable
    invoked: int
    # None: unknown.
    returned: int | None


class _Read(NamedTuple):
    value: Hashable
    invoked: int
    returned: int
    process: int | str
    final: bool


@dataclass(slots=True)
class _Register:
    writes: list[_Write] = field(default_factory=list)
    reads: list[_Read] = field(default_factory=list)
    # The completion, by value.
    failed: dict[Hashable, int] = field(default_factory=dict)

    def has_different_values(self) -> bool:
        values = {write.value for write in self.writes}
        return len(values) == len(self.writes) and None not in values


def check_registers(history: History) -> Checked:
    """Operations `write` {"k", "v"} and `read` {"k"} → {"k", "v"}; a key that was never written reads as null."""
    findings = Findings()
    times = _Times(history)
    found: dict[str, _Register] = {}
    for pair in history.pairs():
        _take(found, pair)
    worst_ns = 0
    for key, one in found.items():
        _check_origins(findings, key, one)
        if one.has_different_values():
            worst_ns = max(worst_ns, _check_zones(findings, key, one, times))
        else:
            _check_order(findings, key, one)
    return findings.checked(
        {
            "registers": len(found),
            "reads": sum(len(one.reads) for one in found.values()),
            "writes": sum(len(one.writes) for one in found.values()),
            "unknown-writes": sum(write.returned is None for one in found.values() for write in one.writes),
            "worst-staleness-ms": round(worst_ns / 1e6, 3),
        }
    )


class _Times:
    """Of events, in nanoseconds, for the few that are asked about."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._times: dict[int, int] = {}

    def between(self, first: float, second: float) -> int:
        if not self._times:
            self._times = {operation.index: operation.time for operation in self._history.operations}
        return self._times[int(second)] - self._times[int(first)]


def _take(found: dict[str, _Register], pair: Pair) -> None:
    invocation = pair.invocation
    if invocation.f == "write":
        one = found.setdefault(str(invocation.value["k"]), _Register())
        value = invocation.value["v"]
        if pair.outcome == "fail":
            one.failed[value] = pair.index
        else:
            one.writes.append(_Write(value, invocation.index, pair.index if pair.outcome == "ok" else None))
    elif invocation.f == "read" and pair.outcome == "ok":
        one = found.setdefault(str(invocation.value["k"]), _Register())
        final = invocation.final or (pair.completion is not None and pair.completion.final)
        one.reads.append(_Read(pair.value["v"], invocation.index, pair.index, invocation.process, final))


def _check_origins(findings: Findings, key: str, one: _Register) -> None:
    """Leaves only reads of values that may have been written."""
    written = {write.value for write in one.writes} | {None}
    for read in one.reads:
        if read.value in written:
            continue
        if read.value in one.failed:
            message = f"{key} reads {read.value!r}, whose write certainly failed"
            findings.add("G1a", message, (one.failed[read.value], read.returned), key=key)
        else:
            findings.add("unexpected", f"{key} reads {read.value!r}, which no write wrote", (read.returned,), key=key)
    one.reads = [read for read in one.reads if read.value in written]


def _check_zones(findings: Findings, key: str, one: _Register, times: _Times) -> int:
    """Returns how long ago, in nanoseconds, the value of the stalest read was overwritten."""
    strict = _clusters(one, stale=False)
    worst_ns = 0
    found = list(violations(strict))
    if found:
        _check_sessions(findings, key, one, strict)
        broken = list(violations(_clusters(one, stale=True)))
        finals = {read.returned for read in one.reads if read.final}
        for violation in broken:
            is_lost = violation.kind != "early-read" and violation.first.last_reader in finals
            kind = "lost-write" if is_lost else "non-linearizable"
            findings.add(kind, _sentence(key, violation), violation.operations(), key=key)
        of_values = {violation.first.value for violation in broken}
        for violation in found:
            if violation.first.value in of_values or violation.second is None:
                continue
            stale_ns = times.between(violation.second.first_returned, violation.first.last_invoked)
            worst_ns = max(worst_ns, stale_ns)
            findings.add(
                "stale-read", _sentence(key, violation), violation.operations(),
                key=key, why_allowed=STALE_IS_ALLOWED, detail={"stale_ms": round(stale_ns / 1e6, 3)},
            )  # fmt: skip
    return worst_ns


def _clusters(one: _Register, *, stale: bool) -> dict[Hashable, Cluster]:
    """`stale`: a read that is not final may tell any value that was written before it."""
    clusters: dict[Hashable, Cluster] = {None: Cluster(None)}
    for value, invoked, returned in one.writes:
        clusters[value] = Cluster(
            value, invoked, inf if returned is None else returned, is_acknowledged=returned is not None
        )
    for read in one.reads:
        clusters[read.value].read(-inf if stale and not read.final else read.invoked, read.returned)
    return clusters


def _check_sessions(findings: Findings, key: str, one: _Register, clusters: Mapping[Hashable, Cluster]) -> None:
    """No process reads a value, then one that certainly was there before that was written."""
    newest: dict[int | str, _Read] = {}
    for read in one.reads:
        before = newest.get(read.process)
        if before is None or before.value == read.value:
            newest[read.process] = read
        elif clusters[read.value].first_returned < clusters[before.value].invoked:
            message = (
                f"process {read.process} reads {before.value!r} of {key} and then {read.value!r}, which is older: "
                f"it was there before the write of {before.value!r} began"
            )
            findings.add("nonmonotonic-read", message, (before.returned, read.returned), key=key)
        else:
            newest[read.process] = read


def _sentence(key: str, violation: Violation) -> str:
    first, second = violation.first, violation.second
    if second is None:
        return f"{key} reads {first.value!r} before it is written"
    if violation.kind == "within":
        return (
            f"{key} has {first.value!r} all the time from event {first.first_returned:.0f} to event "
            f"{first.last_invoked:.0f}, in which {second.value!r} is written, and stays"
        )
    return (
        f"{key} has {first.value!r} at event {first.first_returned:.0f} and at event {first.last_invoked:.0f}, and "
        f"{second.value!r} at event {second.first_returned:.0f} in between"
    )


def _check_order(findings: Findings, key: str, one: _Register) -> None:
    firm = [Step(invoked, returned, Action("write", value)) for value, invoked, returned in one.writes]
    lenient: list[Step] = []
    for read in one.reads:
        reads = firm if read.final else lenient
        reads.append(Step(read.invoked, read.returned, Action("read", read.value), is_change=False))
    find_disorder(findings, key, firm, lenient, register, why_stale=STALE_IS_ALLOWED)
