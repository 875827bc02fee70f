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
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final, TypeVar

from ....local.errors import ClusterError
from ...testing.broker_properties import text_of
from ...testing.topic_states import create_topic
from ..cluster.loop import SimulatedLoop
from ..cluster.machine import BROKER_PORT, Machine
from ..cluster.process import Process
from ..cluster.profiles import PROFILES
from ..cluster.trace_log import TraceLog
from .application_process import ApplicationProcess
from .breakable_machines import LOOK_S, WAIT_S, BreakableMachines, Healing
from .group_lag import group_lag
from .newest_metadata import NewestMetadata, is_in_sync
from .random_faults import RandomFaults
from .simulated_fault import SimulatedFault
from .turns import Turns

T = TypeVar("T")

FAULTS_S: Final = 60.0
_REPLICAS: Final = 3
_FLUSHED: Final = "1"


class SimulatedCluster(BreakableMachines):
    """Every method that is awaited is awaited in a coroutine of the scenario. Raises ClusterError."""

    def __init__(
        self, machines: Mapping[int, Machine], application: Process, observer: Process, *,
        loop: SimulatedLoop, turns: Turns, log: TraceLog, random: Random, properties: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Nothing cuts `observer` off: it asks for what `ChaosCluster` asks the nodes for."""
        super().__init__(machines, application.host, loop=loop, turns=turns)
        self.processes = [application]
        """The scenario's, and those that it started."""
        self._observer = observer
        self._log = log
        self._random = random
        self._is_flushed = properties.get("log.flush.interval.messages") == _FLUSHED
        self._metadata = NewestMetadata(machines)
        self._topics: list[str] = []

    # The cluster.

    @property
    def bootstrap(self) -> str:
        """`bootstrap_servers` of clients."""
        return ",".join(f"{machine.host}:{BROKER_PORT}" for machine in self._machines.values())

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
            await asyncio.sleep(LOOK_S)
        behind = "it has committed nothing" if last is None else f"it is {last} behind"
        raise ClusterError(f"not within {timeout_s:g} s: group {group} is at most {lag} records behind: {behind}")

    def isolate_leader(self, topic: str, partition: int = 0, *, clients: bool = True) -> SimulatedFault:
        """The leader of a partition is cut off from other nodes, and from the application unless `clients=False`."""

        async def begin() -> Healing:
            fault = await self.isolate(await self.wait_leader(topic, partition), clients=clients)
            return f"{fault.what}, the leader of {topic}-{partition}", fault.heal

        return self._hold(begin)

    # The application.

    def start_process(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> ApplicationProcess[T]:
        """Begins a part of the application that can be killed, paused and cut off by its name, with a host of its own.

        `main` is called in it; clients that it makes belong to it. Raises ClusterError when the name is taken.
        """
        if name in self._hosts or name.isdecimal():
            raise ClusterError(f"a process needs a name of its own: found {name}, there are {', '.join(self._hosts)}")
        process = Process(name, f"10.0.1.{len(self.processes) + 1}")
        self.processes.append(process)
        self._hosts[name] = process.host
        started = ApplicationProcess(process, main, loop=self._loop, turns=self._turns, hold=self._hold)
        self._turns.note(f"started {name}")
        return started

    @asynccontextmanager
    async def random_faults(
        self, profile: str = "faults", *, duration_s: float = FAULTS_S
    ) -> AsyncIterator[Counter[str]]:
        """While it holds, the seed breaks nodes, links, disks and clocks, within what the cluster survives, for
        `duration_s` of virtual time at most: a scenario that gets nowhere meanwhile goes on then.

        `profile` is one of `penstock simulate --profile`. It gives counts of what happened, by name. At the end all is
        healed, and it has waited until every replica is in sync. Heal your own faults before, and begin none inside.
        """
        if profile not in PROFILES:
            raise ClusterError(f"there is no profile {profile}: expected one of {', '.join(PROFILES)}")
        faults = RandomFaults(
            PROFILES[profile], self._machines, [process for process in self.processes if not process.is_dead],
            loop=self._loop, turns=self._turns, metadata=self._metadata, log=self._log,
            random=Random(self._random.getrandbits(64)), is_flushed=self._is_flushed,
            duration_s=duration_s,
        )  # fmt: skip
        await self._turns.call(faults.begin)
        try:
            yield faults.counts
        finally:
            await self._turns.call(faults.end)
        await self._wait(lambda: faults.is_settled, faults.what_is_missing)
        await self._turns.call(faults.forget)

    # How.

    def _observe(self, work: Awaitable[T]) -> Awaitable[T]:
        async def waiting() -> T:
            return await work

        task: asyncio.Task[T] = self._observer.run(lambda: self._loop.create_task(waiting()))
        return task

    def _is_in_sync(self, topic: str) -> bool:
        image = self._metadata.image
        found = None if image is None else image.topics.by_name.get(topic)
        return found is not None and all(map(is_in_sync, found.partitions))
