"""The two brokers, started alike: the same node id, the same properties, a controller listener each."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from differential.target import Target

from penstock.local.apache_kafka.cluster import CLUSTER_ID, KafkaCluster
from penstock.local.apache_kafka.jars import SHORT_RUN_OPTIONS, KafkaJars
from penstock.local.local_node import HOST, LocalNode, environment_without_properties
from penstock.local.ports import find_free
from penstock.local.readiness import wait_ready

NODE_ID = 1
# Quicker, and nothing else: one partition of each internal topic is enough for one client.
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_HEAP_MIB = 512


@contextmanager
def apache_kafka(jars: KafkaJars, folder: Path) -> Iterator[Target]:
    cluster = KafkaCluster(jars, folder, properties=PROPERTIES, heap_mib=_HEAP_MIB, options=SHORT_RUN_OPTIONS)
    with cluster:
        (node,) = cluster.nodes.values()
        with Target(cluster.bootstrap, _words(node, cluster.controller_addresses[0], CLUSTER_ID)) as target:
            yield target


@contextmanager
def penstock(folder: Path) -> Iterator[Target]:
    """A node of ours with the properties that Apache Kafka is given."""
    generator = random.Random()
    port, controller_port = find_free(generator), find_free(generator)
    node = LocalNode(
        id=NODE_ID, port=port, data=folder / "node-1", environment=environment_without_properties(os.environ)
    )
    node.write_properties(
        {
            "process.roles": "broker,controller",
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            **PROPERTIES,
        }
    )
    node.start()
    try:
        wait_ready((node,), timeout_s=_START_TIMEOUT_S)
        with Target(node.address, _words(node, f"{HOST}:{controller_port}", "")) as target:
            yield target
    finally:
        node.stop(timeout_s=_STOP_TIMEOUT_S)


def _words(node: LocalNode, controller_address: str, cluster_id: str) -> dict[str, str]:
    words = {node.address: "<address>", controller_address: "<controller>", str(node.data): "<log dir>"}
    return {**words, cluster_id: "<cluster>"} if cluster_id else words
