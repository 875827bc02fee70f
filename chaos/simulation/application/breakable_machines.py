"""The faults of a simulated cluster and their end: of processes, disks, clocks and links.

What happens to nodes happens between two turns of the loop. A fault begins when it is awaited, or with `async with`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from errno import ENOSPC, errorcode
from typing import Final, TypeAlias

from ....local.errors import ClusterError
from ....storage.disk.memory_nodes import Operation
from ..cluster.loop import SimulatedLoop
from ..cluster.machine import Machine
from .broken_links import BrokenLinks, Direction
from .simulated_fault import SimulatedFault
from .turns import Turns

End: TypeAlias = int | str
"""A node's id, `client-0` for the scenario, or the name of a process that it started."""
Healing: TypeAlias = tuple[str, Callable[[], Awaitable[None]]]

WAIT_S: Final = 300.0
"""Of virtual time, that a wait lasts at most: Kafka's own times are up to half a minute."""
LOOK_S: Final = 0.05
SCENARIO: Final = "client-0"
_ERRORS: Final = {name: number for number, name in errorcode.items()}


class BreakableMachines:
    """Raises ClusterError."""

    def __init__(
        self, machines: Mapping[int, Machine], scenario_host: str, *, loop: SimulatedLoop, turns: Turns
    ) -> None:
        self._machines = machines
        self._hosts: dict[str, str] = {str(node): machine.host for node, machine in machines.items()}
        self._hosts[SCENARIO] = scenario_host
        self._loop = loop
        self._turns = turns
        self._links = BrokenLinks(loop.network)
        self._held: list[SimulatedFault] = []

    @property
    def nodes(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(self._machines)

    def state(self, node: int) -> str:
        """`up`, `paused` or `down`."""
        machine = self._known(node)
        return "down" if not machine.is_up else "paused" if machine.is_paused else "up"

    # Faults of nodes.

    def kill(self, node: int) -> SimulatedFault:
        """SIGKILL; healed, the node is started again."""
        return self._end_nodes((node,), "killed", lambda machine: machine.kill(has_power=True))

    def power_loss(self, *nodes: int) -> SimulatedFault:
        """The nodes are killed and lose what they have not synced; healed, they are started again."""
        return self._end_nodes(nodes, "without power", lambda machine: machine.kill(has_power=False))

    def stop(self, node: int) -> SimulatedFault:
        """SIGTERM, in good order; healed, the node is started again."""

        async def begin() -> Healing:
            machine = self._running(node)
            await self._turns.call(machine.stop)
            await self._wait(lambda: not machine.is_up, f"node {node} has stopped")
            return f"node {node} stopped", lambda: self._start((node,))

        return self._hold(begin)

    async def restart(self, node: int) -> None:
        """SIGTERM and a start; returns once the node serves clients."""
        async with self.stop(node):
            pass

    def pause(self, node: int) -> SimulatedFault:
        """SIGSTOP: connections stand, and nothing is answered. Healed, the node goes on."""

        async def begin() -> Healing:
            await self._turns.call(self._running(node).pause)
            return f"node {node} paused", lambda: self.resume(node)

        return self._hold(begin)

    async def resume(self, node: int) -> None:
        """Ends a pause."""
        if self.state(node) == "paused":
            await self._turns.call(self._known(node).resume)

    def fail_disk(
        self, node: int, operation: Operation = "write", *, error: str = "EIO", count: int | None = None
    ) -> SimulatedFault:
        """Calls of the disk fail with the error of that name, `count` of them or all.

        Healed, a node that ended for it is started again.
        """

        async def begin() -> Healing:
            if error not in _ERRORS:
                raise ClusterError(f"error is the name of an error of the system, as EIO: found {error}")
            machine = self._known(node)
            await self._turns.call(lambda: machine.files.fail(operation, error=_ERRORS[error], count=count))

            async def heal() -> None:
                await self._turns.call(machine.files.heal)
                if machine.has_failed:
                    await self._wait(lambda: not machine.is_up, f"node {node}, which gave up, has ended")
                await self._start((node,))

            return f"{operation} on node {node} → {error}", heal

        return self._hold(begin)

    def fill_disk(self, node: int) -> SimulatedFault:
        """No room for anything more on the disk of a node."""
        return self.fail_disk(node, error=errorcode[ENOSPC])

    def shift_clock(self, node: int, offset_ms: int) -> SimulatedFault:
        """The wall clock of a node is that far from the others'."""

        async def begin() -> Healing:
            machine = self._known(node)
            await self._turns.call(lambda: machine.step_clock(offset_ms))
            return f"clock of node {node} shifted by {offset_ms} ms", lambda: self._turns.call(
                lambda: machine.step_clock(0)
            )

        return self._hold(begin)

    # Faults of links. An end is a node's id, `"client-0"`, the scenario, or the name of a process that it started.

    def partition(self, *groups: Iterable[End]) -> SimulatedFault:
        """Nothing comes from one group to another, and connections stand: `partition([1], [2, 3])`.

        An end of no group keeps all of its links.
        """
        sides = [tuple(group) for group in groups]

        async def begin() -> Healing:
            directions = [
                (self._host(a), self._host(b))
                for side in sides
                for other in sides
                if other is not side
                for a in side
                for b in other
            ]
            if any(source == target for source, target in directions) or not directions:
                raise ClusterError(f"a partition is between two groups or more without a common end: found {sides}")
            heal = await self._turns.call(lambda: self._links.cut(directions))
            names = " | ".join(",".join(map(str, side)) for side in sides)
            return f"partition {names}", lambda: self._turns.call(heal)

        return self._hold(begin)

    def isolate(self, node: int, *, clients: bool = True) -> SimulatedFault:
        """A node and all others reach each other no more; with `clients=False` clients still reach it."""
        others: list[End] = [one for one in self.nodes if one != node]
        return self.partition([node], [*others, *(clients_of(self._hosts) if clients else ())])

    def cut_one_way(self, source: End, target: End) -> SimulatedFault:
        """What `source` sends does not arrive at `target`, whichever of them opened the connection."""

        async def begin() -> Healing:
            direction = self._host(source), self._host(target)
            heal = await self._turns.call(lambda: self._links.cut([direction]))
            return f"{source}→{target} cut", lambda: self._turns.call(heal)

        return self._hold(begin)

    def slow_link(
        self, source: End | None = None, target: End | None = None, *, latency_ms: int
    ) -> SimulatedFault:  # fmt: skip
        """Each message between these ends takes so much longer, in both directions; None is every end."""

        async def begin() -> Healing:
            directions = self._directions(source, target)
            heal = await self._turns.call(lambda: self._links.slow(directions, latency_ms / 1000))
            return f"{_way(source, target)} slower by {latency_ms} ms", lambda: self._turns.call(heal)

        return self._hold(begin)

    async def reset_connections(self, source: End | None = None, target: End | None = None) -> None:
        """Closes all connections between these ends, at once; new ones are made as before."""
        for pair in sorted({tuple(sorted(direction)) for direction in self._directions(source, target)}):
            await self._turns.call(lambda: self._loop.network.break_connections(*pair))  # noqa: B023 - it is awaited
        self._turns.note(f"fault connections {_way(source, target)} reset")

    # All.

    async def heal(self) -> None:
        """Ends every fault, starts what is down, and waits until all nodes have started."""
        for held in reversed(tuple(self._held)):
            await held.heal()
        await self._start(self.nodes)

    # How.

    def _hold(self, begin: Callable[[], Awaitable[Healing]]) -> SimulatedFault:
        async def begin_noted() -> Healing:
            what, heal = await begin()
            self._turns.note(f"fault begins: {what}")
            self._held.append(held)

            async def heal_noted() -> None:
                self._held.remove(held)
                await heal()
                self._turns.note(f"fault ends: {what}")

            return what, heal_noted

        held = SimulatedFault(begin_noted)
        return held

    def _end_nodes(self, nodes: Sequence[int], how: str, end: Callable[[Machine], None]) -> SimulatedFault:
        async def begin() -> Healing:
            machines = [self._running(node) for node in nodes]

            def end_all() -> None:
                for machine in machines:
                    end(machine)

            await self._turns.call(end_all)
            return f"{', '.join(f'node {node}' for node in nodes)} {how}", lambda: self._start(nodes)

        return self._hold(begin)

    async def _start(self, nodes: Iterable[int]) -> None:
        """Those that are down. Without a majority of the controllers none gets ready: the last one waits for all."""
        machines = [self._known(node) for node in nodes if self.state(node) == "down"]

        def start() -> None:
            for machine in machines:
                machine.files.heal()
                machine.start()

        await self._turns.call(start)
        voters = [machine for machine in self._machines.values() if machine.is_voter]
        if 2 * sum(one.is_up and not one.is_paused for one in voters) > len(voters):
            names = ", ".join(str(machine.node_id) for machine in machines)
            await self._wait(lambda: all(one.is_ready or not one.is_up for one in machines), f"nodes {names} started")

    async def _wait(self, is_so: Callable[[], bool], what: str | Callable[[], str], timeout_s: float = WAIT_S) -> None:
        end_s = self._loop.time() + timeout_s
        while not is_so():
            if self._loop.time() >= end_s:
                sentence = what if isinstance(what, str) else what()
                raise ClusterError(f"not within {timeout_s:g} s of virtual time: {sentence}")
            await asyncio.sleep(LOOK_S)

    def _known(self, node: int) -> Machine:
        if node not in self._machines:
            raise ClusterError(f"there is no node {node}: expected one of {', '.join(map(str, self.nodes))}")
        return self._machines[node]

    def _running(self, node: int) -> Machine:
        machine = self._known(node)
        if not machine.is_up:
            raise ClusterError(f"node {node} is down already")
        return machine

    def _host(self, end: End) -> str:
        if str(end) not in self._hosts:
            raise ClusterError(f"there is no end {end}: expected one of {', '.join(self._hosts)}")
        return self._hosts[str(end)]

    def _directions(self, source: End | None, target: End | None) -> list[Direction]:
        sources = self._hosts.values() if source is None else (self._host(source),)
        targets = self._hosts.values() if target is None else (self._host(target),)
        pairs = [(a, b) for a in sources for b in targets if a != b]
        return sorted({*pairs, *((b, a) for a, b in pairs)})


def _way(source: End | None, target: End | None) -> str:
    return f"{'*' if source is None else source}→{'*' if target is None else target}"


def clients_of(ends: Iterable[str]) -> list[str]:
    """All ends but nodes."""
    return [end for end in ends if not end.isdecimal()]
