"""What must be true at the end of every run, whatever its workload: a cluster that is whole, clients that ended."""

from __future__ import annotations

from ..checkers.finding import Checked, Checker, Findings
from ..histories.operation import History
from ..histories.run_folder import EndOfRun

NOT_WHOLE = "not-whole"
CLIENT_FAILURE = "client-failure"


def end_of_run(end: EndOfRun) -> Checker:
    """The checker of a run that ended so."""

    def check(_: History) -> Checked:
        findings = Findings()
        for lack in end.lacks:
            findings.add(NOT_WHOLE, f"long after everything had healed, {lack}", ())
        for failure in end.failures:
            findings.add(CLIENT_FAILURE, failure, ())
        return findings.checked()

    return check
