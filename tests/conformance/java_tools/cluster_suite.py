"""Apache Kafka's command line tools on a cluster of three nodes, with topics of up to three replicas.

Some jobs are done through each of the nodes, and have its number in their names: `topics-2` creates and deletes topics
with node 2 as bootstrap server. Then come those that need the cluster to themselves, because they kill nodes or count
what is going on in all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Final

from ..suite import Node, Result, Run
from . import election_checks, outage_checks, quorum_checks, reassignment_checks, replica_checks
from .quorum_checks import NodeTools
from .replicated_tools import ReplicatedTools
from .toolbox import Toolbox, run_check

NODE_COUNT: Final = 3
ALONE: Final[Mapping[str, Callable[[ReplicatedTools], None]]] = {
    check.__name__: check for module in (reassignment_checks, election_checks, outage_checks) for check in module.CHECKS
}


class JavaToolsClusterSuite:
    """See above."""

    name = "java-tools-cluster"

    def run(self, run: Run) -> Iterator[Result]:
        toolbox = Toolbox.open(run)
        with run.cluster(NODE_COUNT) as nodes:
            yield from _run_together(toolbox, nodes)
            for name, check in ALONE.items():
                if run.wants(name):
                    there = _replicated(toolbox, name, nodes)
                    yield run_check(name, partial(check, there))
                    there.start_all()


def _run_together(toolbox: Toolbox, nodes: Sequence[Node]) -> Iterator[Result]:
    checks: dict[str, Callable[[], None]] = {}
    for name, check in quorum_checks.CHECKS.items():
        for node in nodes:
            test = f"{name}-{node.id}"
            through = NodeTools(tools=toolbox.tools(test, node.bootstrap), node=node, nodes=nodes)
            checks[test] = partial(check, through)
    for replica_check in replica_checks.CHECKS:
        test = replica_check.__name__
        checks[test] = partial(replica_check, _replicated(toolbox, test, nodes))
    with ThreadPoolExecutor(toolbox.run.jobs) as pool:
        futures = [pool.submit(run_check, test, check) for test, check in checks.items() if toolbox.run.wants(test)]
        for future in as_completed(futures):
            yield future.result()


def _replicated(toolbox: Toolbox, test: str, nodes: Sequence[Node]) -> ReplicatedTools:
    bootstrap = ",".join(node.bootstrap for node in nodes)
    return ReplicatedTools(tools=toolbox.tools(test, bootstrap), nodes={node.id: node for node in nodes})
