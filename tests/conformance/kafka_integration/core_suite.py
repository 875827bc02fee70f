"""Those classes of Apache Kafka's core integration tests that are about users, tokens, ACLs and quotas.

Each of them configures one broker or three and starts them in its own process. A shim (`core_shim/`) stands before the
one class that does so, and has `hook.py` start nodes outside with that configuration. Apache Kafka's own results are
those of the tests as they are, without that shim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final

from ..programs import run_program, tail
from ..suite import Result, Run, Status, SuiteUnavailableError
from .java_tests import CORE_SHIM, KDC_SHIM, REPORTS, SHIM, JavaTests, method_of, prepare, read_reports
from .suite import CLASS_TIMEOUT_S, HOOK, HOOK_ENVIRONMENT, TEST_TIMEOUT_S

ALL: Final = ()
# The methods of each class; of PlaintextAdminIntegrationTest those about ACLs, quotas and passwords.
CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka.api.AuthorizerIntegrationTest": ALL,
    "kafka.api.DelegationTokenEndToEndAuthorizationWithOwnerTest": ALL,
    "kafka.api.PlaintextAdminIntegrationTest": (
        "testAclOperations",
        "testAuthorizedOperations",
        "testCreatePartitionWithOptionRetryOnQuotaViolation",
        "testDefaultNameQuotaIsNotEqualToDefaultQuota",
        "testDescribeUserScramCredentials",
        "testDescribeUserScramCredentialsTimeout",
    ),
    "kafka.api.PlaintextEndToEndAuthorizationTest": ALL,
    "kafka.api.SaslClientsWithInvalidCredentialsTest": ALL,
    "kafka.api.SaslOAuthBearerSslEndToEndAuthorizationTest": ALL,
    "kafka.api.SaslScramSslEndToEndAuthorizationTest": ALL,
    "kafka.api.SslEndToEndAuthorizationTest": ALL,
    "kafka.server.DelegationTokenRequestsOnPlainTextTest": ALL,
    "kafka.server.DelegationTokenRequestsTest": ALL,
    "kafka.server.DelegationTokenRequestsWithDisableTokenFeatureTest": ALL,
}


class KafkaCoreSuite:
    """Test names are `kafka.package.Class.method(Parameters)[invocation]`."""

    name = "kafka-core"

    def run(self, run: Run) -> Iterator[Result]:
        if run.bootstrap is not None:
            raise SuiteUnavailableError("each test wants a broker of its own, with its own properties")
        tests = prepare(run.work, (KDC_SHIM,) if run.on_apache_kafka else (KDC_SHIM, SHIM, CORE_SHIM))
        wanted = [test_class for test_class in CLASSES if _wants_any(run, test_class)]
        with ThreadPoolExecutor(run.jobs) as executor:
            running = [executor.submit(_run, tests, test_class, run) for test_class in wanted]
            for done in as_completed(running):
                for result in done.result():
                    if run.wants(result.test):
                        yield result


def _known(run: Run, test_class: str) -> list[str]:
    return [test for test in run.expectations.baseline if test.startswith(f"{test_class}.")]


def _wants_any(run: Run, test_class: str) -> bool:
    return run.wants(test_class) or any(run.wants(test) for test in _known(run, test_class))


def _run(tests: JavaTests, test_class: str, run: Run) -> list[Result]:
    folder = run.work / test_class
    folder.mkdir()
    log = folder / "java.log"
    known = _known(run, test_class)
    wanted = {method_of(test) for test in known if run.wants(test)}
    command = tests.command(
        test_class,
        hook=[*HOOK, str(folder / "nodes")],
        without=sorted({method_of(test) for test in known} - wanted),
        only=CLASSES[test_class],
        limit_s=TEST_TIMEOUT_S,
        reports=folder,
    )
    exit_status = run_program(command, log=log, timeout_s=CLASS_TIMEOUT_S, environment=HOOK_ENVIRONMENT, folder=folder)
    if exit_status is None or not list(folder.glob(REPORTS)):
        what = "nothing was reported" if exit_status is not None else f"did not end within {CLASS_TIMEOUT_S:.0f} s"
        return [Result(test=test_class, status=Status.FAILED, seconds=0, detail=f"{what}\n{tail(log)}")]
    return list(read_reports(folder))
