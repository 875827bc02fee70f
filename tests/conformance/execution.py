"""One suite, run and judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.client.clock import monotonic_s

from .expectations import Expectations, read_expectations
from .report import Finished, write_results
from .suite import Result, Run, Suite
from .verdict import judge


def execute(
    suite: Suite,
    work: Path,
    wants: Callable[[str], bool],
    *,
    jobs: int = 1,
    bootstrap: str | None = None,
    on_apache_kafka: bool = False,
    records_baseline: bool = False,
    tell: Callable[[Result, Expectations], None] | None = None,
) -> Finished:
    """Runs the wanted tests but for those that could tell nothing, in an emptied folder; `tell` hears of each result.

    Raises SuiteUnavailableError.
    """
    expectations = read_expectations(suite.name)
    if on_apache_kafka:
        expectations = replace(expectations, not_yet={})
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    started_s = monotonic_s()
    run = Run(
        work=work,
        wants=lambda test: wants(test) and not expectations.why_not_run(test),
        expectations=expectations,
        jobs=jobs,
        bootstrap=bootstrap,
        on_apache_kafka=on_apache_kafka,
        records_baseline=records_baseline,
    )
    results = {}
    for result in suite.run(run):
        results[result.test] = result
        if tell is not None:
            tell(result, expectations)
    write_results(work, results)
    return Finished(
        suite=suite.name,
        results=results,
        verdict=judge(results.values(), expectations, run.wants),
        expectations=expectations,
        seconds=monotonic_s() - started_s,
    )
