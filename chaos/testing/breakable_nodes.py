"""The faults of a test's cluster, and their end: of processes, disks, clocks, links and requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final

from ...client import clock
from ...local.errors import ClusterError
from ...local.readiness import wait_ready
from ..faults.orders import DiskFault, DiskOperation, full_disk
from ..faults.request_faults import Point, Sender
from ..links.link import CutMode, Link, Stream
from .held_fault import HeldFault
from .link_orders import End, LinkOrders, between, matching
from .nodes import MISSING_LINKS
from .plain_nodes import PlainNodes
from .request_orders import Barrier, RequestOrders
from .timeline import Timeline
from .topic_states import Address, TopicStates

if TYPE_CHECKING:
    # Only where toxiproxy's driver is installed.
    from .proxied_nodes import ProxiedNodes

WAIT_S: Final = 60.0
"""How long a wait lasts at most: what a test waits for takes seconds, and more only on a machine that is too busy."""


class BreakableNodes:
    """`nodes` with what is wrong with them. `faults` are those of requests, whose records go to `folder`."""

    def __init__(self, nodes: PlainNodes | ProxiedNodes, folder: Path) -> None:
        self._nodes = nodes
        self._turn = RLock()
        self._states = TopicStates()
        self.timeline = Timeline()
        self.faults = RequestOrders(
            lambda: [self._nodes.node_faults(node_id) for node_id in self.nodes],
            folder,
            topic_id=lambda topic: self._states.latest(self._answering(), topic).topic_id,
            note=self.timeline.note,
            turn=self._turn,
        )
        self._links = LinkOrders(lambda links: self._proxied().heal(links))
        self._held: list[HeldFault] = []
        self._down: list[HeldFault] = []
        self._disks: dict[int, list[tuple[tuple[DiskFault, ...], int]]] = {node_id: [] for node_id in self.nodes}

    @property
    def nodes(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(self._nodes.nodes)

    def state(self, node: int) -> str:
        """`up`, `paused` or `down`."""
        return self._nodes.state(self._known(node))

    # Faults of nodes.

    def kill(self, node: int) -> HeldFault:
        """SIGKILL; healed, the node is started again."""
        with self._turn:
            self._nodes.kill(self._known(node))
            return self._hold_down(f"node {node} killed", (node,))

    def stop(self, node: int) -> HeldFault:
        """SIGTERM, in good order; healed, the node is started again."""
        with self._turn:
            self._nodes.stop(self._known(node))
            return self._hold_down(f"node {node} stopped", (node,))

    def restart(self, node: int) -> None:
        """SIGTERM and a start; returns once the node serves clients."""
        self.stop(node).heal()

    def pause(self, node: int) -> HeldFault:
        """SIGSTOP: connections stand, and nothing is answered. Healed, the node goes on."""
        with self._turn:
            self._nodes.pause(self._known(node))
            # A signal takes effect a moment after it was sent.
            self._wait(lambda: self.state(node) != "up", f"node {node} stands still")
            return self._hold(f"node {node} paused", lambda: self._resume(node))

    def resume(self, node: int) -> None:
        """Ends a pause."""
        self._resume(self._known(node))

    def power_loss(self, *nodes: int) -> HeldFault:
        """The nodes are killed and lose what they have not synced; healed, they are started again.

        What Kafka and Penstock promise of it: records are safe on `min.insync.replicas` - 1 losses at a time, or with
        `flush.messages=1`.
        """
        if not nodes:
            raise ClusterError("a power loss is one of a node or of several: expected power_loss(1)")
        with self._turn:
            for node in [self._known(node) for node in nodes]:
                self._nodes.kill(node)
            dropped = 0
            for node in nodes:
                dropped += sum(self._nodes.node_faults(node).drop_unsynced().values())
            names = ", ".join(f"node {node}" for node in nodes)
            return self._hold_down(f"{names} without power, {dropped} bytes lost", nodes)

    def fill_disk(self, node: int, *, path: str = "*") -> HeldFault:
        """No room for anything more in files that match `path`."""
        return self._order_disk(node, full_disk(path), 0, f"disk of node {node} full for {path}")

    def fail_disk(
        self,
        node: int,
        operation: DiskOperation = "write",
        *,
        error: str | None = "EIO",
        delay_ms: int = 0,
        path: str = "*",
        count: int | None = None,
    ) -> HeldFault:
        """Calls of the disk fail with the error of that name, or only wait where it is None. Healed, a node that ended
        for it is started again."""
        fault = DiskFault(operation=operation, path=path, error=error, delay_ms=delay_ms, count=count)
        slow = f" after {delay_ms} ms" if delay_ms else ""
        return self._order_disk(node, (fault,), 0, f"{operation} on node {node} → {error or 'done'}{slow} for {path}")

    def shift_clock(self, node: int, offset_ms: int) -> HeldFault:
        """The wall clock of a node is that far from the machine's."""
        return self._order_disk(node, (), offset_ms, f"clock of node {node} shifted by {offset_ms} ms")

    # Faults of links. An end is a node's id, or `"client-0"`: the clients of slot 0. `mode` says how a cut looks:
    # `silence`, nothing comes through and connections stand; `reset`, they are reset; `refusal`, new ones are refused.
    # `stream` can take away `requests` or `responses` alone.

    def partition(self, *groups: Iterable[End], mode: CutMode = "silence", stream: Stream = "both") -> HeldFault:
        """Nothing comes from one group to another: `partition([1], [2, 3])`, `partition(["client-0"], [1])`.

        An end of no group keeps all of its links. Raises ClusterError.
        """
        nodes = self._proxied()
        names = " | ".join(",".join(map(str, group)) for group in groups)
        return self._break_links(
            between(groups, nodes.links),
            f"partition {names} by {mode}{_of(stream)}",
            lambda links: nodes.cut(links, mode, stream),
        )

    def isolate(self, node: int, *, clients: bool = True, mode: CutMode = "silence") -> HeldFault:
        """A node and all others reach each other no more; with `clients=False` clients still reach it."""
        others: list[End] = [one for one in self.nodes if one != self._known(node)]
        return self.partition([node], [*others, *(self._proxied().slots if clients else ())], mode=mode)

    def cut_link(
        self,
        source: End | None = None,
        target: End | None = None,
        *,
        mode: CutMode = "silence",
        stream: Stream = "both",
    ) -> HeldFault:
        """Nothing comes through on the connections that `source` opens to `target`; those that `target` opens to
        `source` stay: a partition in one direction. None is every end."""
        nodes = self._proxied()
        return self._break_links(
            matching(source, target, nodes.links),
            f"{_way(source, target)} cut by {mode}{_of(stream)}",
            lambda links: nodes.cut(links, mode, stream),
        )

    def slow_link(
        self, source: End | None = None, target: End | None = None, *, latency_ms: int, jitter_ms: int = 0
    ) -> HeldFault:
        """Each message on these links takes so much longer, in both directions; None is every end."""
        nodes = self._proxied()
        return self._break_links(
            matching(source, target, nodes.links),
            f"{_way(source, target)} slower by {latency_ms} ms",
            lambda links: nodes.slow(links, latency_ms, jitter_ms),
        )

    def limit_link(self, source: End | None = None, target: End | None = None, *, kilobytes_s: int) -> HeldFault:
        """Each connection on these links carries no more than that in each direction."""
        nodes = self._proxied()
        return self._break_links(
            matching(source, target, nodes.links),
            f"{_way(source, target)} limited to {kilobytes_s} kB/s",
            lambda links: nodes.limit(links, kilobytes_s),
        )

    def reset_connections(self, source: End | None = None, target: End | None = None) -> None:
        """Closes all connections of these links, at once; new ones are made as before."""
        nodes = self._proxied()
        with self._turn:
            nodes.reset(matching(source, target, nodes.links))
            self.timeline.note(f"connections {_way(source, target)} reset")

    def reaches(self, source: End, target: End) -> bool:
        """Whether a request is answered on this link: what shows that a fault holds, or is over."""
        nodes = self._proxied()
        return all(nodes.canary(link) for link in matching(source, target, nodes.links))

    # Faults of requests: more in `faults`.

    def barrier(
        self,
        api: str,
        *,
        at: Point = "before-ack",
        n: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        sender: Sender = "client",
    ) -> Barrier:
        """Requests, `n` of them or all, wait at the point until `release` or the end of the `with`."""
        return self.faults.barrier(api, at=at, n=n, topic=topic, client_id=client_id, sender=sender)

    # All.

    def heal(self) -> None:
        """Ends every fault, starts what is down, and waits until all nodes know each other."""
        with self._turn:
            self.faults.heal()
            for held in reversed(self._held):
                held.heal()
            # All nodes that are down begin before one of them is waited for: it may need the others.
            for held in self._down:
                held.holds = False
                self.timeline.note(f"ends: {held.what}")
            self._held.clear()
            self._down.clear()
            for node in self.nodes:
                if self.state(node) == "paused":
                    self._resume(node)
            self._start([node for node in self.nodes if self.state(node) == "down"])
            self._nodes.cluster.wait_ready()

    def _proxied(self) -> ProxiedNodes:
        if isinstance(self._nodes, PlainNodes):
            raise ClusterError(f"links cannot be broken here: {MISSING_LINKS}")
        return self._nodes

    def _break_links(self, links: tuple[Link, ...], what: str, apply: Callable[[Iterable[Link]], None]) -> HeldFault:
        with self._turn:
            return self._hold(what, self._links.begin(links, apply))

    def _known(self, node: int) -> int:
        if node not in self._nodes.nodes:
            raise ClusterError(f"there is no node {node}: expected one of {', '.join(map(str, self.nodes))}")
        return node

    def _answering(self) -> dict[int, Address]:
        return {
            node_id: (node.host, node.port)
            for node_id, node in self._nodes.nodes.items()
            if self._nodes.state(node_id) == "up"
        }

    def _hold(self, what: str, heal: Callable[[], None]) -> HeldFault:
        held = self._held_fault(what, heal, self._held)
        self._held.append(held)
        return held

    def _hold_down(self, what: str, nodes: Iterable[int]) -> HeldFault:
        held = self._held_fault(what, lambda: self._start(nodes), self._down)
        self._down.append(held)
        return held

    def _held_fault(self, what: str, heal: Callable[[], None], among: list[HeldFault]) -> HeldFault:
        self.timeline.note(f"begins: {what}")

        def end() -> None:
            with self._turn:
                heal()
                if held in among:
                    among.remove(held)
                self.timeline.note(f"ends: {what}")

        held = HeldFault(what, end)
        return held

    def _start(self, nodes: Iterable[int]) -> None:
        down = [node for node in nodes if self.state(node) == "down"]
        for node in down:
            self._nodes.begin_start(node)
        # Without a majority of the controllers no node gets ready: the last one that is started waits for all.
        if not self._nodes.cluster.missing_voters():
            wait_ready(tuple(self._nodes.nodes[node] for node in down), timeout_s=WAIT_S)

    def _resume(self, node: int) -> None:
        if self.state(node) == "paused":
            self._nodes.resume(node)

    def _order_disk(self, node: int, faults: tuple[DiskFault, ...], offset_ms: int, what: str) -> HeldFault:
        with self._turn:
            orders = self._disks[self._known(node)]
            ordered = (faults, offset_ms)
            orders.append(ordered)
            self._give_orders(node)

            def heal() -> None:
                orders[:] = [one for one in orders if one is not ordered]
                self._give_orders(node)
                if self.state(node) == "down":
                    self._start((node,))

            return self._hold(what, heal)

    def _give_orders(self, node: int) -> None:
        orders = self._disks[node]
        self._nodes.node_faults(node).order(
            *(fault for faults, _ in orders for fault in faults), clock_offset_ms=sum(offset for _, offset in orders)
        )

    def _wait(self, condition: Callable[[], bool], what: str | Callable[[], str], timeout_s: float = WAIT_S) -> None:
        if not clock.wait_until(condition, timeout_s=timeout_s):
            raise ClusterError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")


def _way(source: End | None, target: End | None) -> str:
    return f"{'*' if source is None else source}→{'*' if target is None else target}"


def _of(stream: Stream) -> str:
    return "" if stream == "both" else f" of {stream}"
