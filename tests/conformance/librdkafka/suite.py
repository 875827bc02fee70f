"""librdkafka's own regression tests, in C and C++, in its quick mode: those that talk to a broker.

Each number is a process of its own; several tests may share a number. The tests of its mock cluster and those that its
authors run by hand are left out. A long test of which only a part cannot pass yet is also run part by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from penstock.client.clock import monotonic_s
from penstock.local.apache_kafka.jars import JarsUnavailableError, install
from penstock.local.apache_kafka.tools import write_scripts

from ..programs import run_program
from ..secure_listener import SecureListener
from ..server_properties import PROPERTIES
from ..suite import Result, Run, SuiteUnavailableError
from .output import listed_tests, read_result
from .source import built_sources

# What the tests are told of the broker's version, so that they leave out what newer brokers do not do.
KAFKA_VERSION: Final = "4.0.0"
# Some tests make topics of three replicas.
NODE_COUNT: Final = 3
TIMEOUT_MULTIPLIER: Final = 2
TEST_TIMEOUT_S: Final = 420.0
# Tests that are expected to fail wait, and hardly compute.
NOT_YET_JOBS_FACTOR: Final = 4
# Tests whose own user the ACLs that they make must bind, and that need a cluster of their own for it.
BOUND: Final = frozenset({"0109_auto_create_topics", "0115_producer_auth", "0119_consumer_auth"})
BINDING: Final = {"super.users": "User:another"}
# Tests that make ACLs of the whole cluster for their own user, which other tests would meet.
SECURE_ALONE: Final = BOUND | {"0081_admin"}
# What the quick mode leaves out of them is all that they are about.
WHOLE: Final = frozenset({"0142"})


class LibrdkafkaSuite:
    """Test names are librdkafka's: `0011_produce_batch`, and `0081_admin.do_test_CreateTopics` for a part."""

    name = "librdkafka"

    def run(self, run: Run) -> Iterator[Result]:
        tests, scripts = built_sources() / "tests", _scripts(run)
        wanted = [test for test in listed_tests((tests / "test.c").read_text()) if run.wants(test)]
        not_yet = [test for test in wanted if test in run.expectations.not_yet]
        with run.broker(PROPERTIES, node_count=NODE_COUNT) as bootstrap:
            process = _Process(tests, run, bootstrap, scripts)
            others = [test for test in wanted if test not in not_yet and test not in BOUND]
            yield from process.run_all(others, run.jobs)
            yield from process.run_all(not_yet, run.jobs * NOT_YET_JOBS_FACTOR)
        bound = [test for test in wanted if test in BOUND]
        if bound and run.bootstrap is None:
            # One node: Apache Kafka's could not vote for each other, who are no super users either.
            with run.broker(PROPERTIES | BINDING, folder="bound") as bootstrap:
                yield from _Process(tests, run, bootstrap, scripts).run_all(bound, run.jobs)


class LibrdkafkaSaslSuite:
    """The same tests as a user who proves himself by SCRAM, over TLS, and does so anew every ten seconds.

    He is no super user: the ACLs that tests make bind him. Apache Kafka's tools, which tests call without a word of
    passwords, go through a listener that asks for none.
    """

    name = "librdkafka-sasl"

    def run(self, run: Run) -> Iterator[Result]:
        if run.bootstrap is not None:
            raise SuiteUnavailableError("it needs a listener and users of its own, and starts the cluster itself")
        tests, scripts = built_sources() / "tests", _scripts(run)
        names = [test for test in listed_tests((tests / "test.c").read_text()) if "." not in test and run.wants(test)]
        secure = SecureListener(run.work / "tls")
        with run.broker(PROPERTIES, node_count=NODE_COUNT, secure=secure) as bootstrap:
            process = _Process(tests, run, bootstrap, scripts, secure)
            yield from process.run_all([name for name in names if name not in SECURE_ALONE], run.jobs)
            yield from process.run_all([name for name in names if name in SECURE_ALONE], 1)


def _scripts(run: Run) -> Path:
    try:
        return write_scripts(install(), run.work / "kafka")
    except JarsUnavailableError as missing:
        raise SuiteUnavailableError(f"some of librdkafka's tests call Apache Kafka's tools: {missing}") from missing


class _Process:
    """Runs the test program, once for each number."""

    def __init__(
        self, tests: Path, run: Run, bootstrap: str, scripts: Path, secure: SecureListener | None = None
    ) -> None:
        self._tests = tests
        self._run = run
        self._config = run.work / "test.conf"
        self._config.write_text(
            f"bootstrap.servers={bootstrap if secure is None else secure.bootstrap}\n"
            f"test.topic.random=true\ntest.timeout.multiplier={TIMEOUT_MULTIPLIER}\n"
            + ("" if secure is None else secure.librdkafka_properties())
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
            number, part = test.partition("_")[0], test.partition(".")[2]
            numbers.setdefault(f"{number}.{part}" if part else number, []).append(test)
        with ThreadPoolExecutor(jobs) as pool:
            for future in as_completed(pool.submit(self._run_one, key, numbers[key]) for key in numbers):
                yield from future.result()

    def _run_one(self, key: str, tests: Sequence[str]) -> list[Result]:
        number, _, part = key.partition(".")
        log = self._run.work / f"{key}.log"
        limit_s = max(self._run.expectations.limit_s(test, TEST_TIMEOUT_S) for test in tests)
        started_s = monotonic_s()
        status = run_program(
            # One test at a time, none of those that need no broker, quick mode.
            ["./test-runner", "-p1", "-L", *(() if number in WHOLE else ("-Q",))],
            log=log,
            timeout_s=limit_s,
            folder=self._tests,
            # A part is found by its name and the line number behind it.
            environment={**self._environment, "TESTS": number, **({"SUBTESTS": f"{part}:"} if part else {})},
        )
        seconds = monotonic_s() - started_s
        # The statistics that it leaves beside itself would heap up in the cache.
        for test in tests:
            for file in self._tests.glob(f"stats_{test.partition('.')[0]}_*.json"):
                file.unlink(missing_ok=True)
        how = f"no end within {limit_s:.0f} s" if status is None else f"exit status {status}"
        text = log.read_text(errors="replace")
        return [read_result(test, text, how, seconds) for test in tests]
