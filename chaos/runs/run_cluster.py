"""What a run is done to: a cluster of Penstock behind proxies, one of Apache Kafka, or one that is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ... import __version__
from ...local.apache_kafka.cluster import KafkaCluster
from ...local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from ...local.errors import ClusterError
from ...local.node_watch import NodeEnd, NodeWatch
from ..histories.run_folder import RunFolder, RunRecord
from ..links.proxied_cluster import ProxiedCluster
from ..nemeses.kafka_target import KafkaTarget
from ..nemeses.linked_target import LinkedTarget
from ..nemeses.target import Target
from .http_sampler import HttpSampler
from .protocol_sampler import ProtocolSampler
from .sampler import Sampler
from .wholeness import brokers_of

PENSTOCK: Final = "penstock"
APACHE_KAFKA: Final = "apache-kafka"
GIVEN: Final = "bootstrap"
# Of each node: five fit beside the clients into a small machine.
_HEAP_MIB: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCluster:
    """A cluster that serves clients. `bootstrap` is what a client connects to, by its number; `looked_at` is where the
    run itself looks at the cluster, over links that nothing breaks."""

    version: str
    node_count: int
    bootstrap: Callable[[int], str]
    looked_at: str
    target: Callable[[Sequence[str]], Target]
    """What a nemesis breaks, with these topics under load. Raises ClusterError for a cluster that is not broken."""
    sampler: Callable[[Path, Sequence[str], int], Sampler]
    """What looks at it: writes into this file, of these topics, with times since then (`Sampler`)."""
    ends: Callable[[], Sequence[NodeEnd]] = tuple
    """Of nodes that ended by themselves, until now. Those of a cluster that others started are not known."""


@contextmanager
def start_cluster(record: RunRecord, folder: RunFolder, *, client_slots: int, may_grow: bool) -> Iterator[RunCluster]:
    """The cluster that the record asks for, until the end of the context. Raises ClusterError, NodeFailedError."""
    if record.cluster == GIVEN:
        yield _given(record)
    elif record.cluster == PENSTOCK:
        with ProxiedCluster(
            folder.nodes,
            node_count=record.nodes,
            client_slots=client_slots,
            spare_nodes=1 if may_grow else 0,
            properties=record.properties,
            obeys_orders=True,
            seed=record.seed,
        ) as cluster:
            yield _penstock(cluster)
    elif record.cluster == APACHE_KAFKA:
        jars = _jars()
        with (
            KafkaCluster(
                jars, folder.nodes, node_count=record.nodes, properties=record.properties, heap_mib=_HEAP_MIB
            ) as kafka,
            NodeWatch(kafka.nodes.values) as watch,
        ):
            yield _apache_kafka(kafka, watch, jars.version)
    else:
        raise ClusterError(f"there is no cluster of {record.cluster!r} to start: {PENSTOCK}, {APACHE_KAFKA}")


def _jars() -> KafkaJars:
    try:
        return install()
    except JarsUnavailableError as error:
        raise ClusterError(f"Apache Kafka cannot be run here: {error}") from error


def _penstock(cluster: ProxiedCluster) -> RunCluster:
    return RunCluster(
        version=__version__,
        node_count=len(cluster.nodes),
        bootstrap=cluster.bootstrap,
        looked_at=cluster.cluster.bootstrap,
        target=lambda topics: LinkedTarget(cluster, topics),
        sampler=lambda path, topics, start_ns: HttpSampler(
            path,
            admins=lambda: _admins(cluster),
            state=lambda node_id: _state(cluster, node_id),
            topics=topics,
            start_ns=start_ns,
        ),
        ends=lambda: cluster.ends,
    )


def _admins(cluster: ProxiedCluster) -> dict[int, str]:
    # A copy: the nemesis may let a node join or leave meanwhile.
    return {node_id: node.admin for node_id, node in tuple(cluster.nodes.items()) if node.admin is not None}


def _state(cluster: ProxiedCluster, node_id: int) -> str:
    try:
        return cluster.state(node_id)
    except KeyError:
        # It has left since it was listed.
        return "down"


def _apache_kafka(cluster: KafkaCluster, watch: NodeWatch, version: str) -> RunCluster:
    return RunCluster(
        version=version,
        node_count=len(cluster.nodes),
        bootstrap=lambda _number: cluster.bootstrap,
        looked_at=cluster.bootstrap,
        target=lambda topics: KafkaTarget(cluster, topics),
        sampler=lambda path, topics, start_ns: ProtocolSampler(
            path,
            addresses=lambda: {node_id: (node.host, node.port) for node_id, node in cluster.nodes.items()},
            state=KafkaTarget(cluster, topics).state,
            topics=topics,
            start_ns=start_ns,
        ),
        ends=lambda: watch.ends,
    )


def _given(record: RunRecord) -> RunCluster:
    assert record.bootstrap is not None, "it is what makes the cluster a given one"
    bootstrap = record.bootstrap
    brokers = brokers_of(bootstrap)

    def target(_topics: Sequence[str]) -> Target:
        raise ClusterError(f"the cluster at {bootstrap} was started by others: nothing breaks it")

    return RunCluster(
        version="",
        node_count=len(brokers),
        bootstrap=lambda _number: bootstrap,
        looked_at=bootstrap,
        target=target,
        sampler=lambda path, topics, start_ns: ProtocolSampler(
            path, addresses=lambda: brokers, state=lambda _node: "up", topics=topics, start_ns=start_ns
        ),
    )
