"""Penstock and Apache Kafka on this machine, one node or three, started for being measured.

Both run with their defaults and the same few properties. Apache Kafka gets the heap and the options for the JVM of its
own start script.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from .. import __version__
from ..local.apache_kafka.cluster import KafkaCluster
from ..local.apache_kafka.jars import SERVER_OPTIONS, KafkaJars
from ..local.cluster import LocalCluster
from ..local.errors import NodeFailedError
from ..local.local_node import LocalNode, environment_without_properties
from ..protocol.structs import replace
from .metadata_images import add_partitions
from .quorum_state import cluster_pids
from .target import CLUSTER_NODES, Cluster, Target

PENSTOCK: Final = "Penstock"
KAFKA: Final = "Apache Kafka"
PROPERTIES: Final = {
    # Deleted topics must not take up the disk and its writes while the next is measured.
    "log.segment.delete.delay.ms": "1000",
}
_STOP_TIMEOUT_S: Final = 60.0
_HEAP_MIB: Final = 1024


class LocalBroker(Struct, frozen=True, kw_only=True):
    """A kind of broker that can be started here."""

    name: str
    version: str
    prepare: Callable[[Path], LocalNode]
    """Makes a node in this empty folder that only has to be started."""
    prepare_cluster: Callable[[Path, Mapping[str, str], int], LocalCluster | KafkaCluster]
    """The same of so many nodes, with these properties beside their own."""
    can_grow: bool = False
    has_http: bool = False
    has_tiers: bool = False
    add_partitions: Callable[[Cluster, int], None] | None = None

    @contextmanager
    def fresh_node(self) -> Iterator[LocalNode]:
        """A node that is not started yet; it is ended and its folder removed at the end."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
            node = self.prepare(Path(folder))
            try:
                yield node
            finally:
                _end(node)

    @contextmanager
    def fresh_cluster(self, properties: Mapping[str, str], node_count: int = CLUSTER_NODES, /) -> Iterator[Cluster]:
        """Three nodes, or so many, that are not started yet; they are killed and their folder removed at the end."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
            cluster = self.prepare_cluster(Path(folder), {**PROPERTIES, **properties}, node_count)
            try:
                yield cluster
            finally:
                cluster.kill()

    @contextmanager
    def target(self, *, is_node_needed: bool, is_cluster_needed: bool) -> Iterator[Target]:
        """A node that serves clients, three that do, or both, until the end of the context; neither for what starts its
        own."""
        with ExitStack() as stack:
            target = self._target()
            if is_node_needed:
                target, _ = stack.enter_context(target.fresh_running())
            if is_cluster_needed:
                target = replace(target, replicated=stack.enter_context(self._running_cluster()))
            yield target

    @contextmanager
    def _running_cluster(self) -> Iterator[Target]:
        with self.fresh_cluster({}) as cluster:
            cluster.start()
            yield Target(
                name=self.name, bootstrap=cluster.bootstrap, replicas=CLUSTER_NODES, pids=cluster_pids(cluster)
            )

    def _target(self) -> Target:
        return Target(
            name=self.name,
            bootstrap="",
            version=self.version,
            fresh_node=self.fresh_node,
            fresh_cluster=self.fresh_cluster,
            can_grow=self.can_grow,
            has_http=self.has_http,
            has_tiers=self.has_tiers,
            add_partitions=self.add_partitions,
            settings=PROPERTIES,
        )


def penstock() -> LocalBroker:
    """The code that runs here."""

    # Where Python is told to keep no compiled modules, each start compiles all; what pip installs is compiled.
    environment = environment_without_properties(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def prepare(folder: Path) -> LocalNode:
        node = LocalCluster(folder, environment=environment).nodes[1]
        node.write_properties(PROPERTIES)
        return node

    def prepare_cluster(folder: Path, properties: Mapping[str, str], node_count: int) -> LocalCluster:
        return LocalCluster(folder, node_count=node_count, properties=properties, environment=environment)

    return LocalBroker(
        name=PENSTOCK,
        version=__version__,
        prepare=prepare,
        prepare_cluster=prepare_cluster,
        can_grow=True,
        has_http=True,
        has_tiers=True,
        add_partitions=add_partitions,
    )


def kafka(jars: KafkaJars) -> LocalBroker:
    """Apache Kafka of these jars. Formatting its folder, a run of Java of its own, belongs to making it ready."""

    def prepare(folder: Path) -> LocalNode:
        options = (f"-Xms{_HEAP_MIB}m", *SERVER_OPTIONS)
        cluster = KafkaCluster(jars, folder, properties=PROPERTIES, heap_mib=_HEAP_MIB, options=options)
        cluster.prepare()
        return cluster.nodes[1]

    def prepare_cluster(folder: Path, properties: Mapping[str, str], node_count: int) -> KafkaCluster:
        options = (f"-Xms{_HEAP_MIB}m", *SERVER_OPTIONS)
        return KafkaCluster(
            jars,
            folder,
            node_count=node_count,
            properties=properties,
            heap_mib=_HEAP_MIB,
            options=options,
        )

    return LocalBroker(name=KAFKA, version=jars.version, prepare=prepare, prepare_cluster=prepare_cluster)


def _end(node: LocalNode) -> None:
    try:
        node.stop(timeout_s=_STOP_TIMEOUT_S)
    except NodeFailedError:
        # It was killed, and nothing that was measured depends on how it ended.
        return
