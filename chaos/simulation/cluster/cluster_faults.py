"""What goes wrong in a simulated cluster, and when: drawn from the seed, within what it promises to survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

from .damage_faults import DamageFaults
from .disk_faults import DISK_FAULTS, DiskFaults, DiskLosses
from .link_faults import LinkFaults
from .loop import SimulatedLoop
from .machine import Machine
from .network import Network
from .process import KERNEL, Process
from .profiles import DAMAGE, Profile
from .simulated_tier import SimulatedTier
from .tier_faults import TierFaults

_CLOCK_STEPS_MS = (-3_600_000, -60_000, -1_500, 1_500, 60_000, 3_600_000)
# For how long the active controller is stopped: within what others wait for, and far past any session.
_CONTROLLER_PAUSES_S = ((0.05, 1.0), (1.0, 4.0), (4.0, 15.0))
# Past the sessions of members and the transactions of producers.
_FREEZES_S = ((1.0, 4.0), (4.0, 12.0))


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
        has_caught_up: Callable[[int], bool],
        is_flushed: bool,
        is_replicated: bool,
        counts: Callable[[int], bool],
        may_count: Callable[[int], bool],
        leaders: Callable[[], list[int]],
        profile: Profile,
        active_controller: Callable[[], int | None],
        has_offline_directory: Callable[[Process], bool],
        on_crash_of_all: Callable[[], None],
        tier: SimulatedTier | None = None,
        is_compacted: Callable[[str], bool] | None = None,
    ) -> None:
        """`is_whole` says whether every replica is in sync, `has_caught_up` whether each of one node is that may lead,
        `is_flushed` that only what is synced is acknowledged, and `counts` whether a node is one of those that
        committed records have to be on, `may_count` whether it may be one without any other node knowing it yet.
        `on_crash_of_all` is called while no process runs. `is_compacted` says whether the policy
        of a topic is to compact it; without it no file is damaged."""
        self.counts: Counter[str] = Counter()
        self._machines = machines
        self._clients = tuple(clients)
        self._loop = loop
        self._network = network
        self._random = random
        self._trace = trace
        self._is_whole = is_whole
        self._has_caught_up = has_caught_up
        self._is_flushed = is_flushed
        self._is_replicated = is_replicated
        self._counts = counts
        self._may_count = may_count
        self._due: list[Callable[[], None]] = []
        self._is_healed = False
        self._to_restart: set[int] = set()
        self._profile = profile
        self._active_controller = active_controller
        self._has_offline_directory = has_offline_directory
        self._on_crash_of_all = on_crash_of_all
        self._losses = losses = DiskLosses()
        # Stopped for a time of their own, which nothing ends before: machines and clients.
        self._frozen: set[Process] = set()
        disks = DiskFaults(
            self, losses, machines,
            network=network, random=random, is_whole=is_whole, may_lose_data=self._may_lose_data,
        )  # fmt: skip
        self._tier = None if tier is None else TierFaults(self, tier)
        self._damage = None
        if is_compacted is not None and any(profile.weight(kind) for kind in DAMAGE):
            self._damage = DamageFaults(
                self, losses, machines,
                random=random, is_whole=is_whole, may_lose_data=self._may_lose_data, is_compacted=is_compacted,
            )  # fmt: skip
        links = LinkFaults(self, machines, clients, network=network, random=random, leaders=leaders)
        # With the kind of each (see `profiles.py`), and the chance at each step. What mends has none.
        self._actions: tuple[tuple[str | None, float, Callable[[], None]], ...] = (
            ("kill", 0.020, self._kill),
            ("power-loss", 0.020, self._lose_power),
            ("kill:all", 0.004, self._crash_all),
            (None, 0.100, self._start),
            ("stop", 0.012, self._stop),
            ("partition:link", 0.014, links.cut),
            ("partition", 0.008, links.partition),
            ("partition:leaders", 0.010, links.isolate_leader),
            (None, 0.060, links.heal),
            ("slow-link", 0.014, links.slow),
            ("connection-resets", 0.030, links.break_connections),
            ("pause", 0.014, self._pause),
            ("pause:controllers", 0.006, self._pause_active_controller),
            (None, 0.060, self._resume),
            ("client-pause", 0.006, self._pause_client),
            ("client-freeze", 0.006, self._freeze_client),
            ("clock-bump", 0.010, self._step_clock),
            ("disk-error", 0.008, disks.fail),
            ("failed-read", 0.010, disks.fail_read),
            ("no-descriptors", 0.010, disks.run_out_of_descriptors),
            ("emptied-disk", 0.008, disks.swap),
            ("emptied-directory", 0.012, disks.empty_directory),
            *(() if self._tier is None else self._tier.actions),
            *(() if self._damage is None else self._damage.actions),
        )

    @property
    def profile(self) -> Profile:
        return self._profile

    @property
    def has_disk_faults(self) -> bool:
        """Whether any disk has failed, or came back empty."""
        return any(self.counts[what] for what in DISK_FAULTS)

    def step(self) -> None:
        losses = self._losses
        if (losses.lost or losses.unreadable or losses.folders) and self.damaged_node is None and self._is_whole():
            losses.clear()
        for kind, chance, action in self._actions:
            if self._random.random() < chance * (1.0 if kind is None else self._profile.weight(kind)):
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
        if self._tier is not None:
            self._tier.heal()
        for source, target in self._network.cuts:
            self._network.heal(source, target)
        for machine in self._machines.values():
            machine.files.heal()
            machine.step_clock(0)
            if machine.is_paused:
                machine.resume()
        self._frozen.clear()
        self._resume_clients()
        # What a node could not read while its disk failed, it looks for again when it is started. A read that failed
        # once needs no restart, unless it took a log directory offline.
        self._to_restart = {
            node_id
            for node_id, machine in self._machines.items()
            if node_id in self._losses.suspect
            or (machine.process is not None and self._has_offline_directory(machine.process))
        }
        self.keep_up()

    @property
    def is_settled(self) -> bool:
        """No node is to be restarted any more, and no file is damaged."""
        return not self._to_restart and self.damaged_node is None

    @property
    def damaged_node(self) -> int | None:
        """The node of which a file is damaged and not made good yet."""
        return None if self._damage is None else self._damage.damaged_node

    def keep_up(self) -> None:
        # Until those that lost data have it again, a node that stops leaves the ISR to them.
        if self._to_restart and all(self._has_caught_up(node_id) for node_id in self._losses.lost - self._to_restart):
            for node_id in sorted(self._to_restart):
                machine = self._machines[node_id]
                if machine.is_ready and not machine.is_stopping:
                    machine.stop()
                elif machine.is_up and not machine.is_stopping:
                    machine.kill(has_power=True)
            self._to_restart.clear()
        for machine in self._machines.values():
            if not machine.is_up:
                machine.files.heal()
                machine.is_failure_expected = machine.node_id in self._losses.emptied
                machine.start()

    # Choices.

    def note(self, what: str, *details: object) -> None:
        """One fault more."""
        self.counts[what] += 1
        self._trace(f"fault {what} {' '.join(map(str, details))}")

    def up(self) -> list[Machine]:
        return [machine for machine in self._machines.values() if machine.is_up]

    def _crashable(self) -> list[Machine]:
        lost = self._losses.lost
        return [machine for machine in self.up() if not lost or machine.node_id in lost]

    def one_to_end(self) -> Machine | None:
        """Mostly a majority of voters stays."""
        up = self._crashable()
        if not up:
            return None
        machine = self._random.choice(up)
        may_lose_majority = self._random.random() < 0.2
        return machine if may_lose_majority or self._leaves_majority(machine) else None

    def _leaves_majority(self, machine: Machine) -> bool:
        if not machine.is_voter:
            return True
        voters = [one for one in self._machines.values() if one.is_voter]
        return 2 * sum(one.is_up and one is not machine for one in voters) > len(voters)

    # Processes and machines.

    def _kill(self) -> None:
        machine = self.one_to_end()
        if machine is not None:
            self.note("kill", machine.node_id)
            machine.kill(has_power=True)

    def _may_lose_power(self, machine: Machine) -> bool:
        return machine.node_id not in self._losses.suspect and (self._is_flushed or self._may_lose_data(machine))

    def _may_lose_data(self, machine: Machine) -> bool:
        """While all the others have everything and stay, or no partition counts on this one.

        One that a leader is about to count may be elected before what it lost is known, if that leader goes.
        """
        if not self._is_replicated:
            return False
        if not self._may_count(machine.node_id):
            return True
        others = [one for one in self._machines.values() if one is not machine]
        is_calm = not self._network.cuts and all(one.serves and not one.is_paused for one in others)
        return is_calm and (self._is_whole() or not self._counts(machine.node_id))

    def _lose_power(self) -> None:
        machine = self.one_to_end()
        if machine is not None and self._may_lose_power(machine):
            self._take_power(machine)

    def _take_power(self, machine: Machine) -> None:
        self.note("power loss", machine.node_id)
        self._losses.folders = True
        if not self._is_flushed and self._may_count(machine.node_id):
            self._losses.lost.add(machine.node_id)
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
            machine.is_failure_expected = machine.node_id in self._losses.emptied
            machine.start()

    def _crash_all(self) -> None:
        """And back in any order."""
        if not self._losses.lost:
            self.crash_all()

    def crash_all(self) -> None:
        """All at once; without power where none of them may forget what it acknowledged."""
        has_power = not self._is_flushed or bool(self._losses.suspect)
        self.note("kill of all" if has_power else "power loss of all")
        self._losses.folders |= not has_power
        for machine in self.up():
            machine.kill(has_power=has_power)
        self._on_crash_of_all()

    def _start(self) -> None:
        down = [machine for machine in self._machines.values() if not machine.is_up]
        if down:
            self.start(self._random.choice(down))

    def _stop(self) -> None:
        machine = self.one_to_end()
        if machine is not None:
            self.stop(machine)

    def stop(self, machine: Machine) -> bool:
        """SIGTERM, if this machine may end now."""
        if machine not in self._crashable() or not machine.is_ready or machine.is_stopping or machine.is_paused:
            return False
        self.note("stop", machine.node_id)
        machine.stop()
        return True

    def _pause(self) -> None:
        running = [machine for machine in self.up() if not machine.is_paused]
        if running:
            machine = self._random.choice(running)
            self.note("pause", machine.node_id)
            machine.pause()

    def _pause_active_controller(self) -> None:
        """SIGSTOP, for a time of its own: shorter than any session, or longer than all."""
        machine = self._machines.get(self._active_controller() or 0)
        if machine is not None and machine.is_up and not machine.is_paused and machine.process is not None:
            duration_s = self._random.uniform(*self._random.choice(_CONTROLLER_PAUSES_S))
            self.note("pause of active controller", machine.node_id, f"{duration_s:.3f}")
            machine.pause()
            self._freeze(machine.process, duration_s)

    def _freeze(self, process: Process, duration_s: float) -> None:
        self._frozen.add(process)

        def thaw() -> None:
            if process in self._frozen:
                self._frozen.discard(process)
                self._loop.resume(process)

        self.later(duration_s, thaw)

    def _resume(self) -> None:
        paused = [machine for machine in self.up() if machine.is_paused and machine.process not in self._frozen]
        if paused:
            machine = self._random.choice(paused)
            self.note("resume", machine.node_id)
            machine.resume()
        self._resume_clients()

    def _pause_client(self) -> None:
        client = self._random.choice(self._clients)
        self.note("pause of a client", client)
        client.is_paused = True

    def _freeze_client(self) -> None:
        """Until others have taken its place, as far as they can: then it goes on with what it had begun."""
        client = self._random.choice(self._clients)
        if not client.is_paused:
            duration_s = self._random.uniform(*self._random.choice(_FREEZES_S))
            self.note("freeze of a client", client, f"{duration_s:.3f}")
            client.is_paused = True
            self._freeze(client, duration_s)

    def _resume_clients(self) -> None:
        for client in self._clients:
            if client.is_paused and client not in self._frozen:
                self._loop.resume(client)

    def _step_clock(self) -> None:
        machine = self._random.choice(list(self._machines.values()))
        offset_ms = self._random.choice((0, *_CLOCK_STEPS_MS))
        self.note("clock step", machine.node_id, offset_ms)
        machine.step_clock(offset_ms)
