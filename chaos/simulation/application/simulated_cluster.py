"""The cluster that a simulated application uses and its test breaks: `ChaosCluster`, in virtual time.

    async def scenario(cluster):
        topic = await cluster.topic()
        async with cluster.kill(await cluster.leader(topic)):
            …

Methods have the names of `ChaosCluster` and are awaited. A fault begins when it is awaited, or with `async with`, which
heals it at its end. What happens to nodes happens between two turns of the loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from errno import ENOSPC, errorcode
from random import Random
from typing import Final, TypeVar

from ....local.errors import ClusterError
from ....storage.disk.memory_nodes import Operation
from ...testing.broker_properties import text_of
from ...testing.topic_states import create_topic
from ..cluster.loop import SimulatedLoop
from ..cluster.machine import BROKER_PORT, Machine
from ..cluster.process import Process
from ..cluster.profiles import PROFILES
from ..cluster.trace_log import TraceLog
from .broken_links import BrokenLinks, Direction
from .group_lag import group_lag
from .newest_metadata import NewestMetadata, is_in_sync
from .random_faults import RandomFaults
from .simulated_fault import SimulatedFault
from .turns import Turns

T = TypeVar("T")
End = int | str
Healing = tuple[str, Callable[[], Awaitable[None]]]

WAIT_S: Final = 300.0
"""Of virtual time, that a wait lasts at most: Kafka's own times are up to half a minute."""
_LOOK_S: Final = 0.05
_REPLICAS: Final = 3
_FLUSHED: Final = "1"
_ERRORS: Final = {name: number for number, name in errorcode.items()}


class SimulatedCluster:
    """Every method that is awaited is awaited in a coroutine of the scenario. Raises ClusterError."""

    def __init__(
        self, machines: Mapping[int, Machine], application: Process, observer: Process, *,
        loop: SimulatedLoop, turns: Turns, log: TraceLog, random: Random, properties: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Nothing cuts `observer` off: it asks for what `ChaosCluster` asks the nodes for."""
        self._machines = machines
        self._hosts: dict[str, str] = {str(node): machine.host for node, machine in machines.items()}
        self._hosts["client-0"] = application.host
        self._application = application
        self._observer = observer
        self._loop = loop
        self._turns = turns
        self._log = log
        self._random = random
        self._is_flushed = properties.get("log.flush.interval.messages") == _FLUSHED
        self._metadata = NewestMetadata(machines)
        self._links = BrokenLinks(loop.network)
        self._held: list[SimulatedFault] = []
        self._topics: list[str] = []

    # The cluster.

    @property
    def nodes(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(self._machines)

    @property
    def bootstrap(self) -> str:
        """`bootstrap_servers` of clients."""
        return ",".join(f"{machine.host}:{BROKER_PORT}" for machine in self._machines.values())

    def state(self, node: int) -> str:
        """`up`, `paused` or `down`."""
        machine = self._known(node)
        return "down" if not machine.is_up else "paused" if machine.is_paused else "up"

    async def topic(self, *, partitions: int = 1, replication_factor: int | None = None, **config: object) -> str:
        """Makes a new topic, led and in sync everywhere, and returns its name.

        Without `replication_factor` it has three replicas, or as many as there are nodes. Configs are Kafka's, with `_`
        for each point: `cleanup_policy="compact"`, `min_insync_replicas=2`.
        """
        name = f"topic-{len(self._topics) + 1}"
        self._topics.append(name)
        addresses = [(one.host, BROKER_PORT) for one in self._machines.values() if one.is_ready and not one.is_paused]
        replicas = min(_REPLICAS, len(self.nodes)) if replication_factor is None else replication_factor
        configs = {key.replace("_", "."): text_of(value) for key, value in config.items()}
        await self._observe(
            create_topic(addresses, name, partitions=partitions, replicas=replicas, configs=configs)
        )  # fmt: skip
        await self._wait(
            lambda: self._metadata.is_known_in_sync(name, partitions), f"every node knows topic {name} in sync"
        )
        return name

    async def leader(self, topic: str, partition: int = 0) -> int | None:
        """Which node leads by the newest metadata of any node; None while there is no leader."""
        registration = self._metadata.registration(topic, partition)
        return None if registration is None or registration.leader < 0 else int(registration.leader)

    # Waiting, in seconds of virtual time.

    async def wait_ready(self, *, timeout_s: float = WAIT_S) -> None:
        """Waits until every node has started."""
        await self._wait(
            lambda: all(machine.is_ready for machine in self._machines.values()), "every node has started", timeout_s
        )

    async def wait_leader(
        self, topic: str, partition: int = 0, *, other_than: int | None = None, timeout_s: float = WAIT_S
    ) -> int:
        """Waits until a node that runs leads the partition, another one than `other_than`; returns it."""
        found: list[int] = []

        def is_led() -> bool:
            registration = self._metadata.registration(topic, partition)
            leader = -1 if registration is None else int(registration.leader)
            if leader < 0 or leader == other_than or self.state(leader) != "up":
                return False
            found.append(leader)
            return True

        other = "" if other_than is None else f" other than node {other_than}"
        await self._wait(is_led, f"{topic}-{partition} has a leader{other}", timeout_s)
        return found[0]

    async def wait_in_sync(self, *topics: str, timeout_s: float = WAIT_S) -> None:
        """Waits until every replica of these topics, or of all that `topic` made, is in sync."""
        for topic in topics or tuple(self._topics):
            await self._wait(
                lambda: self._is_in_sync(topic),  # noqa: B023 - it is called before the next one
                f"every replica of {topic} is in sync",
                timeout_s,
            )

    async def wait_lag(self, group: str, lag: int = 0, *, timeout_s: float = WAIT_S) -> None:
        """Waits until a group is at most `lag` records behind in all partitions together in which it has committed."""
        last: int | None = None
        end_s = self._loop.time() + timeout_s
        while self._loop.time() < end_s:
            last = await self._observe(group_lag(self.bootstrap, group, self._metadata.end_offset))
            if last is not None and last <= lag:
                return
            await asyncio.sleep(_LOOK_S)
        behind = "it has committed nothing" if last is None else f"it is {last} behind"
        raise ClusterError(f"not within {timeout_s:g} s: group {group} is at most {lag} records behind: {behind}")

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

    # Faults of links. An end is a node's id, or `"client-0"`: the application.

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
        """A node and all others reach each other no more; with `clients=False` the application still reaches it."""
        others: list[End] = [one for one in self.nodes if one != node]
        return self.partition([node], [*others, *(["client-0"] if clients else [])])

    def isolate_leader(self, topic: str, partition: int = 0, *, clients: bool = True) -> SimulatedFault:
        """The leader of a partition is cut off from other nodes, and from the application unless `clients=False`."""

        async def begin() -> Healing:
            fault = await self.isolate(await self.wait_leader(topic, partition), clients=clients)
            return f"{fault.what}, the leader of {topic}-{partition}", fault.heal

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

    @asynccontextmanager
    async def random_faults(self, profile: str = "faults") -> AsyncIterator[Counter[str]]:
        """While it holds, the seed breaks nodes, links, disks and clocks, within what the cluster survives.

        `profile` is one of `penstock simulate --profile`. It gives counts of what happened, by name. At the end all is
        healed, and it has waited until every replica is in sync. Heal your own faults before, and begin none inside.
        """
        if profile not in PROFILES:
            raise ClusterError(f"there is no profile {profile}: expected one of {', '.join(PROFILES)}")
        faults = RandomFaults(
            PROFILES[profile], self._machines, [self._application],
            loop=self._loop, turns=self._turns, metadata=self._metadata, log=self._log,
            random=Random(self._random.getrandbits(64)), is_flushed=self._is_flushed,
        )  # fmt: skip
        await self._turns.call(faults.begin)
        try:
            yield faults.counts
        finally:
            await self._turns.call(faults.end)
        await self._wait(lambda: faults.is_settled, faults.what_is_missing)
        await self._turns.call(faults.forget)

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

    def _observe(self, work: Awaitable[T]) -> Awaitable[T]:
        async def waiting() -> T:
            return await work

        task: asyncio.Task[T] = self._observer.run(lambda: self._loop.create_task(waiting()))
        return task

    async def _wait(self, is_so: Callable[[], bool], what: str | Callable[[], str], timeout_s: float = WAIT_S) -> None:
        end_s = self._loop.time() + timeout_s
        while not is_so():
            if self._loop.time() >= end_s:
                sentence = what if isinstance(what, str) else what()
                raise ClusterError(f"not within {timeout_s:g} s of virtual time: {sentence}")
            await asyncio.sleep(_LOOK_S)

    def _is_in_sync(self, topic: str) -> bool:
        image = self._metadata.image
        found = None if image is None else image.topics.by_name.get(topic)
        return found is not None and all(map(is_in_sync, found.partitions))

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
