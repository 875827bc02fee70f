"""A cluster of real nodes in network namespaces, whose links the kernel breaks. Needs root, nft and ip.

Beside `ProxiedCluster` it has what only a kernel does: packets that are lost, some or all, while TCP sends them again,
so that what a silent link swallowed arrives after it heals. It has no latency where the kernel has no netem, and
`reset` and `refusal` are the same: a connection that stands is reset, a new one is refused.

Every node and every slot of clients is in a network of its own (`faults/node_networks.py`); a client of a slot is a
program behind `command(slot)`, or runs in a thread that is in `joined(slot)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Final, Self, get_args

from ...local.cluster import START_TIMEOUT_S, STOP_TIMEOUT_S, LocalCluster
from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ..faults.node_networks import NodeNetworks
from .canary import TIMEOUT_S, round_trips_ms
from .cluster_view import controller_of, leader_of
from .link import CutMode, Link, Stream, all_links, client_slot
from .link_rules import LinkRule, table_of

_LOSS_MAX: Final = 99


class NamespacedCluster:
    """Nodes 1 to N in `folder`, started by `with`; one such cluster at a time.

    Methods that it shares with `ProxiedCluster` do the same. It has no orders, joins no nodes and resets no links.
    """

    def __init__(
        self,
        folder: Path,
        *,
        node_count: int = 3,
        client_slots: int = 1,
        properties: Mapping[str, str] | None = None,
        properties_of: Callable[[LocalNode], Mapping[str, str]] | None = None,
    ) -> None:
        """Nothing is started yet. Raises ClusterError, PortInUseError."""
        self.slots = tuple(map(client_slot, range(client_slots)))
        self._networks = NodeNetworks(range(1, node_count + 1), self.slots)
        self.cluster = LocalCluster(
            folder,
            node_count=node_count,
            properties=properties,
            properties_of=properties_of,
            hosts=self._networks.hosts,
            ends_with_parent=True,
        )
        for node in self.cluster.nodes.values():
            node.command = (*self._networks.command(node.id), *node.command)
        controllers = (address.rpartition(":") for address in self.cluster.controller_addresses)
        self._controller_ports = {host: int(port) for host, _, port in controllers}
        self._rules: dict[Link, LinkRule] = {}
        self._shaped: set[str] = set()
        self._turn = RLock()
        self._stack = ExitStack()

    @property
    def nodes(self) -> Mapping[int, LocalNode]:
        return self.cluster.nodes

    @property
    def links(self) -> tuple[Link, ...]:
        return all_links(map(str, self.nodes), self.slots)

    def bootstrap(self, slot: str | int = 0) -> str:
        """`bootstrap.servers`; the addresses are the same in every slot, and the networks are not."""
        self._slot(slot)
        return self.cluster.bootstrap

    def command(self, slot: str | int = 0) -> tuple[str, ...]:
        """What stands in front of the command of a client of this slot."""
        return self._networks.command(self._slot(slot))

    @contextmanager
    def joined(self, slot: str | int | None = None) -> Iterator[None]:
        """The calling thread, and those that it starts, are in a slot's network, or where all nodes are reached."""
        with self._networks.joined(None if slot is None else self._slot(slot)):
            yield

    def state(self, node_id: int) -> str:
        """`up`, `paused` or `down`."""
        node = self.nodes[node_id]
        return "down" if not node.is_running else "paused" if node.is_paused else "up"

    def controller(self) -> int | None:
        """The active controller, as the nodes that run say."""
        with self.joined():
            return controller_of({node.id: str(node.admin) for node in self._answering()})

    def leader(self, topic: str, partition: int) -> int | None:
        """Who leads the partition, as the nodes that run say; None while there is no leader."""
        with self.joined():
            return leader_of([(node.host, node.port) for node in self._answering()], topic, partition)

    # Links.

    def cut(self, links: Iterable[Link], mode: CutMode = "silence", stream: Stream = "both") -> None:
        """Nothing comes through any more. `silence`: packets are dropped; `reset`, `refusal`: they are answered with a
        reset. What was wrong with these links before is replaced."""
        if mode not in get_args(CutMode):
            raise ClusterError(f"a link is cut by {', '.join(get_args(CutMode))}, not {mode!r}")
        self._rule(links, LinkRule(cut=mode, stream=stream))

    def lose(self, links: Iterable[Link], percent: int) -> None:
        """So many of a hundred packets are lost, in both directions."""
        if not 1 <= percent <= _LOSS_MAX:
            raise ClusterError(f"from 1 to {_LOSS_MAX} percent of packets can be lost, not {percent}; all: cut")
        self._rule(links, LinkRule(loss_percent=percent))

    def limit(self, links: Iterable[Link], kilobytes_s: int) -> None:
        """The network of a whole node carries no more than that in each direction: all links to it have to be given."""
        self._shape(links, f"tbf rate {8 * kilobytes_s}kbit burst 16kb latency 400ms")

    def slow(self, links: Iterable[Link], latency_ms: int, jitter_ms: int = 0) -> None:
        """Each packet to or from a node takes so much longer: all links to it have to be given.

        Raises ClusterError where the kernel has no netem.
        """
        if not self.has_netem():
            raise ClusterError(
                "this kernel has no netem (module sch_netem), so links of namespaces have no latency: toxiproxy's have "
                "(ProxiedCluster)"
            )
        self._shape(links, f"netem delay {latency_ms}ms {jitter_ms}ms")

    def has_netem(self) -> bool:
        """Whether this kernel can delay packets."""
        return self._networks.has_netem()

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """These links, or all, are as at the beginning; the network of a node is as wide as it was."""
        with self._turn:
            healed = set(self.links if links is None else self._check(links))
            for link in healed:
                self._rules.pop(link, None)
            for target in {link.target for link in healed}:
                self._apply(target)
                if target in self._shaped:
                    self._networks.shape(target, None)
                    self._shaped.discard(target)

    def canary(self, link: Link, *, timeout_s: float = TIMEOUT_S) -> bool:
        """As `ProxiedCluster.canary`, asked from the network of the link's source."""
        answers = [trip is not None for trip in self.round_trips_ms(link, timeout_s=timeout_s)]
        rule = self._rules.get(link)
        return any(answers) if rule is not None and rule.cut is not None else all(answers)

    def round_trips_ms(self, link: Link, *, timeout_s: float = TIMEOUT_S) -> tuple[float | None, ...]:
        """How long connecting and one request took, for each port of the target that the source uses."""
        self._check([link])
        node = self.nodes[int(link.target)]
        ports = self._ports(node)[: 1 if link.source in self.slots else 2]
        with self._networks.joined(link.source):
            return round_trips_ms(tuple((node.host, port) for port in ports), timeout_s=timeout_s)

    # Nodes.

    def kill(self, node_id: int) -> None:
        """SIGKILL."""
        self.cluster.kill_node(node_id)

    def stop(self, node_id: int, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM, and waits until the node has ended."""
        self.cluster.stop_node(node_id, timeout_s=timeout_s)

    def start(self, node_id: int, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts a node that is down, and waits until it serves clients."""
        with self.joined():
            self.cluster.start_node(node_id, timeout_s=timeout_s)

    def pause(self, node_id: int) -> None:
        """SIGSTOP."""
        self.cluster.pause_node(node_id)

    def resume(self, node_id: int) -> None:
        self.cluster.resume_node(node_id)

    def __enter__(self) -> Self:
        """Raises NetworksUnavailableError."""
        try:
            self._stack.enter_context(self._networks)
            with self.joined():
                self.cluster.start()
            self._stack.callback(self.cluster.stop)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _rule(self, links: Iterable[Link], rule: LinkRule) -> None:
        with self._turn:
            ruled = self._check(links)
            self._rules |= dict.fromkeys(ruled, rule)
            for target in {link.target for link in ruled}:
                self._apply(target)

    def _apply(self, target: str) -> None:
        ports = {str(node.id): self._ports(node) for node in self.nodes.values()}
        self._networks.rule(target, table_of(target, self._rules, self._networks.addresses, ports))

    def _shape(self, links: Iterable[Link], discipline: str) -> None:
        with self._turn:
            given = set(self._check(links))
            targets = {link.target for link in given}
            missing = [link for link in self.links if link.target in targets and link not in given]
            if missing:
                raise ClusterError(
                    f"the kernel shapes the network of a whole node: {', '.join(map(str, missing))} would change, too"
                )
            for target in targets:
                self._networks.shape(target, discipline)
                self._shaped.add(target)

    def _slot(self, slot: str | int) -> str:
        name = client_slot(slot) if isinstance(slot, int) else slot
        if name not in self.slots:
            raise ClusterError(f"there is no slot {name} of clients: there are {', '.join(self.slots)}")
        return name

    def _check(self, links: Iterable[Link]) -> tuple[Link, ...]:
        checked = tuple(links)
        for link in checked:
            if link not in self.links:
                raise ClusterError(f"this cluster has no link {link}: there are {', '.join(map(str, self.links))}")
        return checked

    def _ports(self, node: LocalNode) -> tuple[int, ...]:
        """Where it listens: for brokers and clients, then for other controllers."""
        controller = self._controller_ports.get(node.host)
        return (node.port,) if controller is None else (node.port, controller)

    def _answering(self) -> list[LocalNode]:
        return [node for node in self.nodes.values() if self.state(node.id) == "up"]
