"""What the checkers of all keys found, as one checker of all would have said it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...chaos.checkers.finding import KEPT_OF_A_TYPE, Checked, Finding

# Looked for key by key; others operation by operation, so that those of the first operations are kept.
_IN_ORDER_OF_KEYS: Final = frozenset({"inconsistent-offsets", "lost-write", "unseen"})


def merged(parts: Iterable[Checked], statistics: Mapping[str, Any]) -> Checked:
    """All are counted, and of a type as many kept as one checker keeps. `parts` are in the order of the keys."""
    counts: Counter[str] = Counter()
    found: dict[tuple[str, bool], list[Finding]] = {}
    for one in parts:
        counts.update(one.counts)
        for finding in one.findings:
            found.setdefault((finding.type, finding.allowed), []).append(finding)
    kept: list[Finding] = []
    for (type_, _), findings in found.items():
        if type_ not in _IN_ORDER_OF_KEYS:
            findings.sort(key=lambda finding: finding.operations[-1:])
        kept += findings[:KEPT_OF_A_TYPE]
    return Checked(findings=tuple(kept), counts=dict(counts), statistics=statistics)
