"""What a run is done to: a cluster of Penstock whose links break, one of Apache Kafka, or one that is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from ... import __version__
from ...local.apache_kafka.cluster import KafkaCluster
from ...local.apache_kafka.jars import JarsUnavailableError, KafkaJars, install
from ...local.errors import ClusterError
from ...local.node_watch import NodeEnd, NodeWatch
from ..faults.kinds import KINDS, Breaker
from ..histories.run_folder import APACHE_KAFKA, GIVEN, PENSTOCK, RunFolder, RunRecord
from ..links.linked_cluster import LinkedCluster
from ..links.namespaced_cluster import NamespacedCluster, kernel_lacks
from ..links.proxied_cluster import PROXIES_LACK, ProxiedCluster
from ..nemeses.kafka_target import KAFKA_KINDS, KafkaTarget
from ..nemeses.linked_target import LinkedTarget
from ..nemeses.target import Target
from .http_sampler import HttpSampler
from .protocol_sampler import ProtocolSampler
from .sampler import Sampler
from .wholeness import brokers_of

_CLUSTERS: Final[Mapping[Breaker, type[LinkedCluster]]] = {"proxies": ProxiedCluster, "namespaces": NamespacedCluster}
"""By what breaks their links."""
# Of each node: five fit beside the clients into a small machine.
_HEAP_MIB: Final = 512


class RunCluster(Struct, frozen=True, kw_only=True):
    """A cluster that serves clients. `bootstrap` is what a client connects to, by its number, and `command` what stands
    in front of its command; `looked_at` is where the run itself looks at the cluster, over links that nothing breaks.
    """

    version: str
    node_count: int
    bootstrap: Callable[[int], str]
    command: Callable[[int], Sequence[str]] = lambda _number: ()
    looked_at: str
    target: Callable[[Sequence[str]], Target]
    """What a nemesis breaks, with these topics under load. Raises ClusterError for a cluster that is not broken."""
    sampler: Callable[[Path, Sequence[str], int], Sampler]
    """What looks at it: writes into this file, of these topics, with times since then (`Sampler`)."""
    ends: Callable[[], Sequence[NodeEnd]] = tuple
    """Of nodes that ended by themselves, until now. Those of a cluster that others started are not known."""


@contextmanager
def start_cluster(record: RunRecord, folder: RunFolder, *, client_slots: int, may_grow: bool) -> Iterator[RunCluster]:
    """The cluster that the record asks for, until the end of the context, in which the calling thread, and those that
    it starts, reach the cluster. Raises ClusterError, NodeFailedError."""
    if record.cluster == GIVEN:
        yield _given(record)
    elif record.cluster == PENSTOCK:
        cluster = _CLUSTERS[record.links](
            folder.nodes,
            node_count=record.nodes,
            client_slots=client_slots,
            spare_nodes=1 if may_grow else 0,
            properties=record.properties,
            obeys_orders=True,
            seed=record.seed,
        )
        with cluster, cluster.joined():
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
        raise _no_such_cluster(record.cluster)


def lacking_kinds(cluster: str, links: Breaker) -> Mapping[str, str]:
    """The kinds of faults that such a cluster cannot have here, and why. Raises ClusterError where there can be no such
    cluster."""
    if cluster == PENSTOCK:
        return PROXIES_LACK if links == "proxies" else kernel_lacks()
    if cluster == APACHE_KAFKA:
        return dict.fromkeys(KINDS.keys() - KAFKA_KINDS, "Apache Kafka has faults of its processes only")
    if cluster == GIVEN:
        return dict.fromkeys(KINDS, "the cluster was started by others")
    raise _no_such_cluster(cluster)


def _no_such_cluster(name: str) -> ClusterError:
    return ClusterError(f"there is no cluster of {name!r} to start: {PENSTOCK}, {APACHE_KAFKA}")


def _jars() -> KafkaJars:
    try:
        return install()
    except JarsUnavailableError as error:
        raise ClusterError(f"Apache Kafka cannot be run here: {error}") from error


def _penstock(cluster: LinkedCluster) -> RunCluster:
    return RunCluster(
        version=__version__,
        node_count=len(cluster.nodes),
        bootstrap=cluster.bootstrap,
        command=cluster.command,
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


def _admins(cluster: LinkedCluster) -> dict[int, str]:
    # A copy: the nemesis may let a node join or leave meanwhile.
    return {node_id: node.admin for node_id, node in tuple(cluster.nodes.items()) if node.admin is not None}


def _state(cluster: LinkedCluster, node_id: int) -> str:
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
