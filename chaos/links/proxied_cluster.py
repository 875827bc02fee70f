"""A cluster of real nodes in which every link goes through a proxy of its own.

How nothing goes round the proxies: `routes.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from ...local.errors import ClusterError, NodeFailedError
from ...local.local_node import HOST, LocalNode
from ...local.ports import ReservedPorts
from ...local.quorum_settings import VOTERS_MAX
from .link import CutMode, Link, Stream
from .link_faults import LinkFaults
from .linked_cluster import LinkedCluster
from .routes import Route, Routes
from .toxiproxy import Toxiproxy

_NO_PACKETS: Final = "a proxy passes bytes on, and no packets (links of namespaces lose them)"
PROXIES_LACK: Final[Mapping[str, str]] = {"packet-loss": _NO_PACKETS}
"""Kinds of faults of links that proxies cannot have, and why."""


class ProxiedCluster(LinkedCluster):
    """A `LinkedCluster` on the loopback. Needs toxiproxy."""

    @property
    def proxy_pid(self) -> int | None:
        """The process that everything goes through."""
        return self._proxies.pid

    def routes_of(self, link: Link) -> tuple[Route, ...]:
        """The proxies of one link."""
        return self._routes.of(link)

    def bootstrap(self, slot: str | int = 0) -> str:
        return self._routes.bootstrap(self._slot(slot), self.nodes)

    def addresses(self, link: Link) -> tuple[tuple[str, int], ...]:
        """Of its proxies."""
        routes = self._routes.of(link)
        if not routes:
            raise self._no_link(link)
        return tuple((HOST, route.port) for route in routes)

    # Links.

    def lacks(self) -> Mapping[str, str]:
        return PROXIES_LACK

    def is_cut(self, link: Link) -> bool:
        return self._links.is_cut(link)

    def cut(self, links: Iterable[Link], mode: CutMode = "silence", stream: Stream = "both") -> None:
        """As `LinkFaults.cut`."""
        with self._turn:
            self._links.cut(links, mode, stream)

    def slow(self, links: Iterable[Link], latency_ms: int, jitter_ms: int = 0) -> None:
        """As `LinkFaults.slow`."""
        with self._turn:
            self._links.slow(links, latency_ms, jitter_ms)

    def limit(self, links: Iterable[Link], kilobytes_s: int) -> None:
        """As `LinkFaults.limit`."""
        with self._turn:
            self._links.limit(links, kilobytes_s)

    def lose(self, links: Iterable[Link], percent: int) -> None:
        """Raises ClusterError."""
        raise ClusterError(f"{percent}% of the packets of {', '.join(map(str, links))} cannot be lost: {_NO_PACKETS}")

    def lost_packets(self, links: Iterable[Link]) -> Mapping[Link, int]:
        return dict.fromkeys(links, 0)

    def end_after(self, links: Iterable[Link], size_bytes: int) -> None:
        """As `LinkFaults.end_after`."""
        with self._turn:
            self._links.end_after(links, size_bytes)

    def reset(self, links: Iterable[Link]) -> None:
        """As `LinkFaults.reset`."""
        with self._turn:
            self._links.reset(links)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """As `LinkFaults.heal`: all links when none are given."""
        with self._turn:
            self._links.heal(links)

    # Nodes.

    def kill(self, node_id: int) -> None:
        """SIGKILL. The node's ports refuse from then on, as they do without proxies."""
        with self._turn:
            # It does nothing from here on. A controller that sees its connections end dials at once, and a proxy that
            # still accepted for it would pass for a process that lives.
            with suppress(NodeFailedError):
                self.cluster.pause_node(node_id)
            try:
                self._on_node_down(node_id)
            finally:
                self.cluster.kill_node(node_id)

    def _plan(self) -> None:
        self._ports = ReservedPorts()
        take_port = partial(self._ports.take, random.Random())
        try:
            for node in self.cluster.nodes.values():
                node.port, node.admin_port = take_port(), take_port()
            voter_ids = range(1, min(len(self.nodes), VOTERS_MAX) + 1) if len(self.nodes) > 1 else ()
            self._routes = Routes.plan(self._node_ids, voter_ids, self.slots, take_port)
            self._proxies = Toxiproxy(take_port(), self.cluster.folder / "toxiproxy.log")
        except BaseException:
            self._ports.close()
            raise
        self._links = LinkFaults(self._routes, self._proxies)

    def _start(self) -> None:
        self._proxies.begin_start()
        self._stack.callback(self._proxies.stop)
        with ThreadPoolExecutor(1, thread_name_prefix="proxies") as pool:
            # Nodes take longer, and look for each other again and again until the proxies are there.
            proxies = pool.submit(self._proxies.populate, self._routes.routes.values())
            try:
                self.cluster.start()
                self._stack.callback(self.cluster.stop)
            except ClusterError:
                # Without proxies no node gets ready: then theirs is the sentence that says why.
                proxies.result()
                raise
            proxies.result()

    def _close(self) -> None:
        try:
            super()._close()
        finally:
            self._ports.close()

    def _on_node_down(self, node_id: int) -> None:
        self._links.on_node_down(node_id)

    def _on_node_up(self, node_id: int) -> None:
        self._links.on_node_up(node_id)

    def _rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        return {**super()._rewire(node, told), **self._routes.properties(node.id, node.port)}
