"""What is measured: a cluster by its bootstrap address, and its processes where they are on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Final, Protocol

from msgspec import Struct

from ..local.local_node import LocalNode
from ..local.readiness import wait_ready
from ..protocol.properties_text import properties_of
from ..protocol.structs import replace

START_TIMEOUT_S: Final = 120.0
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})


class Cluster(Protocol):
    """Several nodes of one kind on this machine; each is controller and broker."""

    @property
    def nodes(self) -> Mapping[int, LocalNode]: ...

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> None:
        """All nodes, until they serve clients. Raises NodeFailedError, PortInUseError."""

    def stop(self) -> None:
        """All nodes, in order."""


CLUSTER_NODES: Final = 3


class FreshCluster(Protocol):
    """Nodes with these properties beside their own, ready to be started; at the end they are killed and gone."""

    def __call__(
        self, properties: Mapping[str, str], node_count: int = CLUSTER_NODES, /
    ) -> AbstractContextManager[Cluster]: ...


class Listener(Struct, frozen=True, kw_only=True):
    """Another way into a cluster than its plain listener."""

    bootstrap: str
    client: Mapping[str, str]
    """Properties that librdkafka needs for it."""


class Target(Struct, frozen=True, kw_only=True):
    """A cluster that runs."""

    name: str
    bootstrap: str
    version: str = ""
    replicas: int = 1
    """Of the topics that are made in it."""
    pids: tuple[int, ...] = ()
    """Its processes on this machine; without them CPU and memory are not measured."""
    fresh_node: Callable[[], AbstractContextManager[LocalNode]] | None = None
    """Gives another node of the same kind, ready to be started; without it, start-up is not measured."""
    fresh_cluster: FreshCluster | None = None
    """Gives three nodes of the same kind, or more or fewer; without it, the quorum is not measured."""
    can_grow: bool = False
    """Whether nodes can be added to such a cluster while it runs: then it is a `LocalCluster`."""
    has_http: bool = False
    """Whether its nodes have an HTTP administration and metrics."""
    has_tiers: bool = False
    """Whether its nodes have a tier in a folder: Apache Kafka comes without a store."""
    replicated: Target | None = None
    """Three nodes of the same kind that run, for topics with three replicas; without it, these are not measured."""
    add_partitions: Callable[[Cluster, int], None] | None = None
    """Puts so many partitions into the metadata of a cluster that was stopped, without their logs."""
    settings: Mapping[str, str] = {}
    """What its nodes were started with, for the record."""

    @contextmanager
    def fresh_running(self, settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[tuple[Target, LocalNode]]:
        """A fresh node that serves clients, as a target and as itself; it is ended at the end of the context.

        `settings` are beside its own.
        Raises ClusterError when it does not serve clients in time.
        """
        assert self.fresh_node is not None, "only asked of targets that can be started"
        with self.fresh_node() as node:
            if settings:
                node.write_properties({**read_properties(node), **settings})
            node.start()
            wait_ready((node,), timeout_s=START_TIMEOUT_S)
            yield replace(self, bootstrap=node.address, pids=node_pids(node)), node


def read_properties(node: LocalNode) -> dict[str, str]:
    """What it is going to be started with."""
    return properties_of(node.properties.read_text())


def node_pids(node: LocalNode) -> tuple[int, ...]:
    """Of a node that runs."""
    assert node.process is not None, "it has been started"
    return (node.process.pid,)
