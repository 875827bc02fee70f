"""What a suite's results mean beside those on Apache Kafka: rules only.

A test that passes on Apache Kafka must pass here, unless the list of what cannot pass yet names it. A test that is
named there and passes must be taken off the list. A test that does not pass on Apache Kafka either says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .expectations import Expectations
from .suite import Result, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Test names, sorted; each test of a run is in exactly one of these."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    """Do not pass here, although they pass on Apache Kafka or are unknown there."""
    not_yet: tuple[str, ...]
    """Do not pass, as the list says."""
    skipped: tuple[str, ...]
    """Do not pass on Apache Kafka either."""
    take_off: tuple[str, ...]
    """Pass although the list says that they cannot."""
    missing: tuple[str, ...]
    """Were wanted and pass on Apache Kafka, and there is no result."""

    @property
    def is_clean(self) -> bool:
        return not (self.failed or self.take_off or self.missing)


def judge(results: Iterable[Result], expectations: Expectations, wants: Callable[[str], bool]) -> Verdict:
    """The verdict on the results of a run of the tests that `wants` names."""
    groups: dict[str, list[str]] = {"passed": [], "failed": [], "not_yet": [], "skipped": [], "take_off": []}
    seen = set()
    for result in results:
        seen.add(result.test)
        groups[_group(result, expectations)].append(result.test)
    missing = [
        test
        for test, known in expectations.baseline.items()
        if known.status == Status.PASSED and test not in seen and wants(test)
    ]
    return Verdict(**{name: tuple(sorted(tests)) for name, tests in groups.items()}, missing=tuple(sorted(missing)))


def _group(result: Result, expectations: Expectations) -> str:
    listed = result.test in expectations.not_yet
    if result.status is Status.PASSED:
        return "take_off" if listed else "passed"
    if listed:
        return "not_yet"
    known = expectations.baseline.get(result.test)
    if known is None:
        return "failed" if result.status is Status.FAILED else "skipped"
    return "failed" if known.status == Status.PASSED else "skipped"
