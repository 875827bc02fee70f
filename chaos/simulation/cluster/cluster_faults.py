"""What goes wrong in a simulated cluster, and when: drawn from the seed, within what it promises to survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from ....storage.memory_nodes import Operation
from .loop import SimulatedLoop
from .machine import Machine
from .network import Network
from .process import KERNEL, Process

_CLOCK_STEPS_MS = (-3_600_000, -60_000, -1_500, 1_500, 60_000, 3_600_000)
_SLOW_MAX_S = 0.5
_DISK_OPERATIONS: tuple[Operation, ...] = ("write", "sync", "rename", "create", "read")


class ClusterFaults:
    """`step` is called several times a second."""

    def __init__(
        self,
        machines: Mapping[int, Machine],
        clients: Sequence[Process],
        *,
        loop: SimulatedLoop,
        network: Network,
        random: Random,
        trace: Callable[[str], None],
        is_whole: Callable[[], bool],
        is_flushed: bool,
        is_replicated: bool,
        counts: Callable[[int], bool],
        may_count: Callable[[int], bool],
        leaders: Callable[[], list[int]],
    ) -> None:
        """`is_whole` says whether every replica is in sync, `is_flushed` that only what is synced is acknowledged, and
        `counts` whether a node is one of those that committed records have to be on, `may_count` whether it may be one
        without anybody knowing it yet."""
        self.counts: Counter[str] = Counter()
        self._machines = machines
        self._clients = tuple(clients)
        self._loop = loop
        self._network = network
        self._random = random
        self._trace = trace
        self._is_whole = is_whole
        self._is_flushed = is_flushed
        self._is_replicated = is_replicated
        self._counts = counts
        self._may_count = may_count
        self._leaders = leaders
        self._due: list[Callable[[], None]] = []
        self._is_healed = False
        # Machines whose disk may have forgotten what it was told to keep: they do not lose power any more.
        self._suspect: set[int] = set()
        # Those that lost data since all was whole. Until it is again the others must not crash: the cluster does not
        # know a crash that kept everything from one that did not.
        self._lost: set[int] = set()
        self._emptied: set[int] = set()
        self._actions: tuple[tuple[float, Callable[[], None]], ...] = (
            (0.020, self._kill),
            (0.020, self._lose_power),
            (0.004, self._black_out),
            (0.100, self._start),
            (0.012, self._stop),
            (0.014, self._cut),
            (0.008, self._partition),
            (0.010, self._isolate_leader),
            (0.060, self._heal),
            (0.014, self._slow),
            (0.030, self._break_connections),
            (0.014, self._pause),
            (0.060, self._resume),
            (0.006, self._pause_client),
            (0.010, self._step_clock),
            (0.006, self._fail_disk),
            (0.008, self._swap_disk),
        )

    def step(self) -> None:
        if self._lost and self._is_whole():
            self._lost.clear()
            self._emptied.clear()
        for chance, action in self._actions:
            if self._random.random() < chance:
                action()

    def later(self, delay_s: float, happen: Callable[[], None]) -> None:
        """Let something happen, unless all is healed before: between two turns of the loop, when what nodes did in the
        one has been looked at."""
        self._loop.call_later(delay_s, self._due.append, happen, context=KERNEL)

    def after_turn(self) -> None:
        """What is due by now happens."""
        if self._due:
            due, self._due = self._due, []
            for happen in due:
                if not self._is_healed:
                    happen()

    def heal_all(self) -> None:
        """Nothing is wrong any more; nodes that are down come back by `keep_up`."""
        self._trace("heal")
        self._is_healed = True
        self._network.slow.clear()
        for source, target in self._network.cuts:
            self._network.heal(source, target)
        for machine in self._machines.values():
            machine.files.heal()
            machine.step_clock(0)
            if machine.is_paused:
                machine.resume()
        self._resume_clients()
        for node_id in sorted(self._suspect):
            # What a node could not read while its disk failed, it looks for again when it is started.
            machine = self._machines[node_id]
            if machine.is_ready and not machine.is_stopping:
                machine.stop()
            elif machine.is_up and not machine.is_stopping:
                machine.kill(has_power=True)
        self.keep_up()

    def keep_up(self) -> None:
        for machine in self._machines.values():
            if not machine.is_up:
                machine.files.heal()
                machine.is_failure_expected = machine.node_id in self._emptied
                machine.start()

    # Choices.

    def note(self, what: str, *details: object) -> None:
        """One fault more."""
        self.counts[what] += 1
        self._trace(f"fault {what} {' '.join(map(str, details))}")

    def _up(self) -> list[Machine]:
        return [machine for machine in self._machines.values() if machine.is_up]

    def _crashable(self) -> list[Machine]:
        return [machine for machine in self._up() if not self._lost or machine.node_id in self._lost]

    def _one_to_end(self) -> Machine | None:
        """Mostly a majority stays."""
        up = self._crashable()
        may_lose_majority = self._random.random() < 0.2
        if not up or not (may_lose_majority or 2 * (len(self._up()) - 1) > len(self._machines)):
            return None
        return self._random.choice(up)

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

    # Processes and machines.

    def _kill(self) -> None:
        machine = self._one_to_end()
        if machine is not None:
            self.note("kill", machine.node_id)
            machine.kill(has_power=True)

    def _may_lose_power(self, machine: Machine) -> bool:
        return machine.node_id not in self._suspect and (self._is_flushed or self._may_lose_data(machine))

    def _may_lose_data(self, machine: Machine) -> bool:
        """While all the others have everything, or nobody counts on this one."""
        return self._is_replicated and (self._is_whole() or not self._counts(machine.node_id))

    def _lose_power(self) -> None:
        machine = self._one_to_end()
        if machine is not None and self._may_lose_power(machine):
            self._take_power(machine)

    def _take_power(self, machine: Machine) -> None:
        self.note("power loss", machine.node_id)
        if not self._is_flushed and self._may_count(machine.node_id):
            self._lost.add(machine.node_id)
        machine.kill(has_power=False)

    def crash(self, machine: Machine, *, has_power: bool) -> bool:
        """End its process, if this machine may crash now: without its power where it may lose that; else with it."""
        if machine not in self._crashable() or not machine.is_up:
            return False
        if has_power or not self._may_lose_power(machine):
            self.note("kill", machine.node_id)
            machine.kill(has_power=True)
            return True
        self._take_power(machine)
        return True

    def start(self, machine: Machine) -> None:
        """Start it again, if it is down."""
        if not machine.is_up:
            self.note("start", machine.node_id)
            machine.files.heal()
            machine.is_failure_expected = machine.node_id in self._emptied
            machine.start()

    def _black_out(self) -> None:
        """All at once, and back in any order."""
        if self._lost:
            return
        has_power = not self._is_flushed or bool(self._suspect)
        self.note("kill of all" if has_power else "power loss of all")
        for machine in self._up():
            machine.kill(has_power=has_power)

    def _start(self) -> None:
        down = [machine for machine in self._machines.values() if not machine.is_up]
        if down:
            self.start(self._random.choice(down))

    def _stop(self) -> None:
        machine = self._one_to_end()
        if machine is not None and machine.is_ready and not machine.is_stopping and not machine.is_paused:
            self.note("stop", machine.node_id)
            machine.stop()

    def _pause(self) -> None:
        running = [machine for machine in self._up() if not machine.is_paused]
        if running:
            machine = self._random.choice(running)
            self.note("pause", machine.node_id)
            machine.pause()

    def _resume(self) -> None:
        paused = [machine for machine in self._up() if machine.is_paused]
        if paused:
            machine = self._random.choice(paused)
            self.note("resume", machine.node_id)
            machine.resume()
        self._resume_clients()

    def _pause_client(self) -> None:
        client = self._random.choice(self._clients)
        self.note("pause of a client", client)
        client.is_paused = True

    def _resume_clients(self) -> None:
        for client in self._clients:
            if client.is_paused:
                self._loop.resume(client)

    def _step_clock(self) -> None:
        machine = self._random.choice(list(self._machines.values()))
        offset_ms = self._random.choice((0, *_CLOCK_STEPS_MS))
        self.note("clock step", machine.node_id, offset_ms)
        machine.step_clock(offset_ms)

    # Links.

    def _cut(self) -> None:
        source, target = self._pair()
        is_both = self._random.random() < 0.5
        self.note("cut" if is_both else "one-way cut", source, target)
        self._network.cut(source, target)
        if is_both:
            self._network.cut(target, source)

    def _partition(self) -> None:
        """Two sides, clients on either."""
        hosts = self._hosts()
        side = set(self._random.sample(hosts, self._random.randrange(1, len(hosts))))
        self.note("partition", *sorted(side))
        for a in hosts:
            for b in hosts:
                if (a in side) != (b in side):
                    self._cut_both(a, b)

    def _isolate_leader(self) -> None:
        """A leader, perhaps with its clients, is away from the other nodes."""
        leaders = self._leaders()
        if leaders:
            leader = self._machines[self._random.choice(leaders)]
            has_clients = self._random.random() < 0.5
            self.note("isolated leader", leader.node_id, has_clients)
            for machine in self._machines.values():
                if machine is not leader:
                    self._cut_both(leader.host, machine.host)
            if not has_clients:
                for client in self._clients:
                    self._cut_both(leader.host, client.host)

    def _heal(self) -> None:
        cuts = self._network.cuts
        if cuts:
            chosen = (
                cuts if self._random.random() < 0.5 else self._random.sample(cuts, self._random.randint(1, len(cuts)))
            )
            self.note("healed links", len(chosen))
            for source, target in chosen:
                self._network.heal(source, target)
        self._network.slow.clear()

    def _slow(self) -> None:
        source, target = self._pair()
        delay_s = self._random.uniform(0.005, _SLOW_MAX_S)
        self.note("slow link", source, target, f"{delay_s:.3f}")
        self._network.slow[source, target] = delay_s

    def _break_connections(self) -> None:
        a, b = self._pair()
        count = self._network.break_connections(a, b)
        if count:
            self.note("broken connections", a, b, count)

    # Disks.

    def _fail_disk(self) -> None:
        machine = self._one_to_end()
        if machine is not None:
            operation = self._random.choice(_DISK_OPERATIONS)
            self.note("disk error", machine.node_id, operation)
            machine.is_failure_expected = True
            self._suspect.add(machine.node_id)
            machine.files.fail(operation, skip=self._random.randrange(5), count=self._random.choice((1, 3, None)))

    def _swap_disk(self) -> None:
        """What is gone from all disks is gone, of the metadata too: one at a time, until all are whole again."""
        up = [machine for machine in self._up() if machine.is_ready and not machine.is_paused]
        if len(up) < len(self._machines) or self._lost:
            return
        machine = self._random.choice(up)
        if not self._may_lose_data(machine):
            return
        self._lost.add(machine.node_id)
        self._emptied.add(machine.node_id)
        others = [other for other in up if other is not machine]
        if self._random.random() < 0.5:
            # What it said last may arrive when another process is there, with nothing of what this one had.
            self._network.cut(machine.host, self._random.choice(others).host)
            self.later(self._random.uniform(0.05, 0.5), partial(self._empty, machine, machine.process))
        else:
            self._empty(machine, machine.process)

    def _empty(self, machine: Machine, process: Process | None) -> None:
        if machine.process is process and self._may_lose_data(machine):
            self._lost.add(machine.node_id)
            self._emptied.add(machine.node_id)
            self.note("emptied disk", machine.node_id)
            machine.kill(has_power=self._random.random() < 0.7)
            machine.swap_disk()
            # It is refused while the process that had the other disk is believed to live.
            machine.is_failure_expected = True
            self._suspect.discard(machine.node_id)
            machine.start()
