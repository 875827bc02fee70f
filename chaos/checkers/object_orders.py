"""Findings about the order of operations on one object, of which some reads may tell the past."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .finding import UNDECIDED, Findings
from .linearizability import Model, Step, evidence, linearize


def find_disorder(
    findings: Findings, key: str, firm: Sequence[Step], lenient: Sequence[Step], model: Model, *, why_stale: str
) -> bool:
    """non-linearizable where the `firm` steps have no order, whatever the `lenient` ones told; stale-read, which is
    allowed, where they have one, and no longer with those. Returns whether it was decided which of these it is."""
    found = linearize(firm, model)
    if found.outcome == "unknown":
        why = "nothing is known of its order: that is no failure, and no success either"
        findings.add(UNDECIDED, f"the search of an order for {key} was given up", (), key=key, why_allowed=why)
        return False
    steps = firm
    is_stale = found.outcome == "linearizable"
    if is_stale:
        steps = [*firm, *lenient]
        found = linearize(steps, model) if lenient else found
    if found.end is not None:
        action = next(step.action for step in steps if step.returned == found.end)
        states = " or ".join(map(str, found.states[:3]))
        findings.add(
            "stale-read" if is_stale else "non-linearizable",
            f"{key}: {action} has no place, where the state could be {states}",
            _events(evidence(steps, model, found.end)),
            key=key,
            why_allowed=why_stale if is_stale else None,
        )
    return found.outcome != "unknown"


def _events(steps: Iterable[Step]) -> tuple[int, ...]:
    """By which findings name operations."""
    return tuple(sorted(step.invoked if step.returned is None else step.returned for step in steps))
