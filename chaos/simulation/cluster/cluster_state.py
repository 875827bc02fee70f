"""The state of a simulated cluster, as faults and clients ask for it: who leads, who counts, whether all is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ....quorum.metadata.image import PartitionRegistration
from .consumer_members import Leadership
from .machine import Machine

OFFSETS_TOPIC = "__consumer_offsets"


class Registrations(Protocol):
    """The newest metadata of any node."""

    def registration(self, topic: str, index: int) -> PartitionRegistration | None: ...

    def is_awaited(self, topic: str, index: int, node_id: int) -> bool:
        """Whether any leader takes this node for one that may be in sync."""


class ClusterState:
    """By the newest metadata of any node, and by the machines themselves."""

    def __init__(
        self,
        machines: Mapping[int, Machine],
        judge: Registrations,
        places: Callable[[], Sequence[tuple[str, int]]],
    ) -> None:
        """`places` are the partitions that are looked at."""
        self._machines = machines
        self._judge = judge
        self._places = places

    def _registrations(self) -> list[PartitionRegistration | None]:
        return [self._judge.registration(topic, index) for topic, index in self._places()]

    # Nodes.

    def is_whole(self) -> bool:
        """Every node runs, and each partition's ISR has all of its replicas: topics differ in their factors."""
        return all(machine.serves for machine in self._machines.values()) and all(
            one is not None and one.leader >= 0 and set(one.isr) == set(one.replicas) for one in self._registrations()
        )

    def has_caught_up(self, node_id: int) -> bool:
        """The node has started, so that it is registered, and no replica of it could lead without what is committed.

        Each is in its partition's ISR, or no candidate to lead a partition that has no leader to catch up with.
        """
        machine = self._machines[node_id]
        return machine.serves and all(
            one is not None
            and (
                node_id not in one.replicas
                or node_id in one.isr
                or (one.leader < 0 and node_id not in _candidates(one))
            )
            for one in self._registrations()
        )

    def what_is_missing(self) -> str:
        down = [node_id for node_id, machine in self._machines.items() if not machine.is_ready]
        return f"nodes down: {down}; " + "; ".join(
            f"{topic}-{index} has no metadata"
            if one is None
            else f"{topic}-{index} has leader {one.leader}, replicas {one.replicas}, ISR {one.isr}, ELR {one.elr}, "
            f"last known ELR {one.last_known_elr}, directories {tuple(map(str, one.directories))}"
            for (topic, index), one in zip(self._places(), self._registrations(), strict=True)
        )

    def counts(self, node_id: int) -> bool:
        """Whether a node is one of those that committed records have to be on."""
        return any(one is None or node_id in _candidates(one) for one in self._registrations())

    def may_count(self, node_id: int) -> bool:
        """Whether it may be one without any other node knowing it yet."""
        return self.counts(node_id) or any(
            self._judge.is_awaited(topic, index, node_id) for topic, index in self._places()
        )

    # Leaders.

    def leaders(self) -> list[int]:
        return sorted({one.leader for one in self._registrations() if one is not None and one.leader >= 0})

    def leader_of(self, place: tuple[str, int]) -> int | None:
        registration = self._judge.registration(*place)
        return None if registration is None else registration.leader

    def group_coordinator(self) -> Leadership | None:
        registration = self._judge.registration(OFFSETS_TOPIC, 0)
        return None if registration is None else Leadership(registration.leader, registration.leader_epoch)


def _candidates(registration: PartitionRegistration) -> set[int]:
    """Who leads, and who may be elected."""
    return {registration.leader, *registration.isr, *registration.elr, *registration.last_known_elr}
