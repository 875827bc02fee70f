"""`make conformance`: other people's test suites against Penstock, or against any broker."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import click

from penstock.bench.anchor.jars import cache_folder
from penstock.client.clock import monotonic_s

from .expectations import FOLDER, read_expectations
from .report import Finished, baseline_lines, complaints, table, write_results
from .suite import Run, Status, Suite, SuiteUnavailableError
from .suites import SUITES
from .verdict import judge

NAMES = tuple(suite.name for suite in SUITES)


@click.command()
@click.argument("names", metavar="[SUITE]…", nargs=-1, type=click.Choice(NAMES))
@click.option(
    "--bootstrap", metavar="HOST:PORT[,…]", help="A broker that runs already; else each suite starts Penstock."
)
@click.option("--only", default="", metavar="REGEX", help="Only tests in whose name this is found.")
@click.option("--jobs", default=2, show_default=True, help="Tests that run at a time, where a suite can do that.")
@click.option(
    "--work", type=click.Path(path_type=Path, file_okay=False), help="For logs, emptied first (default: in the cache)."
)
@click.option("--record-baseline", is_flag=True, help="Write the results as those of Apache Kafka.")
def main(
    names: tuple[str, ...], bootstrap: str | None, only: str, jobs: int, work: Path | None, record_baseline: bool
) -> None:
    """Run suites, all unless named, and compare with Apache Kafka.

    Exit status 1: a test that passes on Apache Kafka does not pass and is not listed in not_yet/, or a listed one
    passes. 2: a suite could not be run.
    """
    folder = work or cache_folder() / "conformance"
    finished, unavailable = [], []
    for suite in SUITES:
        if names and suite.name not in names:
            continue
        try:
            finished.append(_run(suite, folder / suite.name, only, jobs, bootstrap, record_baseline=record_baseline))
        except SuiteUnavailableError as missing:
            unavailable.append(f"{suite.name}: {missing}")
    sentences = [sentence for one in finished for sentence in complaints(one)] + unavailable
    click.echo("".join(f"\n{sentence}" for sentence in sentences))
    click.echo(f"{table(finished)}\n\nlogs: {folder}")
    sys.exit(2 if unavailable else 0 if all(one.verdict.is_clean for one in finished) else 1)


def _run(suite: Suite, work: Path, only: str, jobs: int, bootstrap: str | None, *, record_baseline: bool) -> Finished:
    expectations = read_expectations(suite.name)
    pattern = re.compile(only)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    click.echo(f"{suite.name}:")
    started_s = monotonic_s()
    results = {}
    run = Run(
        work=work,
        wants=lambda test: bool(pattern.search(test)) and not expectations.why_not_run(test),
        expectations=expectations,
        jobs=jobs,
        bootstrap=bootstrap,
    )
    for result in suite.run(run):
        results[result.test] = result
        reason = "" if result.status is Status.PASSED else f"  {result.detail.partition(os.linesep)[0][:140]}"
        listed = " (not yet)" if result.test in expectations.not_yet else ""
        click.echo(f"  {result.status:8}{result.seconds:7.1f} s  {result.test}{listed}{reason}")
    write_results(work, results)
    if record_baseline:
        (FOLDER / "baseline" / f"{suite.name}.tsv").write_text(baseline_lines(results, expectations))
    return Finished(
        suite=suite.name,
        verdict=judge(results.values(), expectations, run.wants),
        expectations=expectations,
        seconds=monotonic_s() - started_s,
    )


if __name__ == "__main__":
    main(prog_name="conformance")
