"""The properties that make one cluster of several local nodes."""

import random
import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from .local_node import HOST, LocalNode
from .ports import find_free

CONTROLLER: Final = "CONTROLLER"
# What is decided here, and so cannot be set for a cluster of several nodes.
QUORUM_KEYS: Final = frozenset(
    {"process.roles", "controller.listener.names", "controller.quorum.voters", "cluster.secret"}
)


def quorum_settings(nodes: Sequence[LocalNode], generator: random.Random) -> Mapping[int, Mapping[str, str]]:
    """What each node is told of the others, by its id: the first is the controller, the others follow it.

    Nothing for a node alone. Raises PortInUseError when there is no port for the controller.
    """
    if len(nodes) == 1:
        return {}
    controller, *_ = nodes
    port = find_free(generator)
    shared = {
        "controller.quorum.voters": f"{controller.id}@{HOST}:{port}",
        "controller.listener.names": CONTROLLER,
        "cluster.secret": secrets.token_hex(),
    }
    settings = {node.id: {**shared, "process.roles": "broker"} for node in nodes}
    settings[controller.id] |= {
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{HOST}:{controller.port},{CONTROLLER}://{HOST}:{port}",
    }
    return settings
