"""What goes wrong between the machines of a simulated cluster: links that are cut, slow, or lose their connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Protocol

from .machine import Machine
from .network import Network
from .process import Process

_SLOW_MAX_S = 0.5


class Faults(Protocol):
    def note(self, what: str, *details: object) -> None:
        """One fault more."""


class LinkFaults:
    """Each call is one fault; `heal` mends some of them."""

    def __init__(
        self,
        faults: Faults,
        machines: Mapping[int, Machine],
        clients: Sequence[Process],
        *,
        network: Network,
        random: Random,
        leaders: Callable[[], list[int]],
    ) -> None:
        """`leaders` are the nodes that lead any partition now."""
        self._faults = faults
        self._machines = machines
        self._clients = tuple(clients)
        self._network = network
        self._random = random
        self._leaders = leaders

    def cut(self) -> None:
        source, target = self._pair()
        is_both = self._random.random() < 0.5
        self._faults.note("cut" if is_both else "one-way cut", source, target)
        self._network.cut(source, target)
        if is_both:
            self._network.cut(target, source)

    def partition(self) -> None:
        """Two sides, clients on either."""
        hosts = self._hosts()
        side = set(self._random.sample(hosts, self._random.randrange(1, len(hosts))))
        self._faults.note("partition", *sorted(side))
        for a in hosts:
            for b in hosts:
                if (a in side) != (b in side):
                    self._cut_both(a, b)

    def isolate_leader(self) -> None:
        """A leader, perhaps with its clients, is away from the other nodes."""
        leaders = self._leaders()
        if leaders:
            leader = self._machines[self._random.choice(leaders)]
            has_clients = self._random.random() < 0.5
            self._faults.note("isolated leader", leader.node_id, has_clients)
            for machine in self._machines.values():
                if machine is not leader:
                    self._cut_both(leader.host, machine.host)
            if not has_clients:
                for client in self._clients:
                    self._cut_both(leader.host, client.host)

    def heal(self) -> None:
        cuts = self._network.cuts
        if cuts:
            chosen = (
                cuts if self._random.random() < 0.5 else self._random.sample(cuts, self._random.randint(1, len(cuts)))
            )
            self._faults.note("healed links", len(chosen))
            for source, target in chosen:
                self._network.heal(source, target)
        self._network.slow.clear()

    def slow(self) -> None:
        source, target = self._pair()
        delay_s = self._random.uniform(0.005, _SLOW_MAX_S)
        self._faults.note("slow link", source, target, f"{delay_s:.3f}")
        self._network.slow[source, target] = delay_s

    def break_connections(self) -> None:
        a, b = self._pair()
        count = self._network.break_connections(a, b)
        if count:
            self._faults.note("broken connections", a, b, count)

    # Choices.

    def _hosts(self) -> list[str]:
        return [machine.host for machine in self._machines.values()] + [client.host for client in self._clients]

    def _pair(self) -> tuple[str, str]:
        """Mostly two nodes, sometimes a client is one of them."""
        hosts = [machine.host for machine in self._machines.values()]
        if len(hosts) < 2 or self._random.random() < 0.4:
            hosts = self._hosts()
        source, target = self._random.sample(hosts, 2)
        return source, target

    def _cut_both(self, a: str, b: str) -> None:
        self._network.cut(a, b)
        self._network.cut(b, a)
