"""What checkers say of a history: findings, each with the operations that prove it, and the verdict made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from ..histories.operation import History

# Of one type, allowed or not, this many are kept and the others counted: what is broken is broken often, and a verdict
# is read by people.
KEPT_OF_A_TYPE: Final = 32
# The type of what a checker could not decide: neither an anomaly nor a proof that there can be no anomaly.
UNDECIDED: Final = "undecided"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One anomaly. `type` is its name in Jepsen where Jepsen has one."""

    type: str
    # Whether what was promised leaves room for it; then `why_allowed` says in a sentence why.
    allowed: bool = False
    # The partition ("t-0"), register or topic that it is about; None where it is about several.
    key: str | None = None
    message: str
    # Indices of the events that prove it, as `Pair.index` names operations: the completion, else the invocation.
    operations: tuple[int, ...] = ()
    why_allowed: str | None = None
    # What a page or a program needs beyond the sentence: offsets, values, the steps of a cycle. JSON values only.
    detail: Any = None


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What one checker says. `counts` has every type, those included of which not all findings are kept."""

    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = {}
    # Figures and series by name, JSON values only.
    statistics: Mapping[str, Any] = {}


Checker = Callable[[History], Checked]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a run; `verdict.json` in its folder. `anomalies` where one is not allowed, whatever else the run
    lacks; else `invalid-run` where it shows nothing, and `notes` say why; else `valid`."""

    valid: Literal["valid", "invalid-run", "anomalies"]
    findings: tuple[Finding, ...] = ()
    # By type, allowed ones too.
    counts: Mapping[str, int] = {}
    # By name of the checker.
    statistics: Mapping[str, Mapping[str, Any]] = {}
    # Why the run is invalid, a sentence each.
    notes: tuple[str, ...] = ()

    def count_of(self, type_: str, *, is_allowed: bool) -> int:
        """How many findings of a type there are, those included of which only the number is kept. Where a type has
        allowed ones and others, those that are kept say how many are which."""
        kept = Counter(finding.allowed for finding in self.findings if finding.type == type_)
        return kept[is_allowed] if kept[not is_allowed] else max(kept[is_allowed], self.counts.get(type_, 0))


class Findings:
    """Collects findings while a checker runs; keeps `KEPT_OF_A_TYPE` of each type and counts all."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: list[Finding] = []
        self._room: Counter[tuple[str, bool]] = Counter()

    def add(
        self,
        type_: str,
        message: str | Callable[[], str],
        operations: Iterable[int],
        *,
        key: str | None = None,
        why_allowed: str | None = None,
        detail: Any = None,
    ) -> None:
        """Note one anomaly, allowed if `why_allowed` says why. A message that costs is made only of what is kept."""
        allowed = why_allowed is not None
        self.counts[type_] += 1
        self._room[type_, allowed] += 1
        if self._room[type_, allowed] <= KEPT_OF_A_TYPE:
            self._kept.append(
                Finding(
                    type=type_,
                    allowed=allowed,
                    key=key,
                    message=message if isinstance(message, str) else message(),
                    operations=tuple(dict.fromkeys(operations)),
                    why_allowed=why_allowed,
                    detail=detail,
                )
            )

    def checked(self, statistics: Mapping[str, Any] | None = None) -> Checked:
        return Checked(findings=tuple(self._kept), counts=dict(self.counts), statistics=statistics or {})


def worst_first(findings: Iterable[Finding]) -> Sequence[Finding]:
    """Those first that are not allowed; otherwise in their order."""
    return sorted(findings, key=lambda finding: finding.allowed)
