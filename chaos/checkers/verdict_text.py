"""A verdict for a person, and the exit status that says it to a program."""

from __future__ import annotations

from typing import Final

from .finding import Finding, Verdict

EXIT_CODES: Final = {"valid": 0, "anomalies": 3, "invalid-run": 4}
"""1 and 2 are the command line's: what was asked for failed, or cannot be asked for."""
_SENTENCES: Final = {
    "valid": "valid: no anomaly that is not allowed",
    "anomalies": "ANOMALIES",
    "invalid-run": "INVALID RUN: it shows nothing",
}


def told(verdict: Verdict) -> str:
    """Itself first, then why, then what proves it."""
    lines = [_SENTENCES[verdict.valid]]
    lines += [f"  {note}" for note in verdict.notes]
    for is_allowed in (False, True):
        by_type: dict[str, list[Finding]] = {}
        for finding in verdict.findings:
            if finding.allowed == is_allowed:
                by_type.setdefault(finding.type, []).append(finding)
        for type_, findings in by_type.items():
            count = verdict.count_of(type_, is_allowed=is_allowed)
            first = findings[0]
            reason = f", allowed: {first.why_allowed}" if is_allowed else ""
            lines += [f"{type_} ({count}){reason}"]
            lines += [f"  {_evidence(finding)}" for finding in findings[: 1 if is_allowed else 4]]
    operations = verdict.statistics.get("operations", {})
    for f, outcomes in operations.items():
        lines.append(f"{f}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(outcomes.items()))}")
    return "\n".join(lines)


def _evidence(finding: Finding) -> str:
    key = "" if finding.key is None else f"{finding.key}: "
    events = f" (events {', '.join(map(str, finding.operations))})" if finding.operations else ""
    return f"{key}{finding.message}{events}"
