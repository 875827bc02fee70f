"""`make conformance`: other people's test suites against Penstock, or against any broker."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import click

from penstock.client.cached_programs import cache_folder

from .execution import execute
from .expectations import FOLDER, Expectations
from .report import baseline_lines, complaints, table
from .suite import Result, Status, SuiteUnavailableError
from .suites import SUITES

# As a shell says that a program was ended by SIGTERM.
TERMINATED = 128 + signal.SIGTERM


@click.command()
@click.argument("names", metavar="[SUITE]…", nargs=-1, type=click.Choice([suite.name for suite in SUITES]))
@click.option("--bootstrap", metavar="HOST:PORT[,…]", help="A broker that runs; else each suite starts a fresh one.")
@click.option("--only", default="", metavar="REGEX", help="Only tests in whose name this is found.")
@click.option("--jobs", default=2, show_default=True, help="Tests that run at a time, where a suite can do that.")
@click.option(
    "--work", type=click.Path(path_type=Path, file_okay=False), help="For logs, emptied first (default: in the cache)."
)
@click.option("--apache-kafka", is_flag=True, help="Start Apache Kafka instead of Penstock.")
@click.option("--record-baseline", is_flag=True, help="Write the results as those of Apache Kafka.")
def main(
    names: tuple[str, ...],
    bootstrap: str | None,
    only: str,
    jobs: int,
    work: Path | None,
    *,
    apache_kafka: bool,
    record_baseline: bool,
) -> None:
    """Run suites, all unless named, and compare with Apache Kafka.

    Exit status 1: a test that passes on Apache Kafka does not pass and is not listed in not_yet/, or a listed one
    passes. 2: a suite could not be run.
    """
    # What was started is stopped, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    folder = work or cache_folder() / "conformance"
    pattern = re.compile(only)
    finished, unavailable = [], []
    for suite in SUITES:
        if names and suite.name not in names:
            continue
        click.echo(f"{suite.name}:")
        try:
            done = execute(
                suite,
                folder / suite.name,
                lambda test: bool(pattern.search(test)),
                jobs=jobs,
                bootstrap=bootstrap,
                on_apache_kafka=apache_kafka,
                records_baseline=record_baseline,
                tell=_tell,
            )
        except SuiteUnavailableError as missing:
            unavailable.append(f"{suite.name}: {missing}")
            continue
        finished.append(done)
        if record_baseline:
            (FOLDER / "baseline" / f"{suite.name}.tsv").write_text(baseline_lines(done))
    sentences = [sentence for one in finished for sentence in complaints(one)] + unavailable
    click.echo("".join(f"\n{sentence}" for sentence in sentences))
    click.echo(f"{table(finished)}\n\nlogs: {folder}")
    sys.exit(2 if unavailable else 0 if all(one.verdict.is_clean for one in finished) else 1)


def _tell(result: Result, expectations: Expectations) -> None:
    listed = " (not yet)" if result.test in expectations.not_yet else ""
    reason = "" if result.status is Status.PASSED else f"  {result.detail.partition(chr(10))[0][:140]}"
    click.echo(f"  {result.status:8}{result.seconds:7.1f} s  {result.test}{listed}{reason}")


if __name__ == "__main__":
    main(prog_name="conformance")
