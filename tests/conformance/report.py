"""What is printed and written of a run: a table for people, files for a closer look."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .expectations import Expectations
from .suite import Result, Status
from .verdict import Verdict

HEAD = ("suite", "passed", "failed", "not yet", "skipped", "minutes", "Apache Kafka: passed", "failed", "skipped")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """One suite that was run."""

    suite: str
    results: Mapping[str, Result]
    verdict: Verdict
    expectations: Expectations
    seconds: float


def table(finished: Sequence[Finished]) -> str:
    """One line a suite: this broker, and Apache Kafka 4.3.1 beside it."""
    rows: list[Sequence[str]] = [HEAD]
    for one in finished:
        verdict = one.verdict
        known = Counter(baseline.status for baseline in one.expectations.baseline.values())
        here = (
            len(verdict.passed) + len(verdict.take_off),
            len(verdict.failed) + len(verdict.missing),
            len(verdict.not_yet),
            len(verdict.skipped),
        )
        there = (known[status] for status in (Status.PASSED, Status.FAILED, Status.SKIPPED))
        rows.append((one.suite, *map(str, here), f"{one.seconds / 60:.1f}", *map(str, there)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def complaints(finished: Finished) -> Iterator[str]:
    """A sentence for each test that is not as it must be."""
    for test in finished.verdict.failed:
        yield f"{finished.suite}: {test} passes on Apache Kafka, or is not known there, and does not pass here"
    for test in finished.verdict.missing:
        yield f"{finished.suite}: {test} passes on Apache Kafka and was not run here"
    for test in finished.verdict.take_off:
        yield f"{finished.suite}: {test} passes: take it off not_yet/{finished.suite}.tsv"


def write_results(folder: Path, results: Mapping[str, Result]) -> None:
    """`results.json`, and `failures.log` with all that is known of each test that failed."""
    listed = [dataclasses.asdict(results[test]) for test in sorted(results)]
    (folder / "results.json").write_text(json.dumps(listed, indent=1))
    (folder / "failures.log").write_text(
        "".join(
            f"=== {result.test} ({result.seconds:.1f} s)\n{result.detail}\n\n"
            for _, result in sorted(results.items())
            if result.status is Status.FAILED
        )
    )


def baseline_lines(finished: Finished) -> str:
    """The results as a baseline; what the suite was not asked for, and why, is kept."""
    results, expectations = finished.results, finished.expectations
    lines = []
    for test in sorted(results.keys() | expectations.baseline.keys()):
        if test in results:
            fields = [test, str(results[test].status), f"{results[test].seconds:.1f}"]
        else:
            known = expectations.baseline[test]
            fields = [test, known.status, f"{known.seconds:.1f}"]
        why = expectations.why_not_run(test)
        lines.append("\t".join([*fields, why] if why else fields))
    return "".join(f"{line}\n" for line in lines)
