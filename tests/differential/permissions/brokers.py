"""The brokers that the matrix is asked of: with an authorizer, and listeners that know their clients."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from differential.brokers import NODE_ID, PROPERTIES
from differential.permissions.cells import users
from differential.permissions.layout import Layout
from differential.permissions.matrix import ADMIN, Matrix
from differential.permissions.session import password_of

from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.apache_kafka.jars import SHORT_RUN_OPTIONS, KafkaJars
from penstock.local.local_node import HOST, LocalNode, environment_without_properties
from penstock.local.ports import find_free
from penstock.local.readiness import wait_ready

CLIENTS = "CLIENTS"
OPERATORS = "OPERATORS"
"""The listeners of brokers and of controllers for clients that authenticate."""

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_HEAP_MIB = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Of the listeners: between brokers, between controllers, for clients, for clients of controllers."""

    brokers: int
    controllers: int
    clients: int = field(default_factory=lambda: find_free(random.Random()))
    operators: int = field(default_factory=lambda: find_free(random.Random()))


@contextmanager
def apache_kafka(jars: KafkaJars, folder: Path, layout: Layout) -> Iterator[Matrix]:
    """A broker of Apache Kafka that everything is ready on."""

    def properties_of(node: LocalNode) -> Mapping[str, str]:
        return settings(layout, ports)

    cluster = KafkaCluster(
        jars, folder, properties_of=properties_of, heap_mib=_HEAP_MIB, options=SHORT_RUN_OPTIONS, log_level="OFF"
    )
    (node,) = cluster.nodes.values()
    _, _, controller_port = cluster.controller_addresses[0].rpartition(":")
    ports = Ports(brokers=node.port, controllers=int(controller_port))
    with cluster, Matrix((HOST, ports.clients), (HOST, ports.operators), layout) as matrix:
        yield matrix


@contextmanager
def penstock(folder: Path, layout: Layout) -> Iterator[Matrix]:
    """A node of ours with the properties that Apache Kafka is given."""
    generator = random.Random()
    ports = Ports(brokers=find_free(generator), controllers=find_free(generator))
    node = LocalNode(
        id=NODE_ID, port=ports.brokers, data=folder / "node-1", environment=environment_without_properties(os.environ)
    )
    node.write_properties(
        {
            "process.roles": "broker,controller",
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{ports.controllers}",
            **settings(layout, ports),
        }
    )
    node.start()
    try:
        wait_ready((node,), timeout_s=_START_TIMEOUT_S)
        with Matrix((HOST, ports.clients), (HOST, ports.operators), layout) as matrix:
            yield matrix
    finally:
        node.stop(timeout_s=_STOP_TIMEOUT_S)


def settings(layout: Layout, ports: Ports) -> Mapping[str, str]:
    """Beside what each broker is started with anyway."""
    known = users(layout.places)
    supers = ["ANONYMOUS", ADMIN, *(user for user, is_super in known.items() if is_super)]
    accounts = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, *known))
    jaas = f"{_PLAIN} required {accounts};"
    return {
        **PROPERTIES,
        "listeners": ",".join(
            f"{name}://{HOST}:{port}"
            for name, port in (
                ("PLAINTEXT", ports.brokers),
                (CLIENTS, ports.clients),
                ("CONTROLLER", ports.controllers),
                (OPERATORS, ports.operators),
            )
        ),
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.brokers},{CLIENTS}://{HOST}:{ports.clients}",
        "controller.listener.names": f"CONTROLLER,{OPERATORS}",
        "listener.security.protocol.map": (
            f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{CLIENTS}:SASL_PLAINTEXT,{OPERATORS}:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{CLIENTS.lower()}.plain.sasl.jaas.config": jaas,
        f"listener.name.{OPERATORS.lower()}.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{user}" for user in supers),
        "delegation.token.secret.key": "of-the-matrix",
        **layout.properties,
    }
