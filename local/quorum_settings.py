"""The properties that make one cluster of several local nodes."""

import base64
import random
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..protocol.no_quorum import node_names
from .errors import ClusterError
from .local_node import LocalNode, parse_voter_ids
from .ports import find_free

CONTROLLER: Final = "CONTROLLER"
# As many as survive the loss of one; more only make every change of metadata slower.
VOTERS_MAX: Final = 3
# What is decided here, and so cannot be set for a cluster of several nodes.
QUORUM_KEYS: Final = frozenset(
    {"process.roles", "controller.listener.names", "controller.quorum.voters", "cluster.id", "cluster.secret"}
)


def quorum_settings(nodes: Sequence[LocalNode], generator: random.Random) -> Mapping[int, Mapping[str, str]]:
    """The quorum properties of each node, by its id: the first three are controllers too, the others follow them.

    Nothing for a node alone. Raises PortInUseError when there is no port for a controller.
    """
    if len(nodes) == 1:
        return {}
    voters = {node.id: (node, find_free(generator)) for node in nodes[:VOTERS_MAX]}
    shared = {
        "controller.quorum.voters": ",".join(
            f"{voter_id}@{node.host}:{port}" for voter_id, (node, port) in voters.items()
        ),
        "controller.listener.names": CONTROLLER,
        "cluster.id": _cluster_id(nodes),
        "cluster.secret": secrets.token_hex(),
    }
    settings = {node.id: {**shared, "process.roles": "broker"} for node in nodes}
    for voter_id, (node, port) in voters.items():
        settings[voter_id] |= {
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{node.address},{CONTROLLER}://{node.host}:{port}",
        }
    return settings


def check_voters(nodes: Sequence[LocalNode], settings_of: Callable[[LocalNode], Mapping[str, str]]) -> None:
    """The metadata of a cluster are on the disks of its controllers, and what they have committed holds only for as
    long as they are the same.

    Raises ClusterError for nodes that have metadata and were started with other controllers before.
    """
    for node in nodes:
        if not (node.data / "meta.properties").exists():
            continue
        former = node.voter_ids() or (node.id,)
        told = settings_of(node).get("controller.quorum.voters", "")
        voters = parse_voter_ids(told) or (node.id,)
        if set(former) != set(voters):
            more = " or more" if len(former) == VOTERS_MAX else ""
            raise ClusterError(
                f"the cluster in {node.data.parent} keeps its metadata on {node_names(former)}, and with "
                f"{_counted(nodes)} it would keep them on {node_names(voters)}: start it with {_counted(former)}"
                f"{more}, or another one in another folder"
            )


def _counted(of: Sequence[object]) -> str:
    return f"{len(of)} node{'s' if len(of) > 1 else ''}"


def joining_settings(controller: Mapping[str, str]) -> Mapping[str, str]:
    """What a broker is told that joins later, from what one of the controllers was told."""
    return {**{key: controller[key] for key in QUORUM_KEYS}, "process.roles": "broker"}


def _cluster_id(nodes: Sequence[LocalNode]) -> str:
    """The one on the disks, or a new one in Kafka's form."""
    for node in nodes:
        try:
            lines = (node.data / "meta.properties").read_text().splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            if line.startswith("cluster.id="):
                return line.partition("=")[2]
    return new_cluster_id()


def new_cluster_id() -> str:
    """22 letters of the URL's base64: a random UUID of version 4, as Apache Kafka's tools draw it."""
    while True:
        drawn = base64.urlsafe_b64encode(uuid.UUID(bytes=secrets.token_bytes(16), version=4).bytes).decode().rstrip("=")
        # As in Kafka's `Uuid.randomUuid`: a command line would take it for an option.
        if not drawn.startswith("-"):
            return drawn
