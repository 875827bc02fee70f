"""Apache Kafka's own command line tools, its performance and its verifiable clients: each check is a job of theirs.

The tools are Apache Kafka's; the checks, that they do their work, are this project's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Final

from ..secure_listener import SecureListener
from ..server_properties import PROPERTIES
from ..suite import Result, Run
from . import (
    cluster_checks,
    config_checks,
    group_checks,
    record_checks,
    security_checks,
    topic_checks,
    transaction_checks,
)
from .toolbox import Toolbox, run_check
from .tools import Tools

CHECKS: Final[Mapping[str, Callable[[Tools], None]]] = {
    check.__name__: check
    for module in (cluster_checks, topic_checks, config_checks, record_checks, group_checks, transaction_checks)
    for check in module.CHECKS
}


SECURITY_CHECKS: Final[Mapping[str, Callable[[Tools, SecureListener], None]]] = {
    check.__name__: check for check in security_checks.CHECKS
}


class JavaToolsSuite:
    """Test names are those of the checks.

    Those of users, passwords and tokens need a listener that only a cluster has which is started here.
    """

    name = "java-tools"

    def run(self, run: Run) -> Iterator[Result]:
        toolbox = Toolbox.open(run)
        secure = None if run.bootstrap is not None else SecureListener(run.work / "tls")
        with run.broker(PROPERTIES, secure=secure) as bootstrap, ThreadPoolExecutor(run.jobs) as pool:
            checks = {name: partial(check, toolbox.tools(name, bootstrap)) for name, check in CHECKS.items()}
            if secure is not None:
                for name, secured in SECURITY_CHECKS.items():
                    checks[name] = partial(secured, toolbox.tools(name, bootstrap), secure)
            futures = [pool.submit(run_check, name, check) for name, check in checks.items() if run.wants(name)]
            for future in as_completed(futures):
                yield future.result()
