"""Apache Kafka's client integration tests: the Java clients against clusters that are started for each test.

The tests come from the jar that Apache Kafka publishes. They were written for brokers inside their own process and
reach them through one interface; the shim (`shim/`) puts a cluster outside in its place, and `hook.py` starts that
cluster with the server properties that the test asks for; `kafka_hook.py` does so with Apache Kafka's.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from penstock.client.addresses import parse_addresses
from penstock.client.connection import connect
from penstock.protocol.apis import ApiKey

from ..capabilities import Capability
from ..programs import run_program, tail
from ..suite import Result, Run, Status, SuiteUnavailableError
from .java_tests import REPORTS, JavaTests, class_of, method_of, prepare, read_reports

HOOK: Final = (sys.executable, "-m", "conformance.kafka_integration.hook")
KAFKA_HOOK: Final = (sys.executable, "-m", "conformance.kafka_integration.kafka_hook")
# Where these modules are found.
TESTS: Final = Path(__file__).parent.parent.parent
# The hook starts what this program would: of several trees the one that it was told of.
HOOK_ENVIRONMENT: Final[Mapping[str, str]] = {
    "PYTHONPATH": os.pathsep.join((str(TESTS), *filter(None, (os.environ.get("PYTHONPATH"),))))
}
TEST_TIMEOUT_S: Final = 90.0
CLASS_TIMEOUT_S: Final = 1800.0
NEEDED_APIS: Final[Mapping[Capability, ApiKey]] = MappingProxyType(
    {
        Capability.CLIENT_TELEMETRY: ApiKey.PUSH_TELEMETRY,
        Capability.CONSUMER_GROUPS: ApiKey.JOIN_GROUP,
        Capability.QUOTAS: ApiKey.DESCRIBE_CLIENT_QUOTAS,
        Capability.SASL: ApiKey.SASL_HANDSHAKE,
        Capability.SHARE_GROUPS: ApiKey.SHARE_FETCH,
        Capability.TRANSACTIONS: ApiKey.ADD_PARTITIONS_TO_TXN,
    }
)
"""Without the API nothing of the capability can work. Its listed tests are not run until it is served: most of them
would wait a minute each for what does not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Tests of one class that share a time limit: all but some methods, or only some."""

    test_class: str
    number: int
    limit_s: float
    without: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


class KafkaIntegrationSuite:
    """Test names are `package.Class.method(Parameter)[invocation]`, the package without `org.apache.kafka`."""

    name = "kafka-integration"

    def run(self, run: Run) -> Iterator[Result]:
        if run.bootstrap is not None:
            raise SuiteUnavailableError("each test wants a cluster of its own, with its own properties")
        tests = prepare(run.work)
        absent = {} if run.on_apache_kafka else _absent(run)
        not_run = {test: capability for test, capability in run.expectations.not_yet.items() if capability in absent}
        for test, capability in not_run.items():
            if run.wants(test):
                yield Result(test=test, status=Status.SKIPPED, seconds=0, detail=f"not run: {absent[capability]}")
        batches = [batch for test_class in tests.classes() for batch in _batches(test_class, run, not_run)]
        with ThreadPoolExecutor(run.jobs) as executor:
            running = [executor.submit(_run, tests, batch, run) for batch in batches]
            for done in as_completed(running):
                for result in done.result():
                    if run.wants(result.test):
                        yield result


def _absent(run: Run) -> dict[Capability, str]:
    """The capabilities that cannot be there, with what shows it."""
    with run.broker({}, folder="capabilities") as bootstrap:
        served = asyncio.run(_served(bootstrap))
    return {capability: f"{key.name} is not served" for capability, key in NEEDED_APIS.items() if key not in served}


async def _served(bootstrap: str) -> frozenset[int]:
    (address,) = parse_addresses(bootstrap)
    async with await connect(address.host, address.port) as connection:
        return frozenset(connection.versions)


def _batches(test_class: str, run: Run, not_run: Mapping[str, Capability]) -> Iterator[_Batch]:
    """The runs of Java that a class needs: one for what must pass, one for what is expected not to."""
    known = {test for test in (*run.expectations.baseline, *run.expectations.not_yet) if class_of(test) == test_class}
    listed = {test for test in known if test in run.expectations.not_yet}
    unwanted = {test for test in known if test in not_run or not run.wants(test)}
    if known - unwanted - listed or run.wants(test_class):
        # All but what is known, so that a test that is on no list yet is run too.
        yield _Batch(
            test_class=test_class,
            number=1,
            limit_s=TEST_TIMEOUT_S,
            without=_whole_methods(unwanted | listed, known),
        )
    if attempted := listed - unwanted:
        yield _Batch(
            test_class=test_class,
            number=2,
            limit_s=max(run.expectations.limit_s(test, TEST_TIMEOUT_S) for test in attempted),
            only=tuple(sorted({method_of(test) for test in attempted})),
        )


def _whole_methods(left_out: set[str], known: set[str]) -> tuple[str, ...]:
    """The methods of which every invocation is left out."""
    return tuple(sorted({method_of(test) for test in left_out} - {method_of(test) for test in known - left_out}))


def _run(tests: JavaTests, batch: _Batch, run: Run) -> list[Result]:
    folder = run.work / f"{batch.test_class}-{batch.number}"
    folder.mkdir()
    log = folder / "java.log"
    command = tests.command(
        batch.test_class,
        hook=[*(KAFKA_HOOK if run.on_apache_kafka else HOOK), str(folder / "nodes")],
        without=batch.without,
        only=batch.only,
        limit_s=batch.limit_s,
        reports=folder,
    )
    exit_status = run_program(command, log=log, timeout_s=CLASS_TIMEOUT_S, environment=HOOK_ENVIRONMENT)
    if exit_status is None or not list(folder.glob(REPORTS)):
        what = "nothing was reported" if exit_status is not None else f"did not end within {CLASS_TIMEOUT_S:.0f} s"
        return [Result(test=batch.test_class, status=Status.FAILED, seconds=0, detail=f"{what}\n{tail(log)}")]
    return list(read_reports(folder))
