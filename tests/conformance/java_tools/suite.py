"""Apache Kafka's own command line tools, its performance and its verifiable clients: each check is a job of theirs.

The tools are Apache Kafka's; the checks, that they do their work, are this project's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Final

from ..server_properties import PROPERTIES
from ..suite import Result, Run
from . import cluster_checks, config_checks, group_checks, record_checks, topic_checks, transaction_checks
from .toolbox import Toolbox, run_check
from .tools import Tools

CHECKS: Final[Mapping[str, Callable[[Tools], None]]] = {
    check.__name__: check
    for module in (cluster_checks, topic_checks, config_checks, record_checks, group_checks, transaction_checks)
    for check in module.CHECKS
}


class JavaToolsSuite:
    """Test names are those of the checks."""

    name = "java-tools"

    def run(self, run: Run) -> Iterator[Result]:
        toolbox = Toolbox.open(run)
        with run.broker(PROPERTIES) as bootstrap, ThreadPoolExecutor(run.jobs) as pool:
            futures = [
                pool.submit(run_check, name, partial(check, toolbox.tools(name, bootstrap)))
                for name, check in CHECKS.items()
                if run.wants(name)
            ]
            for future in as_completed(futures):
                yield future.result()
