"""What nodes of one machine must not share: ids, addresses, folders. Asked before the first of them is started."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...protocol.errors import ConfigError
from ...protocol.ids import NodeId
from .admin_listeners import ADMIN_ADVERTISED_LISTENERS, ADMIN_LISTENERS, AdminListener
from .listener_config import ListenerConfig
from .node_config import NodeConfig

_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})


class _Address(Struct, frozen=True):
    """Of one node, by one of its properties."""

    key: str
    node_id: NodeId
    listener: ListenerConfig | AdminListener


def check_distinct(nodes: Sequence[NodeConfig]) -> None:
    """Raises ConfigError, which names the key, for the first thing that two of them have in common."""
    if len(nodes) == 1:
        return
    _check_ids(nodes)
    if not all(node.properties.get("controller.quorum.voters", "").strip() for node in nodes):
        raise ConfigError(
            f"controller.quorum.voters must be set for {len(nodes)} nodes: without it each is a cluster of its own."
        )
    _check_addresses([address for node in nodes for address in _bound(node)])
    _check_addresses([address for node in nodes for address in _advertised(node)])
    _check_directories(nodes)


def _check_ids(nodes: Sequence[NodeConfig]) -> None:
    seen: set[NodeId] = set()
    for node in nodes:
        if node.node_id in seen:
            raise ConfigError(
                f"node.id is {node.node_id} for more than one node of this machine. "
                f"Set node.id=${{core:{node.node_id}}}: it counts from there."
            )
        seen.add(node.node_id)


def _bound(node: NodeConfig) -> Iterator[_Address]:
    for listener in node.bound_listeners:
        yield _Address("listeners", node.node_id, listener)
    for admin in node.admin_listeners:
        yield _Address(ADMIN_LISTENERS, node.node_id, admin)


def _advertised(node: NodeConfig) -> Iterator[_Address]:
    for listener in node.advertised_listeners:
        yield _Address("advertised.listeners", node.node_id, listener)
    for admin in node.admin_advertised_listeners:
        yield _Address(ADMIN_ADVERTISED_LISTENERS, node.node_id, admin)


def _check_addresses(addresses: Sequence[_Address]) -> None:
    by_port: dict[int, list[_Address]] = {}
    for address in addresses:
        port = address.listener.port
        if not port:
            # One that the system chooses.
            continue
        for other in by_port.setdefault(port, []):
            if other.node_id != address.node_id and _overlap(other.listener.host, address.listener.host):
                raise ConfigError(
                    f"{address.key} gives nodes {other.node_id} and {address.node_id} one address, "
                    f"{address.listener}{'' if other.key == address.key else f' ({other.key})'}. "
                    f"Set the port to ${{core:{port}}}: it counts from there."
                )
        by_port[port].append(address)


def _overlap(one: str, other: str) -> bool:
    return one.lower() == other.lower() or one in _EVERY_INTERFACE or other in _EVERY_INTERFACE


def _check_directories(nodes: Sequence[NodeConfig]) -> None:
    owners: dict[tuple[str, ...], NodeId] = {}
    for node in nodes:
        key = "log.dirs" if "log.dirs" in node.properties else "log.dir"
        for name, path in (*((key, path) for path in node.log_dirs), ("metadata.log.dir", node.metadata_log_dir)):
            # The first: whether the path is absolute.
            parts = (path[:1], *(part for part in path.split("/") if part not in ("", ".")))
            owner = owners.setdefault(parts, node.node_id)
            if owner != node.node_id:
                raise ConfigError(
                    f"{name} gives nodes {owner} and {node.node_id} one folder, {path}. Write ${{core:…}} into the "
                    f"path, as {name}={path.rstrip('/')}/${{core:{owner}}}."
                )
