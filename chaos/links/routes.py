"""The routes of a cluster behind proxies, and the properties that send every node and every client by its own.

A route is one proxy. It takes the connections of one link to one listener of the link's target:

    client-0 ──▶ proxy ──▶ CLIENT_0 of node 2        clients of slot 0
    node 1   ──▶ proxy ──▶ FROM_1 of node 2          node 1 as a follower, a coordinator, a controller that asks
    node 1   ──▶ proxy ──▶ CONTROLLER of node 2      node 1 as a voter, an observer, a broker that asks its controller

Node 2 advertises for CLIENT_0 and FROM_1 the addresses of these proxies. `inter.broker.listener.name` of node 1 is
FROM_1, of node 2 FROM_2 and so on, and Metadata answers on CLIENT_0 with the addresses of CLIENT_0, so that no address
leads round the proxies. `controller.quorum.voters` names for each node the proxies that are its own. The listener
PLAINTEXT is behind no proxy: it is for programs that look after the cluster, and no node and no client uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from ...local.local_node import HOST
from .link import Link, all_links

DIRECT: Final = "PLAINTEXT"
CONTROLLER: Final = "CONTROLLER"


class Route(Struct, frozen=True, kw_only=True):
    """One proxy: it listens on `port` and connects to `upstream_port`, both of the loopback."""

    link: Link
    listener: Literal["broker", "controller"]
    port: int
    upstream_port: int

    @property
    def name(self) -> str:
        """As toxiproxy knows it; a part of a URL."""
        return f"{self.link.source}-to-{self.link.target}-{self.listener}"


class Routes(Struct, frozen=True):
    """Of nodes with these ids, among them those that join later, and of these slots of clients."""

    node_ids: tuple[int, ...]
    voters: Mapping[int, int]
    """The port on which each controller listens, by its id; empty for a node alone."""
    ports: Mapping[tuple[int, str], int]
    """The port of each listener, by node and name."""
    routes: Mapping[tuple[Link, str], Route]
    """By link and `broker` or `controller`."""

    @classmethod
    def plan(
        cls, node_ids: Sequence[int], voter_ids: Sequence[int], slots: Sequence[str], take_port: Callable[[], int]
    ) -> Routes:
        """`take_port` gives a free port with each call."""
        voters = {voter_id: take_port() for voter_id in voter_ids}
        ends = (*slots, *map(str, node_ids))
        ports = {(node_id, listener_of(end)): take_port() for node_id in node_ids for end in ends}
        routes: dict[tuple[Link, str], Route] = {}
        for link in all_links(map(str, node_ids), slots):
            target = int(link.target)
            upstream_port = ports[target, listener_of(link.source)]
            routes[link, "broker"] = Route(link=link, listener="broker", port=take_port(), upstream_port=upstream_port)
            if target in voters and link.source not in slots:
                routes[link, "controller"] = Route(
                    link=link, listener="controller", port=take_port(), upstream_port=voters[target]
                )
        return cls(tuple(node_ids), voters, ports, routes)

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(link for link, listener in self.routes if listener == "broker")

    def of(self, link: Link) -> tuple[Route, ...]:
        """The routes of one link; none for one that the cluster does not have."""
        found = (self.routes.get((link, "broker")), self.routes.get((link, "controller")))
        return tuple(route for route in found if route is not None)

    def to(self, node_id: int) -> tuple[Route, ...]:
        """Those that end at this node."""
        return tuple(route for route in self.routes.values() if route.link.target == str(node_id))

    def bootstrap(self, slot: str, node_ids: Iterable[int]) -> str:
        """What clients of this slot call `bootstrap.servers`, of these nodes."""
        found = (self.routes[Link(slot, str(node_id)), "broker"] for node_id in node_ids)
        return ",".join(f"{HOST}:{route.port}" for route in found)

    def properties(self, node_id: int, direct_port: int) -> Mapping[str, str]:
        """What makes this node listen for and connect by its routes; `direct_port` is for PLAINTEXT."""
        own = listener_of(str(node_id))
        listeners = {DIRECT: direct_port}
        advertised = {DIRECT: direct_port, own: self.ports[node_id, own]}
        listeners |= {name: port for (owner, name), port in self.ports.items() if owner == node_id}
        for route in self.to(node_id):
            if route.listener == "broker":
                advertised[listener_of(route.link.source)] = route.port
        if node_id in self.voters:
            listeners[CONTROLLER] = self.voters[node_id]
        told = {
            "listeners": _addresses(listeners),
            "advertised.listeners": _addresses(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in {**listeners, CONTROLLER: 0}),
            "inter.broker.listener.name": own,
        }
        if self.voters:
            told["controller.quorum.voters"] = ",".join(
                f"{voter_id}@{HOST}:{self._voter_port(node_id, voter_id)}" for voter_id in self.voters
            )
        return told

    def _voter_port(self, node_id: int, voter_id: int) -> int:
        if node_id == voter_id:
            return self.voters[voter_id]
        return self.routes[Link(str(node_id), str(voter_id)), "controller"].port


def listener_of(source: str) -> str:
    """The name of the listener for connections of this end of a link."""
    return source.upper().replace("-", "_") if not source.isdecimal() else f"FROM_{source}"


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
