"""Apache Kafka's command line tools on a cluster of three nodes: each job is done through each of the nodes.

Test names are those of the checks with the node: `topics-2` creates and deletes topics with node 2 as bootstrap server.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from random import Random
from typing import Final

from penstock.bench.anchor.jars import JarsUnavailableError, install

from ..suite import Result, Run, SuiteUnavailableError
from .quorum_checks import CHECKS, NodeTools
from .suite import TOOL_TIMEOUT_S, run_check
from .tools import Tools

NODE_COUNT: Final = 3


class JavaToolsClusterSuite:
    """See above."""

    name = "java-tools-cluster"

    def run(self, run: Run) -> Iterator[Result]:
        try:
            jars = install()
        except JarsUnavailableError as missing:
            raise SuiteUnavailableError(str(missing)) from missing
        run_id = f"{Random().getrandbits(32):08x}"
        with run.cluster(NODE_COUNT) as nodes, ThreadPoolExecutor(run.jobs) as pool:
            futures = []
            for name, check in CHECKS.items():
                for node in nodes:
                    test = f"{name}-{node.id}"
                    tools = Tools(
                        jars=jars,
                        bootstrap=node.bootstrap,
                        check=test,
                        run_id=run_id,
                        work=run.work,
                        timeout_s=run.expectations.limit_s(test, TOOL_TIMEOUT_S),
                    )
                    if run.wants(test):
                        there = NodeTools(tools=tools, node=node, nodes=nodes)
                        futures.append(pool.submit(run_check, test, partial(check, there)))
            for future in as_completed(futures):
                yield future.result()
