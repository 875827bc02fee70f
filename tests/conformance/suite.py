"""What every suite of other people's tests looks like from here: a name, and a way to run it against a broker.

A suite that is added is named in `suites.py`. Its name also names its baseline and its list of tests that cannot pass
yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import install
from penstock.local.cluster import LocalCluster
from penstock.local.local_node import LocalNode

from .expectations import Expectations
from .secure_listener import SecureListener
from .server_properties import REPLICATION_FACTORS

_HEAP_MIB_ALONE: Final = 1024
_HEAP_MIB: Final = 384
"""Of each node of Apache Kafka where there are several."""


class Status(StrEnum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One test's end; `detail` says why it failed or was skipped, its first line for people in a hurry."""

    test: str
    status: Status
    seconds: float
    detail: str = ""


class SuiteUnavailableError(Exception):
    """A suite cannot be had or run on this machine; the message says what is missing and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run of a suite is given."""

    work: Path
    """An empty folder for logs and for the clusters that the run starts."""
    wants: Callable[[str], bool]
    """Whether a test of this name is to be run."""
    expectations: Expectations
    """What the tests do on Apache Kafka, and which of them cannot pass here yet."""
    jobs: int
    """How many tests may run at a time, where a suite can do that."""
    bootstrap: str | None = None
    """The broker under test; None: the suite starts a cluster of its own."""
    on_apache_kafka: bool = False
    """Whether the clusters that are started are Apache Kafka's: that is how baselines are made."""
    records_baseline: bool = False
    """Whether a suite that keeps more of Apache Kafka's answers than how its tests end is to write that anew."""

    @contextmanager
    def broker(
        self,
        properties: Mapping[str, str],
        *,
        node_count: int = 1,
        folder: str = "cluster",
        secure: SecureListener | None = None,
    ) -> Iterator[str]:
        """The bootstrap address of the brokers under test: a fresh cluster with these properties, or what was given.

        Each node is in a rack of its own; internal topics have as many replicas as there are nodes. `secure` is one
        more listener of a cluster that is started here.
        """
        if self.bootstrap is not None:
            yield self.bootstrap
            return
        told = {**properties, **dict.fromkeys(REPLICATION_FACTORS, str(node_count))}
        # Some suites know the broker by its id, which is 0 where they come from.
        cluster: LocalCluster | KafkaCluster
        rewire = _as_told if secure is None else secure.rewire
        if self.on_apache_kafka:
            cluster = KafkaCluster(
                install(),
                self.work / folder,
                node_count=node_count,
                first_node_id=0,
                properties=told,
                properties_of=_own_properties,
                rewire=rewire,
                heap_mib=_HEAP_MIB_ALONE if node_count == 1 else _HEAP_MIB,
            )
        else:
            cluster = LocalCluster(
                self.work / folder,
                node_count=node_count,
                first_node_id=0,
                properties=told,
                properties_of=_own_properties,
                rewire=rewire,
            )
        with cluster:
            if secure is not None:
                secure.add_users(cluster.bootstrap)
            yield cluster.bootstrap

    @contextmanager
    def cluster(self, node_count: int, properties: Mapping[str, str] | None = None) -> Iterator[tuple[Node, ...]]:
        """The nodes of a fresh cluster with these properties, all of them brokers and controllers.

        Raises SuiteUnavailableError when there is to be no other broker than the one given.
        """
        if self.bootstrap is not None:
            raise SuiteUnavailableError("it starts clusters of its own, and cannot be run against a broker elsewhere")
        cluster: LocalCluster | KafkaCluster
        if self.on_apache_kafka:
            cluster = KafkaCluster(
                install(),
                self.work / "cluster",
                node_count=node_count,
                properties=properties,
                heap_mib=_HEAP_MIB,
            )
        else:
            cluster = LocalCluster(
                self.work / "cluster",
                node_count=node_count,
                properties=properties,
                properties_of=None if properties is None else _advertised,
            )
        with cluster:
            addresses = zip(cluster.nodes.values(), cluster.controller_addresses, strict=True)
            yield tuple(
                Node(id=node.id, bootstrap=node.address, controller=address, process=node)
                for node, address in addresses
            )


def _as_told(_node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
    return told


def _advertised(node: LocalNode) -> Mapping[str, str]:
    """As nodes of Apache Kafka are started."""
    return {"advertised.listeners": f"PLAINTEXT://{node.address}"}


def _own_properties(node: LocalNode) -> Mapping[str, str]:
    """Some suites expect a broker to be told its address; others look at its rack."""
    return {"advertised.listeners": f"PLAINTEXT://{node.address}", "broker.rack": f"RACK{node.id}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of a cluster: its two listeners, and its process with the folder of its data."""

    id: int
    bootstrap: str
    controller: str
    process: LocalNode


class Suite(Protocol):
    """Tests of another project, with what it takes to run them."""

    @property
    def name(self) -> str: ...

    def run(self, run: Run) -> Iterator[Result]:
        """Runs the wanted tests and yields each result once, when it is known. Raises SuiteUnavailableError."""
        ...
