"""Write docs/conformance.md: other people's test suites, and which of their tests cannot pass yet (`make docs`)."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from conformance.expectations import read_expectations
from conformance.suites import SUITES

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "conformance.md"
HEAD = """# Test suites of other projects

Written by `make docs` from `tests/conformance/baseline/` and `tests/conformance/not_yet/`. `make conformance` runs the
suites, against a fresh Penstock or with `SUITES="--bootstrap host:port"` against any broker, and compares with Apache
Kafka 4.3.1.

Every test that passes on Apache Kafka passes here, but for those listed below: each needs something that is not built
yet. The lists may only shrink: a listed test that passes is an error until it is taken off. Tests that would tell
nothing are not run: they reach into the broker's process, or what they need is not built and it is not known that they
pass on Apache Kafka.

"""


def main() -> None:
    """Write the page."""
    OUTPUT.write_text(render())
    sys.stdout.write(f"{OUTPUT.relative_to(ROOT)}\n")


def render() -> str:
    """The text of the page."""
    names = [suite.name for suite in SUITES]
    return (
        HEAD + "".join(_table(names)) + "".join(line for name in names for line in (*_not_yet(name), *_not_run(name)))
    )


def _table(names: list[str]) -> Iterator[str]:
    yield "| suite | pass on Apache Kafka | of these not yet here | fail or are skipped there |\n|---|--:|--:|--:|\n"
    for name in names:
        expectations = read_expectations(name)
        statuses = Counter(known.status for known in expectations.baseline.values())
        passed = statuses.pop("passed", 0)
        yield f"| {name} | {passed} | {len(expectations.not_yet)} | {statuses.total()} |\n"


def _not_yet(name: str) -> Iterator[str]:
    tests: dict[str, list[str]] = defaultdict(list)
    for test, capability in read_expectations(name).not_yet.items():
        tests[str(capability)].append(test)
    if tests:
        yield f"\n## {name}: not yet\n\n| needs | tests |\n|---|---|\n"
    for capability in sorted(tests, key=str.casefold):
        yield f"| {capability} | {', '.join(f'`{test}`' for test in sorted(tests[capability]))} |\n"


def _not_run(name: str) -> Iterator[str]:
    tests: dict[str, list[str]] = defaultdict(list)
    for test, known in read_expectations(name).baseline.items():
        if known.why_not_run:
            tests[known.why_not_run].append(test)
    if tests:
        yield f"\n## {name}: not run\n\n| because | tests |\n|---|---|\n"
    for why in sorted(tests, key=str.casefold):
        yield f"| {why} | {', '.join(f'`{test}`' for test in sorted(tests[why]))} |\n"


if __name__ == "__main__":
    main()
