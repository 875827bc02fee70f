"""librdkafka's own regression tests, in C and C++, in its quick mode: those that talk to a broker.

Each number is a process of its own; several tests may share a number. The tests of its mock cluster and those that its
authors run by hand are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from penstock.bench.anchor.jars import JarsUnavailableError, install
from penstock.bench.anchor.tools import write_scripts
from penstock.client.clock import monotonic_s

from ..programs import run_program
from ..server_properties import PROPERTIES
from ..suite import Result, Run, Status, SuiteUnavailableError
from .source import built_sources

# What the tests are told of the broker's version, so that they leave out what newer brokers do not do.
KAFKA_VERSION: Final = "4.0.0"
TIMEOUT_MULTIPLIER: Final = 2
TEST_TIMEOUT_S: Final = 420.0
# Tests that are expected to fail wait, and hardly compute.
NOT_YET_JOBS_FACTOR: Final = 4
_ENTRY = re.compile(r"_TEST\((\w+),\s*([^,)]*)")
_NOT_OF_A_BROKER = ("TEST_F_LOCAL", "TEST_F_MANUAL")
_ROW = re.compile(r"\|\s+(\w+)\s+\|\s+(PASSED|FAILED|SKIPPED)\s+\|\s+([\d.]+)s")
_END = re.compile(r"=+ Test (\w+) (PASSED|FAILED|SKIPPED) =+")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


class LibrdkafkaSuite:
    """Test names are librdkafka's: `0011_produce_batch`."""

    name = "librdkafka"

    def run(self, run: Run) -> Iterator[Result]:
        tests = built_sources() / "tests"
        try:
            scripts = write_scripts(install(), run.work / "kafka")
        except JarsUnavailableError as missing:
            raise SuiteUnavailableError(f"some of librdkafka's tests call Apache Kafka's tools: {missing}") from missing
        wanted = [test for test in _listed(tests / "test.c") if run.wants(test)]
        not_yet = [test for test in wanted if test in run.expectations.not_yet]
        with run.broker(PROPERTIES) as bootstrap:
            process = _Process(tests, run, bootstrap, scripts)
            yield from process.run_all([test for test in wanted if test not in not_yet], run.jobs)
            yield from process.run_all(not_yet, run.jobs * NOT_YET_JOBS_FACTOR)


class _Process:
    """Runs the test program, once for each number."""

    def __init__(self, tests: Path, run: Run, bootstrap: str, scripts: Path) -> None:
        self._tests = tests
        self._run = run
        self._config = run.work / "test.conf"
        self._config.write_text(
            f"bootstrap.servers={bootstrap}\ntest.topic.random=true\ntest.timeout.multiplier={TIMEOUT_MULTIPLIER}\n"
        )
        self._environment = {
            "RDKAFKA_TEST_CONF": str(self._config),
            "TEST_KAFKA_VERSION": KAFKA_VERSION,
            "BROKERS": bootstrap,
            "KAFKA_PATH": str(scripts),
            "LD_LIBRARY_PATH": "../src:../src-cpp",
        }

    def run_all(self, tests: Sequence[str], jobs: int) -> Iterator[Result]:
        numbers: dict[str, list[str]] = {}
        for test in tests:
            numbers.setdefault(_number(test), []).append(test)
        with ThreadPoolExecutor(jobs) as pool:
            for future in as_completed(pool.submit(self._run_number, number, numbers[number]) for number in numbers):
                yield from future.result()

    def _run_number(self, number: str, tests: Sequence[str]) -> list[Result]:
        log = self._run.work / f"{number}.log"
        limit_s = max(self._run.expectations.limit_s(test, TEST_TIMEOUT_S) for test in tests)
        started_s = monotonic_s()
        status = run_program(
            # One test at a time, none of those that need no broker, quick mode.
            ["./test-runner", "-p1", "-L", "-Q"],
            log=log,
            timeout_s=limit_s,
            folder=self._tests,
            environment={**self._environment, "TESTS": number},
        )
        seconds = monotonic_s() - started_s
        # The statistics that it leaves beside itself would heap up in the cache.
        for test in tests:
            for file in self._tests.glob(f"stats_{test}_*.json"):
                file.unlink()
        how = f"no end within {limit_s:.0f} s" if status is None else f"exit status {status}"
        text = _COLOR.sub("", log.read_text(errors="replace"))
        return [_result(test, text, how, seconds) for test in tests]


def _listed(table: Path) -> list[str]:
    """The tests in the table of test.c that need a broker, in its order."""
    text = table.read_text()
    names: dict[str, None] = {}
    for match in _ENTRY.finditer(text, text.index("struct test tests[]")):
        name, flags = match.groups()
        if name != "main" and "_mock" not in name and not any(flag in flags for flag in _NOT_OF_A_BROKER):
            names[name] = None
    return list(names)


def _result(test: str, text: str, how: str, seconds: float) -> Result:
    """What the program's output says of one test; a test of which it does not say how it ended has failed."""
    ends = {name: (status, float(taken_s)) for name, status, taken_s in _ROW.findall(text)}
    for name, status in _END.findall(text):
        ends.setdefault(name, (status, seconds))
    status, taken_s = ends.get(test, ("FAILED", seconds))
    detail = ""
    if status == "SKIPPED":
        detail = next(iter(re.findall(r"SKIP[^\n]*", text)), "")
    elif status == "FAILED":
        first = re.search(rf'### Test "{test}[^\n]*\n[^\n]*', text)
        said = first.group().replace("\n", " ") if first else ""
        at = text.find("TEST FAILURE")
        detail = f"{how}: {said}\n{text[at : at + 2000] if at >= 0 else text[-2000:]}"
    return Result(test=test, status=Status(status.lower()), seconds=taken_s, detail=detail)


def _number(test: str) -> str:
    return test.partition("_")[0]
