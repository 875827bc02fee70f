"""Where the suites of Apache Kafka's tools get the tools from, and how each of their checks is run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Self

from penstock.client.clock import monotonic_s
from penstock.local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from penstock.local.errors import ClusterError

from ..suite import Result, Run, Status, SuiteUnavailableError
from .tools import CheckFailedError, Tools

TOOL_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """For one run of a suite."""

    jars: KafkaJars
    run: Run
    run_id: str
    """A broker that is given may have seen an earlier run."""

    @classmethod
    def open(cls, run: Run) -> Self:
        """Raises SuiteUnavailableError."""
        try:
            return cls(jars=install(), run=run, run_id=f"{Random().getrandbits(32):08x}")
        except JarsUnavailableError as missing:
            raise SuiteUnavailableError(str(missing)) from missing

    def tools(self, test: str, bootstrap: str) -> Tools:
        """The tools of one test, told of these brokers."""
        return Tools(
            jars=self.jars,
            bootstrap=bootstrap,
            check=test,
            run_id=self.run_id,
            work=self.run.work,
            timeout_s=self.run.expectations.limit_s(test, TOOL_TIMEOUT_S),
        )


def run_check(test: str, check: Callable[[], None]) -> Result:
    """How it ends."""
    started_s = monotonic_s()
    status, detail = Status.PASSED, ""
    try:
        check()
    except (CheckFailedError, ClusterError) as failure:
        status, detail = Status.FAILED, str(failure)
    except subprocess.TimeoutExpired as late:
        status, detail = Status.FAILED, f"a tool did not end within {late.timeout:.0f} s: {late.cmd}"
    return Result(test=test, status=status, seconds=monotonic_s() - started_s, detail=detail)
