"""A cluster of real nodes each of whose links can be broken alone: all of it that does not depend on what breaks them.

Links are those between nodes and those of clients, which come in slots: clients of one slot share its links, and a
client of each slot is enough to cut one of them off from a leader that the others reach.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

from ...local.cluster import START_TIMEOUT_S, STOP_TIMEOUT_S, LocalCluster
from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ...local.node_watch import NodeEnd, NodeWatch
from ..faults.node_faults import NodeFaults
from ..faults.orders import Orders
from .canary import TIMEOUT_S, round_trips_ms
from .cluster_view import controller_of, leader_of
from .link import CutMode, Link, Stream, all_links, client_slot


class LinkedCluster(ABC):
    """Nodes 1 to N in `folder`, started by `with`; more can join later, up to `spare_nodes` of them.

    Faults of links and of nodes may come from one thread while others use the cluster; two such threads wait for each
    other. Every method returns once it is done. Nodes, and what breaks their links, end when this program does, by
    SIGKILL too.
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
            raise ClusterError(f"a cluster whose links break has at least one slot of clients, not {client_slots}")
        self.obeys_orders = obeys_orders
        self.spare_node_count = spare_nodes
        self.slots = tuple(map(client_slot, range(client_slots)))
        self._node_ids = range(1, node_count + spare_nodes + 1)
        """Those that join later, too."""
        self._turn = RLock()
        self._stack = ExitStack()
        self._seed = seed
        self._faults: dict[int, NodeFaults] = {}
        self.cluster = LocalCluster(
            folder,
            node_count=node_count,
            properties=properties,
            properties_of=properties_of,
            hosts=self._hosts(),
            rewire=self._rewire,
            ends_with_parent=True,
        )
        # A copy: others may let nodes join and leave meanwhile.
        self._watch = NodeWatch(lambda: tuple(self.nodes.values()), on_end=self._refuse_for)
        self._plan()

    # What there is.

    @property
    def nodes(self) -> Mapping[int, LocalNode]:
        return self.cluster.nodes

    @property
    def links(self) -> tuple[Link, ...]:
        """Of the nodes that are part of the cluster now."""
        return all_links(map(str, self.nodes), self.slots)

    @abstractmethod
    def bootstrap(self, slot: str | int = 0) -> str:
        """`bootstrap.servers` for clients of this slot, as `client-0` or 0."""

    def command(self, slot: str | int = 0) -> Sequence[str]:
        """What stands in front of the command of a client of this slot."""
        self._slot(slot)
        return ()

    def joined(self, end: str | None = None) -> AbstractContextManager[None]:  # noqa: ARG002 - there is one network
        """The calling thread, and those that it starts, are where this end of links is, or where all nodes are reached
        over links that nothing breaks."""
        return nullcontext()

    @abstractmethod
    def addresses(self, link: Link) -> tuple[tuple[str, int], ...]:
        """Where the source of a link connects to, for each listener of the target. Raises ClusterError."""

    def admin(self, node_id: int) -> str:
        """Where the HTTP administration of a node is; no fault of a link concerns it."""
        found = self.nodes[node_id].admin
        assert found is not None, "every node of a cluster whose links break has one"
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
        with self.joined():
            return controller_of({node_id: self.admin(node_id) for node_id in self._answering()})

    def leader(self, topic: str, partition: int) -> int | None:
        """Who leads the partition, as the nodes that run say; None while there is no leader."""
        nodes = [self.nodes[node_id] for node_id in self._answering()]
        with self.joined():
            return leader_of([(node.host, node.port) for node in nodes], topic, partition)

    # Links.

    @abstractmethod
    def lacks(self) -> Mapping[str, str]:
        """The kinds of faults of links that this cluster cannot have, and why."""

    @abstractmethod
    def is_cut(self, link: Link) -> bool: ...
    @abstractmethod
    def cut(self, links: Iterable[Link], mode: CutMode = "silence", stream: Stream = "both") -> None:
        """Nothing comes through these links any more; what was wrong with them before is replaced."""

    @abstractmethod
    def slow(self, links: Iterable[Link], latency_ms: int, jitter_ms: int = 0) -> None:
        """What is sent takes so much longer, in both directions: a round trip twice as much."""

    @abstractmethod
    def limit(self, links: Iterable[Link], kilobytes_s: int) -> None:
        """Each direction carries no more than that."""

    @abstractmethod
    def lose(self, links: Iterable[Link], percent: int) -> None:
        """So many of a hundred packets are lost, in both directions."""

    @abstractmethod
    def lost_packets(self, links: Iterable[Link]) -> Mapping[Link, int]:
        """How many were lost on each since `lose`."""

    @abstractmethod
    def reset(self, links: Iterable[Link]) -> None:
        """Closes all connections at once; new ones are made as before."""

    @abstractmethod
    def heal(self, links: Iterable[Link] | None = None) -> None:
        """These links, or all, are as at the beginning."""

    def canary(self, link: Link, *, timeout_s: float = TIMEOUT_S) -> bool:
        """Whether a request to each listener of this link's target is answered; while it is cut, to any of them.

        So False shows that a cut holds, and True that a link works. A target that is down or paused answers nothing.
        """
        answers = [trip is not None for trip in self.round_trips_ms([link], timeout_s=timeout_s)[link]]
        return any(answers) if self.is_cut(link) else all(answers)

    def round_trips_ms(
        self, links: Iterable[Link], *, timeout_s: float = TIMEOUT_S
    ) -> Mapping[Link, tuple[float | None, ...]]:
        """How long connecting and one request took, for each address of each link, all asked at the same time from
        where the source of the link is; None: no answer in that time."""
        asked: dict[str | None, list[tuple[Link, tuple[str, int]]]] = {}
        for link in links:
            asked.setdefault(self._asked_from(link), []).extend((link, one) for one in self.addresses(link))
        if not asked:
            return {}

        def ask(source: str | None) -> list[tuple[Link, float | None]]:
            told = asked[source]
            with self.joined(source):
                trips = round_trips_ms(tuple(address for _, address in told), timeout_s=timeout_s)
            return [(link, trip) for (link, _), trip in zip(told, trips, strict=True)]

        trips: dict[Link, tuple[float | None, ...]] = {}
        # A thread is in one network at a time.
        with ThreadPoolExecutor(len(asked), thread_name_prefix="canary") as pool:
            for answers in pool.map(ask, asked):
                for link, trip in answers:
                    trips[link] = (*trips.get(link, ()), trip)
        return trips

    def dial(self, link: Link, *, timeout_s: float = TIMEOUT_S) -> socket.socket:
        """A connection on this link. Raises OSError."""
        with self.joined(self._asked_from(link)):
            return socket.create_connection(self.addresses(link)[0], timeout=timeout_s)

    # Nodes.

    def kill(self, node_id: int) -> None:
        """SIGKILL. The node's ports refuse from then on."""
        with self._turn:
            self.cluster.kill_node(node_id)

    def stop(self, node_id: int, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM, and waits until the node has ended."""
        with self._turn:
            try:
                self.cluster.stop_node(node_id, timeout_s=timeout_s)
            finally:
                # One that did not stop in time was killed.
                if not self.nodes[node_id].is_running:
                    self._on_node_down(node_id)

    def start(self, node_id: int, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts a node that is down, and waits until it serves clients."""
        with self._turn, self.joined():
            self._watch.look()
            self._on_node_up(node_id)
            self.cluster.start_node(node_id, timeout_s=timeout_s)

    def begin_start(self, node_id: int) -> None:
        """As `start`, and returns at once: while links are cut a node may not get to serve clients."""
        with self._turn:
            self._watch.look()
            self._on_node_up(node_id)
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
            raise ClusterError(f"node {node_id} was not started to obey orders: it takes obeys_orders=True")
        return self._faults[node_id]

    def join(self, *, timeout_s: float = START_TIMEOUT_S) -> int:
        """Starts one more broker and returns its id. Raises ClusterError when no spare node is left."""
        with self._turn, self.joined():
            node_id = max(self.nodes) + 1
            if node_id not in self._node_ids:
                raise ClusterError(
                    f"no links were planned for a node {node_id}: `spare_nodes` says how many nodes may join later"
                )
            # One of this id may have been here before, and left.
            self._on_node_up(node_id)
            self._faults.pop(node_id, None)
            return self.cluster.add_node(timeout_s=timeout_s).id

    def __enter__(self) -> Self:
        try:
            self._start()
            self._stack.enter_context(self._watch)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    # What differs by what breaks the links.

    def _hosts(self) -> Mapping[int, str]:
        """Addresses of nodes by id, where they do not listen on the loopback."""
        return {}

    @abstractmethod
    def _plan(self) -> None:
        """What there is before anything is started."""

    @abstractmethod
    def _start(self) -> None:
        """Starts the nodes, and what breaks their links; `_stack` ends both."""

    def _close(self) -> None:
        self._stack.close()

    def _asked_from(self, link: Link) -> str | None:  # noqa: ARG002 - there is one network
        """The end in whose network the source of a link is; None: there is one network for all."""
        return None

    def _on_node_down(self, node_id: int) -> None:  # noqa: B027
        """The process has ended."""

    def _on_node_up(self, node_id: int) -> None:  # noqa: B027
        """The process is about to be started."""

    def _refuse_for(self, node_id: int) -> None:
        with self._turn:
            node = self.nodes.get(node_id)
            # It may have been started again while this waited for its turn.
            if node is not None and not node.is_running:
                self._on_node_down(node_id)

    def _rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        """Before a node is started for the first time: what it is told, in place of `told`."""
        if self.obeys_orders and node.id not in self._faults:
            self._faults[node.id] = NodeFaults(node, seed=self._seed)
        return told

    def _answering(self) -> list[int]:
        return [node_id for node_id in self.nodes if self.state(node_id) == "up"]

    def _slot(self, slot: str | int) -> str:
        name = client_slot(slot) if isinstance(slot, int) else slot
        if name not in self.slots:
            raise ClusterError(f"there is no slot {name} of clients: there are {', '.join(self.slots)}")
        return name

    def _no_link(self, link: Link) -> ClusterError:
        return ClusterError(f"this cluster has no link {link}: there are {', '.join(map(str, self.links))}")
