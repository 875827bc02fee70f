"""Whether what disks damage is found and made good in time, by nodes of which nothing else is wrong.

An index or a producer snapshot of a closed segment says nothing that the batches do not: the node's scrubber makes it
good by itself. Batches are repaired from a leader, which may be away for long until all is healed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from .damaged_file import DamagedFile
from .machine import Machine
from .process import Process

# Many rounds of the scrubber, over all logs of a node, and an election.
_MADE_GOOD_S: Final = 15.0


class DamageWatch:
    """`look` several times a second."""

    def __init__(self, machines: Iterable[Machine], *, now_s: Callable[[], float]) -> None:
        self.violations: list[str] = []
        self.is_healed = False
        """Nothing is wrong with other nodes any more."""
        self._machines = tuple(machines)
        self._now_s = now_s
        # By node, of what, in which process, since when.
        self._seen: dict[int, tuple[DamagedFile, Process | None, float]] = {}

    def look(self) -> None:
        for machine in self._machines:
            file = machine.damaged_file
            if file is None or (file.is_of_batches and not self.is_healed) or not machine.serves or machine.is_paused:
                self._seen.pop(machine.node_id, None)
                continue
            known = self._seen.get(machine.node_id)
            if known is None or known[0] is not file or known[1] is not machine.process:
                self._seen[machine.node_id] = file, machine.process, self._now_s()
            elif self._now_s() - known[2] > _MADE_GOOD_S:
                sentence = f"Damaged: {file.path} of node {machine.node_id} is not made good"
                if sentence not in self.violations:
                    self.violations.append(sentence)
