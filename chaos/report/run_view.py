"""A run with what every section of its report needs of it, worked out once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Self

from msgspec import Struct

from ..checkers.finding import Finding, worst_first
from ..histories.operation import Operation, Pair
from .fault_band import FaultBand, fault_bands
from .recorded_run import RecordedRun

# What of the findings are records that are gone.
LOSSES: Final = frozenset({"lost-write", "unseen", "lost-output"})


class RunView(Struct, frozen=True, kw_only=True):
    """`findings` come as the page counts them: those first that are not allowed. `by_index` has pairs under the
    indices of both of their events."""

    run: RecordedRun
    pairs: Sequence[Pair]
    end_ns: int
    bands: Sequence[FaultBand]
    findings: Sequence[Finding]
    by_index: dict[int, Pair]
    events: dict[int, Operation]

    @classmethod
    def of(cls, run: RecordedRun) -> Self:
        pairs = list(run.history.pairs())
        last = [operation.time for operation in run.history.operations[-1:]]
        end_ns = max([1, *last, *(sample.time for sample in run.samples[-1:])])
        findings = () if run.verdict is None else run.verdict.findings
        wanted = {index for finding in findings for index in finding.operations}
        by_index: dict[int, Pair] = {}
        for pair in pairs:
            for event in (pair.invocation, pair.completion):
                if event is not None and event.index in wanted:
                    by_index[event.index] = pair
        return cls(
            run=run,
            pairs=pairs,
            end_ns=end_ns,
            bands=fault_bands(run.history, end_ns),
            findings=worst_first(findings),
            by_index=by_index,
            events={event.index: event for event in run.history.operations if event.index in wanted},
        )

    @property
    def breaches(self) -> list[tuple[int, Finding]]:
        """What a reader must see: anomalies, and records that are gone although that is allowed; each with its number.
        Left out is what nothing promises to prevent."""
        return [
            (number, finding)
            for number, finding in enumerate(self.findings, 1)
            if not finding.allowed or finding.type in LOSSES
        ]

    def total(self, *, is_allowed: bool, types: Collection[str] | None = None) -> int:
        """How many findings there are, of all types or of these, as `Verdict.count_of` counts them."""
        verdict = self.run.verdict
        if verdict is None:
            return 0
        shown = {finding.type for finding in self.findings if finding.allowed == is_allowed}
        return sum(verdict.count_of(type_, is_allowed=is_allowed) for type_ in shown if types is None or type_ in types)

    def time_of(self, finding: Finding) -> int | None:
        """When the last of the events that prove it took place."""
        times = [self.events[index].time for index in finding.operations if index in self.events]
        return max(times, default=None)

    def bands_at(self, begin_ns: int, end_ns: int) -> list[FaultBand]:
        return [band for band in self.bands if band.begin_ns <= end_ns and begin_ns <= band.end_ns]
