"""A cluster of real nodes in which every link goes through a proxy of its own, so that each can be broken alone.

Links are those between nodes and those of clients, which come in slots: clients of one slot share its links, and a
client of each slot is enough to cut one of them off from a leader that the others reach. How nothing goes round the
proxies: `routes.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

from ...local.cluster import START_TIMEOUT_S, STOP_TIMEOUT_S, LocalCluster
from ...local.errors import ClusterError, NodeFailedError
from ...local.local_node import HOST, LocalNode
from ...local.node_watch import NodeEnd, NodeWatch
from ...local.quorum_settings import VOTERS_MAX
from ..faults.node_faults import NodeFaults
from ..faults.orders import Orders
from .canary import TIMEOUT_S, round_trips_ms
from .cluster_view import controller_of, leader_of
from .link import CutMode, Link, Stream, client_slot
from .link_faults import LinkFaults
from .reserved_ports import ReservedPorts
from .routes import Route, Routes
from .toxiproxy import Toxiproxy


class ProxiedCluster:
    """Nodes 1 to N in `folder`, started by `with`; more can join later, up to `spare_nodes` of them.

    Faults of links and of nodes may come from one thread while others use the cluster; two such threads wait for each
    other. Every method returns once it is done. Nodes and proxies end when this program does, by SIGKILL too.
    """

    def __init__(
        self,
        folder: Path,
        *,
        node_count: int = 3,
        client_slots: int = 1,
        spare_nodes: int = 0,
        properties: Mapping[str, str] | None = None,
        properties_of: Callable[[LocalNode], Mapping[str, str]] | None = None,
        obeys_orders: bool = False,
        seed: int = 0,
    ) -> None:
        """Nothing is started yet. `properties` and `properties_of` as of `LocalCluster`.

        With `obeys_orders`, the disk and the clock of every node obey `order`; such nodes start a little later.
        Raises ClusterError, PortInUseError.
        """
        if client_slots < 1:
            raise ClusterError(f"a cluster behind proxies has at least one slot of clients, not {client_slots}")
        self._ports = ReservedPorts(random.Random())
        self._turn = RLock()
        self.obeys_orders = obeys_orders
        self.spare_node_count = spare_nodes
        self._seed = seed
        self._faults: dict[int, NodeFaults] = {}
        self._stack = ExitStack()
        try:
            self.cluster = LocalCluster(
                folder,
                node_count=node_count,
                properties=properties,
                properties_of=properties_of,
                rewire=self._rewire,
                ends_with_parent=True,
            )
            for node in self.cluster.nodes.values():
                node.port, node.admin_port = self._ports.take(), self._ports.take()
            self.slots = tuple(map(client_slot, range(client_slots)))
            node_ids = range(1, node_count + spare_nodes + 1)
            voter_ids = range(1, min(node_count, VOTERS_MAX) + 1) if node_count > 1 else ()
            self._routes = Routes.plan(node_ids, voter_ids, self.slots, self._ports.take)
            self._proxies = Toxiproxy(self._ports.take(), self.cluster.folder / "toxiproxy.log")
        except BaseException:
            self._ports.close()
            raise
        self._links = LinkFaults(self._routes, self._proxies)
        # A copy: others may let nodes join and leave meanwhile.
        self._watch = NodeWatch(lambda: tuple(self.nodes.values()), on_end=self._refuse_for)

    # What there is.

    @property
    def nodes(self) -> Mapping[int, LocalNode]:
        return self.cluster.nodes

    @property
    def links(self) -> tuple[Link, ...]:
        """Of the nodes that are part of the cluster now."""
        there = {*self.slots, *map(str, self.nodes)}
        return tuple(link for link in self._routes.links if there.issuperset(link))

    @property
    def proxy_pid(self) -> int | None:
        """The process that everything goes through."""
        return self._proxies.pid

    def routes_of(self, link: Link) -> tuple[Route, ...]:
        """The proxies of one link."""
        return self._routes.of(link)

    def bootstrap(self, slot: str | int = 0) -> str:
        """`bootstrap.servers` for clients of this slot, as `client-0` or 0."""
        return self._routes.bootstrap(self._slot(slot), self.nodes)

    def admin(self, node_id: int) -> str:
        """Where the HTTP administration of a node is; no fault of a link concerns it."""
        found = self.nodes[node_id].admin
        assert found is not None, "every node of a cluster behind proxies has one"
        return found

    def state(self, node_id: int) -> str:
        """`up`, `paused` or `down`."""
        node = self.nodes[node_id]
        return "down" if not node.is_running else "paused" if node.is_paused else "up"

    @property
    def ends(self) -> tuple[NodeEnd, ...]:
        """Of nodes that ended by themselves since all were up. Their ports refuse from then on."""
        return self._watch.ends

    def controller(self) -> int | None:
        """The active controller, as the nodes that run say."""
        return controller_of({node_id: self.admin(node_id) for node_id in self._answering()})

    def leader(self, topic: str, partition: int) -> int | None:
        """Who leads the partition, as the nodes that run say; None while there is no leader."""
        nodes = [self.nodes[node_id] for node_id in self._answering()]
        return leader_of([(node.host, node.port) for node in nodes], topic, partition)

    # Links.

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

    def canary(self, link: Link, *, timeout_s: float = TIMEOUT_S) -> bool:
        """Whether a request through each proxy of this link is answered; while it is cut, through any of them.

        So False shows that a cut holds, and True that a link works. A target that is down or paused answers nothing.
        """
        answers = [trip is not None for trip in self.round_trips_ms(link, timeout_s=timeout_s)]
        return any(answers) if self._links.is_cut(link) else all(answers)

    def round_trips_ms(self, link: Link, *, timeout_s: float = TIMEOUT_S) -> tuple[float | None, ...]:
        """How long connecting and one request took, for each proxy of this link; None: no answer in that time."""
        routes = self._routes.of(link)
        if not routes:
            raise ClusterError(f"this cluster has no link {link}")
        return round_trips_ms(tuple((HOST, route.port) for route in routes), timeout_s=timeout_s)

    # Nodes.

    def kill(self, node_id: int) -> None:
        """SIGKILL. The node's ports refuse from then on, as they do without proxies."""
        with self._turn:
            # It does nothing from here on. A controller that sees its connections end dials at once, and a proxy that
            # still accepted for it would pass for a process that lives.
            with suppress(NodeFailedError):
                self.cluster.pause_node(node_id)
            try:
                self._links.on_node_down(node_id)
            finally:
                self.cluster.kill_node(node_id)

    def stop(self, node_id: int, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM, and waits until the node has ended."""
        with self._turn:
            try:
                self.cluster.stop_node(node_id, timeout_s=timeout_s)
            finally:
                # One that did not stop in time was killed.
                if not self.nodes[node_id].is_running:
                    self._links.on_node_down(node_id)

    def start(self, node_id: int, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts a node that is down, and waits until it serves clients."""
        with self._turn:
            self._watch.look()
            self._links.on_node_up(node_id)
            self.cluster.start_node(node_id, timeout_s=timeout_s)

    def begin_start(self, node_id: int) -> None:
        """As `start`, and returns at once: while links are cut a node may not get to serve clients."""
        with self._turn:
            self._watch.look()
            self._links.on_node_up(node_id)
            self.cluster.begin_start(node_id)

    def restart(self, node_id: int, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """SIGTERM and a start."""
        with self._turn:
            self.stop(node_id)
            self.start(node_id, timeout_s=timeout_s)

    def pause(self, node_id: int) -> None:
        """SIGSTOP."""
        with self._turn:
            self.cluster.pause_node(node_id)

    def resume(self, node_id: int) -> None:
        with self._turn:
            self.cluster.resume_node(node_id)

    def order(self, node_id: int, orders: Orders) -> None:
        """From now on this is wrong with the node's disk and clock; `Orders()` heals. Raises ClusterError."""
        with self._turn:
            self.node_faults(node_id).order(*orders.disk, clock_offset_ms=orders.clock_offset_ms)

    def node_faults(self, node_id: int) -> NodeFaults:
        """The faults of one node's disk and clock. Raises ClusterError when nodes do not obey orders."""
        if node_id not in self._faults:
            raise ClusterError(f"node {node_id} was not started to obey orders: ProxiedCluster(obeys_orders=True)")
        return self._faults[node_id]

    def join(self, *, timeout_s: float = START_TIMEOUT_S) -> int:
        """Starts one more broker and returns its id. Raises ClusterError when no spare node is left."""
        with self._turn:
            node_id = max(self.nodes) + 1
            if node_id not in self._routes.node_ids:
                raise ClusterError(
                    f"no links were planned for a node {node_id}: `spare_nodes` says how many nodes may join later"
                )
            # One of this id may have been here before, and left.
            self._links.on_node_up(node_id)
            self._faults.pop(node_id, None)
            return self.cluster.add_node(timeout_s=timeout_s).id

    def __enter__(self) -> Self:
        try:
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
            self._stack.enter_context(self._watch)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        try:
            self._stack.close()
        finally:
            self._ports.close()

    def _refuse_for(self, node_id: int) -> None:
        with self._turn:
            node = self.nodes.get(node_id)
            # It may have been started again while this waited for its turn.
            if node is not None and not node.is_running:
                self._links.on_node_down(node_id)

    def _rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        if self.obeys_orders and node.id not in self._faults:
            self._faults[node.id] = NodeFaults(node, seed=self._seed)
        return {**told, **self._routes.properties(node.id, node.port)}

    def _answering(self) -> list[int]:
        return [node_id for node_id in self.nodes if self.state(node_id) == "up"]

    def _slot(self, slot: str | int) -> str:
        name = client_slot(slot) if isinstance(slot, int) else slot
        if name not in self.slots:
            raise ClusterError(f"there is no slot {name} of clients: there are {', '.join(self.slots)}")
        return name
