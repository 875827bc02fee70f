"""Penstock and Apache Kafka on this machine, one node each, started for being measured.

Both run with their defaults and the same few properties. Apache Kafka gets the heap and the options for the JVM of its
own start script.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .. import __version__
from ..chaos.cluster import LocalCluster
from ..chaos.errors import NodeFailedError
from ..chaos.local_node import LocalNode, environment_without_properties
from ..chaos.readiness import wait_ready
from .anchor.broker import AnchorCluster
from .anchor.jars import SERVER_OPTIONS, KafkaJars
from .target import Target

PENSTOCK: Final = "Penstock"
KAFKA: Final = "Apache Kafka"
PROPERTIES: Final = {
    # Deleted topics must not take up the disk and its writes while the next is measured.
    "log.segment.delete.delay.ms": "1000",
}
START_TIMEOUT_S: Final = 120.0
_STOP_TIMEOUT_S: Final = 60.0
_HEAP_MIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBroker:
    """A kind of broker that can be started here."""

    name: str
    version: str
    prepare: Callable[[Path], LocalNode]
    """Makes a node in this empty folder that only has to be started."""

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
    def running(self) -> Iterator[Target]:
        """A node that serves clients, until the end of the context."""
        with self.fresh_node() as node:
            node.start()
            wait_ready((node,), timeout_s=START_TIMEOUT_S)
            assert node.process is not None, "it serves clients"
            yield Target(
                name=self.name,
                bootstrap=node.address,
                version=self.version,
                pids=(node.process.pid,),
                fresh_node=self.fresh_node,
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

    return LocalBroker(name=PENSTOCK, version=__version__, prepare=prepare)


def kafka(jars: KafkaJars) -> LocalBroker:
    """Apache Kafka of these jars. Formatting its folder, a run of Java of its own, belongs to making it ready."""

    def prepare(folder: Path) -> LocalNode:
        options = (f"-Xms{_HEAP_MIB}m", *SERVER_OPTIONS)
        cluster = AnchorCluster(jars, folder, properties=PROPERTIES, heap_mib=_HEAP_MIB, options=options)
        cluster.prepare()
        return cluster.nodes[1]

    return LocalBroker(name=KAFKA, version=jars.version, prepare=prepare)


def _end(node: LocalNode) -> None:
    try:
        node.stop(timeout_s=_STOP_TIMEOUT_S)
    except NodeFailedError:
        # It was killed, and nothing that was measured depends on how it ended.
        return
