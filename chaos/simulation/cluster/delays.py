"""Nothing fails, it only takes longer: answers that come late, and disks that are slow for a while.

A request whose *answer* is held up has been obeyed, while others between the same nodes overtake its answer: the node
that waits for it acts on stale state. A slow disk syncs long after the records came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from ....protocol.apis import ApiKey
from .cluster_faults import ClusterFaults
from .machine import BROKER_PORT, CONTROLLER_PORT, Machine
from .network import Network
from .transport import StreamTransport

# How likely the answer of a request to a node is to be late.
_CHANCES: Final[Mapping[int, float]] = {
    ApiKey.ALTER_PARTITION: 0.1,
    ApiKey.BROKER_HEARTBEAT: 0.005,
    ApiKey.FETCH: 0.002,
    ApiKey.PRODUCE: 0.002,
    ApiKey.ADD_PARTITIONS_TO_TXN: 0.1,
    ApiKey.TXN_OFFSET_COMMIT: 0.02,
    ApiKey.END_TXN: 0.02,
    ApiKey.WRITE_TXN_MARKERS: 0.05,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 0.1,
}
# By how many seconds: within what clients wait for, within a session.
_HOLDS_S: Final = ((0.02, 0.3), (0.02, 0.3), (0.3, 2.0))
_PORTS: Final = (BROKER_PORT, CONTROLLER_PORT)
# Of a step, that a disk becomes slow; for how long it is, and by how much each job of it takes longer at most.
_SLOW_DISK_CHANCE: Final = 0.02
_SLOW_DISK_S: Final = (0.5, 4.0)
_JOB_MAX_S: Final = (0.1, 0.5, 1.0)


class Delays:
    """`begin` comes when `Ambushes.begin` has been called; `step` is called several times a second."""

    def __init__(
        self, faults: ClusterFaults, machines: Mapping[int, Machine], *, network: Network, random: Random
    ) -> None:
        self._faults = faults
        self._machines = tuple(machines.values())
        self._network = network
        self._random = random
        # By the end that will answer.
        self._held: dict[StreamTransport, float] = {}
        self._other: Callable[[StreamTransport, bytes], float] | None = None
        self._answer_weight = faults.profile.weight("late-answer")
        self._disk_chance = _SLOW_DISK_CHANCE * faults.profile.weight("slow-disk")

    def begin(self) -> None:
        if self._answer_weight:
            self._other, self._network.hold_up = self._network.hold_up, self._hold_up

    def step(self) -> None:
        random = self._random
        if not self._disk_chance or random.random() >= self._disk_chance:
            return
        machine = random.choice(self._machines)
        process = machine.process
        if process is not None:
            process.job_delay_max_s = random.choice(_JOB_MAX_S)
            duration_s = random.uniform(*_SLOW_DISK_S)
            self._faults.note("slow disk", machine.node_id, f"{process.job_delay_max_s:.1f}", f"{duration_s:.3f}")
            self._faults.later(duration_s, process.end_delays)

    def end(self) -> None:
        """All is as fast as ever; what is late arrives when it does."""
        self._held.clear()
        for machine in self._machines:
            if machine.process is not None:
                machine.process.end_delays()

    def _hold_up(self, end: StreamTransport, data: bytes) -> float:
        delay_s = self._held.pop(end, 0.0)
        key = int.from_bytes(data[4:6], "big")
        # Answers have no key: what they have there may look like one.
        if key in _CHANCES and end.peer[1] in _PORTS and self._random.random() < _CHANCES[key] * self._answer_weight:
            hold_s = self._random.uniform(*self._random.choice(_HOLDS_S))
            self._faults.note("late answer", ApiKey(key).name, end.process.host, end.peer[0], f"{hold_s:.3f}")
            self._held[end.peer_end] = hold_s
        return delay_s + (0.0 if self._other is None else self._other(end, data))
