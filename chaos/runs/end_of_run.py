"""What must be true at the end of every run, whatever its workload: a cluster that is whole, clients that ended."""

from __future__ import annotations

from collections.abc import Sequence

from ..checkers.finding import Checked, Checker, Findings
from ..histories.operation import History

NOT_WHOLE = "not-whole"
CLIENT_FAILURE = "client-failure"


def end_of_run(missing: str | None, failures: Sequence[str]) -> Checker:
    """`missing` says what the cluster lacked long after everything had healed; `failures`, one sentence each, what
    became of clients that did not end as they should: one that never came to the end of its final reads, for one."""

    def check(_: History) -> Checked:
        findings = Findings()
        if missing is not None:
            findings.add(NOT_WHOLE, f"long after everything had healed, {missing}", ())
        for failure in failures:
            findings.add(CLIENT_FAILURE, failure, ())
        return findings.checked()

    return check
