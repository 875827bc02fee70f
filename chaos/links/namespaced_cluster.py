"""A cluster of real nodes in network namespaces, whose links the kernel breaks. Needs root, nft and iproute2.

It has what only a kernel does: packets that are lost, some or all, while TCP sends them again, so that what a silent
link swallowed arrives after it heals. It has no latency where the kernel has no netem, and `reset` and `refusal` are
the same cut: a connection that stands is reset, a new one is refused.

Every node and every slot of clients is in a network of its own (`faults/node_networks.py`); a client of a slot is a
program behind `command(slot)`, or runs in a thread that is in `joined(slot)`. What looks at nodes from outside has to
be in `joined()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, get_args

from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ..faults.node_networks import DEVICE, NodeNetworks
from .link import CutMode, Link, Stream, all_links
from .link_rules import TABLE, LinkRule, disciplines_of, lost_packets, table_of
from .linked_cluster import LinkedCluster

_LOSS_MAX: Final = 99
_NO_RULE: Final = LinkRule()


def kernel_lacks(networks: NodeNetworks | None = None) -> Mapping[str, str]:
    """The kinds of faults of links that this kernel cannot have, and why. Raises NetworksUnavailableError."""
    if networks is None:
        with NodeNetworks(()) as probed:
            return kernel_lacks(probed)
    lacks = {}
    if not networks.has_netem():
        lacks["slow-link"] = "this kernel has no netem (module sch_netem); links of proxies have latency"
    if not networks.has_htb():
        lacks["bandwidth"] = "this kernel has no htb (module sch_htb); links of proxies can be narrowed"
    if not networks.has_resets():
        lacks["connection-resets"] = (
            "this kernel resets no connection of a process (CONFIG_INET_DIAG_DESTROY); links of proxies can be reset"
        )
    return lacks


class NamespacedCluster(LinkedCluster):
    """A `LinkedCluster` whose nodes have addresses of their own."""

    def bootstrap(self, slot: str | int = 0) -> str:
        """The addresses are the same in every slot, and the networks are not."""
        self._slot(slot)
        return self.cluster.bootstrap

    def command(self, slot: str | int = 0) -> Sequence[str]:
        return self._networks.command(self._slot(slot))

    def joined(self, end: str | None = None) -> AbstractContextManager[None]:
        return self._networks.joined(end)

    def addresses(self, link: Link) -> tuple[tuple[str, int], ...]:
        """Of what the source uses: other controllers have a listener of their own."""
        self._check([link])
        node = self.nodes[int(link.target)]
        ports = self._ports(node)[: 1 if link.source in self.slots else 2]
        return tuple((node.host, port) for port in ports)

    # Links.

    def lacks(self) -> Mapping[str, str]:
        return self._lacks

    def is_cut(self, link: Link) -> bool:
        return self._rules.get(link, _NO_RULE).cut is not None

    def cut(self, links: Iterable[Link], mode: CutMode = "silence", stream: Stream = "both") -> None:
        """`silence`: packets are dropped; `reset`, `refusal`: they are answered with a reset."""
        if mode not in get_args(CutMode):
            raise ClusterError(f"a link is cut by {', '.join(get_args(CutMode))}, not {mode!r}")
        self._rule(links, lambda _: LinkRule(cut=mode, stream=stream))

    def slow(self, links: Iterable[Link], latency_ms: int, jitter_ms: int = 0) -> None:
        """Each packet. Raises ClusterError where the kernel has no netem."""
        self._refuse_lacking("slow-link")
        self._rule(links, lambda rule: rule._replace(latency_ms=latency_ms, jitter_ms=jitter_ms))

    def limit(self, links: Iterable[Link], kilobytes_s: int) -> None:
        """All connections of a link together. Raises ClusterError where the kernel has no htb."""
        self._refuse_lacking("bandwidth")
        self._rule(links, lambda rule: rule._replace(kilobytes_s=kilobytes_s))

    def lose(self, links: Iterable[Link], percent: int) -> None:
        if not 1 <= percent <= _LOSS_MAX:
            raise ClusterError(f"from 1 to {_LOSS_MAX} percent of packets can be lost, not {percent}; all: cut")
        self._rule(links, lambda rule: rule._replace(loss_percent=percent))

    def lost_packets(self, links: Iterable[Link]) -> Mapping[Link, int]:
        """Since something else was last wrong with a link to the same node."""
        with self._turn:
            asked = self._check(links)
            lost: dict[Link, int] = {}
            for target in {link.target for link in asked if link in self._rules}:
                lost |= lost_packets(self._networks.rules(target, TABLE))
        return {link: lost.get(link, 0) for link in asked}

    def reset(self, links: Iterable[Link]) -> None:
        """Raises ClusterError where the kernel resets none for others."""
        self._refuse_lacking("connection-resets")
        with self._turn:
            for link in self._check(links):
                ports = self._ports(self.nodes[int(link.target)])
                self._networks.reset(link.target, self._networks.addresses[link.source], ports)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        self._rule(self.links if links is None else links, lambda _: _NO_RULE)

    # What differs.

    def _hosts(self) -> Mapping[int, str]:
        self._networks = NodeNetworks(self._node_ids, self.slots)
        return self._networks.hosts

    def _plan(self) -> None:
        controllers = (address.rpartition(":") for address in self.cluster.controller_addresses)
        self._controller_ports = {host: int(port) for host, _, port in controllers}
        self._rules: dict[Link, LinkRule] = {}
        self._classes = {link: n for n, link in enumerate(all_links(map(str, self._node_ids), self.slots), 1)}
        self._lacks: Mapping[str, str] = {}

    def _start(self) -> None:
        """Raises NetworksUnavailableError."""
        self._stack.enter_context(self._networks)
        self._lacks = kernel_lacks(self._networks)
        with self.joined():
            self.cluster.start()
        self._stack.callback(self.cluster.stop)

    def _asked_from(self, link: Link) -> str | None:
        return link.source

    def _rewire(self, node: LocalNode, told: Mapping[str, str]) -> Mapping[str, str]:
        rewired = super()._rewire(node, told)
        node.command = (*self._networks.command(node.id), *node.command)
        return rewired

    def _rule(self, links: Iterable[Link], change: Callable[[LinkRule], LinkRule]) -> None:
        """Applies what changes at the ends that it concerns."""
        with self._turn:
            ruled: set[str] = set()
            shaped: set[str] = set()
            for link in self._check(links):
                # A node that has left has no rules, and one that joins in its place has new ports.
                before = self._rules.pop(link, _NO_RULE)
                if int(link.target) not in self.nodes:
                    continue
                after = change(before)
                if after != _NO_RULE:
                    self._rules[link] = after
                if after != before:
                    ruled.add(link.target)
                if after.is_shaped or before.is_shaped:
                    shaped.update(link)
            ports = {str(node.id): self._ports(node) for node in self.nodes.values()}
            rules = {link: rule for link, rule in self._rules.items() if link.target in ports}
            for end in sorted(ruled | shaped):
                self._networks.rule(end, table_of(end, rules, self._networks.addresses, ports, self._classes))
            for end in sorted(shaped):
                self._networks.shape(end, disciplines_of(end, rules, self._classes, DEVICE))

    def _refuse_lacking(self, kind: str) -> None:
        if kind in self._lacks:
            raise ClusterError(f"links of namespaces cannot have {kind} here: {self._lacks[kind]}")

    def _check(self, links: Iterable[Link]) -> tuple[Link, ...]:
        checked = tuple(links)
        for link in checked:
            if link not in self._classes:
                raise self._no_link(link)
        return checked

    def _ports(self, node: LocalNode) -> tuple[int, ...]:
        """Where it listens: for brokers and clients, then for other controllers."""
        controller = self._controller_ports.get(node.host)
        return (node.port,) if controller is None else (node.port, controller)
