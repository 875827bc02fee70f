"""What goes wrong with the disks of a simulated cluster: of a machine as a whole, of one log directory, of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from errno import EMFILE
from functools import partial
from random import Random
from typing import Final, Protocol

from ....storage.disk.memory_nodes import Operation
from .machine import Machine
from .network import Network
from .process import Process

DISK_FAULTS: Final = ("disk error", "failed read", "no descriptors", "emptied disk", "emptied directory")
"""As they are counted."""
_OPERATIONS: Final[tuple[Operation, ...]] = ("write", "sync", "rename", "create", "read")
# What takes a descriptor.
_OPENING: Final[tuple[Operation, ...]] = ("open", "create", "read", "list")


@dataclass(slots=True)
class DiskLosses:
    """Machines whose disks are not what the cluster takes them for."""

    suspect: set[int] = field(default_factory=set)
    """May have forgotten what they were told to keep: they do not lose power any more."""
    lost: set[int] = field(default_factory=set)
    """Lost data since all was whole. Until it is again the others must not crash: the cluster cannot tell a crash that
    kept everything from one that did not."""
    emptied: set[int] = field(default_factory=set)
    unreadable: set[int] = field(default_factory=set)
    """Reads failed since all was whole: a replica that is damaged hands over to others, which must not be gone."""
    folders: bool = False
    """Power was lost since all was whole, and with it folders of logs that were not synced. A node of which one log
    directory fails then cannot tell whether they are there."""

    def clear(self) -> None:
        """All replicas are in sync again."""
        self.lost.clear()
        self.emptied.clear()
        self.unreadable.clear()
        self.folders = False


class FaultSchedule(Protocol):
    """What breaks a cluster, as faults of disks see it."""

    def note(self, what: str, *where: object) -> None:
        """Count a fault and trace it."""

    def up(self) -> list[Machine]:
        """Return the machines whose processes run."""

    def one_to_end(self) -> Machine | None:
        """Return a machine whose process may end now, or None."""

    def later(self, delay_s: float, happen: Callable[[], None]) -> None:
        """Let something happen in `delay_s` seconds, unless all is healed before."""


class DiskFaults:
    def __init__(
        self,
        faults: FaultSchedule,
        losses: DiskLosses,
        machines: Mapping[int, Machine],
        *,
        network: Network,
        random: Random,
        is_whole: Callable[[], bool],
        may_lose_data: Callable[[Machine], bool],
    ) -> None:
        self._faults = faults
        self._losses = losses
        self._machines = machines
        self._network = network
        self._random = random
        self._is_whole = is_whole
        self._may_lose_data = may_lose_data

    # Calls that fail.

    def fail(self) -> None:
        """Of all disks of a machine, or of one log directory, which goes offline alone."""
        machine = self._faults.one_to_end()
        if machine is not None and not (self._losses.folders and len(machine.log_directories) > 1):
            operation = self._random.choice(_OPERATIONS)
            under = self._random.choice(("", *machine.log_directories)) if len(machine.log_directories) > 1 else ""
            self._faults.note("disk error", machine.node_id, operation, under)
            machine.is_failure_expected = True
            self._losses.suspect.add(machine.node_id)
            machine.files.fail(
                operation, under=f"{under}/" if under else "",
                skip=self._random.randrange(5), count=self._random.choice((1, 3, None)),
            )  # fmt: skip

    def fail_read(self) -> None:
        """A few reads fail, once: the node goes on, and must retry what failed."""
        machine = self._faults.one_to_end()
        if machine is not None and not self._losses.emptied - {machine.node_id}:
            under = self._random.choice(machine.log_directories)
            count = self._random.choice((1, 1, 2, 5))
            self._faults.note("failed read", machine.node_id, under, count)
            # A node that starts, or a voter that reads its journal, may say that it cannot.
            machine.is_failure_expected = True
            self._losses.unreadable.add(machine.node_id)
            machine.files.fail("read", under=f"{under}/", skip=self._random.choice((0, 0, 1, 3, 10)), count=count)

    def run_out_of_descriptors(self) -> None:
        """EMFILE: for some calls no file can be opened."""
        machine = self._faults.one_to_end()
        if machine is not None:
            operation, count = self._random.choice(_OPENING), self._random.choice((1, 1, 3, 10))
            self._faults.note("no descriptors", machine.node_id, operation, count)
            machine.is_failure_expected = True
            machine.files.fail(operation, error=EMFILE, skip=self._random.choice((0, 0, 1, 3)), count=count)

    # Disks that come back empty.

    def swap(self) -> None:
        """What is gone from all disks is gone, of the metadata too: one at a time, until all are whole again."""
        self._lose(lambda machine: machine.swap_disk(), "emptied disk")

    def empty_directory(self) -> None:
        """One log directory of several."""
        number = self._random.randrange(3)

        def empty(machine: Machine) -> None:
            machine.empty_directory(machine.log_directories[number % len(machine.log_directories)])

        if len(next(iter(self._machines.values())).log_directories) > 1:
            self._lose(empty, "emptied directory")

    def _lose(self, empty: Callable[[Machine], None], what: str) -> None:
        up = [machine for machine in self._faults.up() if machine.is_ready and not machine.is_paused]
        if len(up) < len(self._machines) or self._losses.lost:
            return
        machine = self._random.choice(up)
        if not self._may_lose_data(machine) or self._is_another_unreadable(machine):
            return
        self._mark(machine)
        others = [other for other in up if other is not machine]
        if self._random.random() < 0.5:
            # What it said last may arrive when another process is there, with nothing of what this one had.
            self._network.cut(machine.host, self._random.choice(others).host)
            happen = partial(self._replace, machine, machine.process, empty, what)
            self._faults.later(self._random.uniform(0.05, 0.5), happen)
        else:
            self._replace(machine, machine.process, empty, what)

    def _is_another_unreadable(self, machine: Machine) -> bool:
        return any(
            other is not machine and (other.node_id in self._losses.unreadable or other.files.is_to_fail)
            for other in self._machines.values()
        )

    def _mark(self, machine: Machine) -> None:
        self._losses.lost.add(machine.node_id)
        self._losses.emptied.add(machine.node_id)

    def _replace(
        self, machine: Machine, process: Process | None, empty: Callable[[Machine], None], what: str
    ) -> None:  # fmt: skip
        if machine.process is process and self._may_lose_data(machine) and not self._is_another_unreadable(machine):
            self._mark(machine)
            self._faults.note(what, machine.node_id)
            machine.kill(has_power=self._random.random() < 0.7)
            empty(machine)
            # It is refused while the process that had the other disk is believed to live.
            machine.is_failure_expected = True
            self._losses.suspect.discard(machine.node_id)
            machine.start()
