"""One test of pytest in an interpreter whose clock and chance are a simulation's: started by `item_process.py`.

Arguments are the file that gets the reports, as JSON, and those of pytest. Nothing is cleaned up at the end: what a
simulated world has left behind is no news.
"""

from __future__ import annotations

# Before pytest, and whatever its plugins import.
from .prepared_world import WORLD  # isort: skip

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest


class _Reports:
    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._add(report, report.when)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._add(report, "collect")

    def _add(self, report: Any, when: str) -> None:
        longrepr = report.longrepr
        crash = getattr(longrepr, "reprcrash", None)
        reason = longrepr[2] if report.skipped and isinstance(longrepr, tuple) else ""
        self.reports.append(
            {"when": when, "outcome": report.outcome, "text": report.longreprtext, "reason": reason,
             "crash": "" if crash is None else crash.message.partition("\n")[0],
             "sections": report.sections}
        )  # fmt: skip


def main(results: str, *arguments: str) -> int:
    WORLD.seed(0)
    reports = _Reports()
    status = pytest.main(list(arguments), plugins=[reports])
    Path(results).write_text(json.dumps(reports.reports))
    return int(status)


if __name__ == "__main__":
    exit_status = main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_status)
