"""Apache Kafka's own command line tools, its performance and its verifiable clients: each check is a job of theirs.

The tools are Apache Kafka's; the checks, that they do their work, are this project's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from random import Random
from typing import Final

from penstock.bench.anchor.jars import JarsUnavailableError, KafkaJars, install
from penstock.client.clock import monotonic_s

from ..server_properties import PROPERTIES
from ..suite import Result, Run, Status, SuiteUnavailableError
from . import cluster_checks, config_checks, group_checks, record_checks, topic_checks, transaction_checks
from .tools import CheckFailedError, Tools

TOOL_TIMEOUT_S: Final = 120.0
CHECKS: Final[Mapping[str, Callable[[Tools], None]]] = {
    check.__name__: check
    for module in (cluster_checks, topic_checks, config_checks, record_checks, group_checks, transaction_checks)
    for check in module.CHECKS
}


class JavaToolsSuite:
    """Test names are those of the checks."""

    name = "java-tools"

    def run(self, run: Run) -> Iterator[Result]:
        try:
            jars = install()
        except JarsUnavailableError as missing:
            raise SuiteUnavailableError(str(missing)) from missing
        # A broker that is given may have seen an earlier run.
        run_id = f"{Random().getrandbits(32):08x}"
        with run.broker(PROPERTIES) as bootstrap, ThreadPoolExecutor(run.jobs) as pool:
            futures = [
                pool.submit(_run_check, run, jars, bootstrap, run_id, name) for name in CHECKS if run.wants(name)
            ]
            for future in as_completed(futures):
                yield future.result()


def _run_check(run: Run, jars: KafkaJars, bootstrap: str, run_id: str, name: str) -> Result:
    tools = Tools(
        jars=jars,
        bootstrap=bootstrap,
        check=name,
        run_id=run_id,
        work=run.work,
        timeout_s=run.expectations.limit_s(name, TOOL_TIMEOUT_S),
    )
    return run_check(name, lambda: CHECKS[name](tools))


def run_check(name: str, check: Callable[[], None]) -> Result:
    """How it ends."""
    started_s = monotonic_s()
    status, detail = Status.PASSED, ""
    try:
        check()
    except CheckFailedError as failure:
        status, detail = Status.FAILED, str(failure)
    except subprocess.TimeoutExpired as late:
        status, detail = Status.FAILED, f"a tool did not end within {late.timeout:.0f} s: {late.cmd}"
    return Result(test=name, status=status, seconds=monotonic_s() - started_s, detail=detail)
