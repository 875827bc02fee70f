"""What a suite's tests do on Apache Kafka, and which of them cannot pass here yet.

Both are files of tab-separated lines, `#` begins a comment:

- `baseline/SUITE.tsv`: test, status on Apache Kafka (passed, failed, skipped; unknown where it has not been run),
  seconds, and for a test that is not to be run at all the reason why it can tell nothing;
- `not_yet/SUITE.tsv`: test, and the `Capability` that it needs. This list may only shrink.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .capabilities import Capability

FOLDER = Path(__file__).parent
# A test that is expected to fail mostly waits for what never comes. It gets three times what it needs on Apache Kafka
# and half a minute, so that it is noticed when it passes.
NOT_YET_GRACE_S = 30.0
NOT_YET_FACTOR = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One test on Apache Kafka 4.3.1."""

    status: str
    seconds: float
    why_not_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """By test name."""

    baseline: Mapping[str, Baseline]
    not_yet: Mapping[str, Capability]

    def why_not_run(self, test: str) -> str:
        """The reason why running this test would tell nothing; empty for all others."""
        known = self.baseline.get(test)
        return "" if known is None else known.why_not_run

    def limit_s(self, test: str, limit_s: float) -> float:
        """How long a test may take: `limit_s`, or less when it is expected to fail."""
        if test not in self.not_yet:
            return limit_s
        known = self.baseline.get(test)
        usual_s = 0.0 if known is None else known.seconds
        return min(limit_s, NOT_YET_GRACE_S + NOT_YET_FACTOR * usual_s)


def read_expectations(suite: str, folder: Path = FOLDER) -> Expectations:
    """The two files of a suite; one that is missing is empty. Raises ValueError for a line that cannot be."""
    return Expectations(
        baseline={
            fields[0]: Baseline(status=fields[1], seconds=float(fields[2]), why_not_run="".join(fields[3:4]))
            for fields in _lines(folder / "baseline" / f"{suite}.tsv")
        },
        not_yet={fields[0]: Capability(fields[1]) for fields in _lines(folder / "not_yet" / f"{suite}.tsv")},
    )


def _lines(file: Path) -> Iterator[list[str]]:
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")
