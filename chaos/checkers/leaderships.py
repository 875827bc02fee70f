"""Whether those who led a partition were allowed to, by the metadata as they were committed, change after change.

What is judged holds under every fault: a leader is in sync; a new leader was in the ISR or ELR before, or was the
last known leader of a partition that has neither; every change of the leader raises the epoch. A process that took
a broker's place without a clean stop of the one before, with its disk or without, is in neither ISR nor ELR and leads
nothing at first (KIP-966), so it leads only after it was in sync again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

NO_LEADER = -1


class PartitionState(Struct, frozen=True, kw_only=True):
    """What the metadata say of one partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def heirs(self, replaced: Collection[int]) -> tuple[int, ...]:
        """Who may lead next, when the processes of these brokers are replaced: they may have lost what they had."""
        eligible = tuple(broker_id for broker_id in self.isr + self.elr if broker_id not in replaced)
        return eligible or self.last_known_elr


class ClusterState(Struct, frozen=True, kw_only=True):
    """After one committed change. `processes` names by broker the one that is it; partitions go by any name."""

    offset: int
    processes: Mapping[int, str]
    partitions: Mapping[str, PartitionState]


def judge_leaderships(history: Iterable[ClusterState], *, stopped_cleanly: Collection[str] = ()) -> list[str]:
    """Return a sentence for each violation. `stopped_cleanly` are processes whose successors have all they had."""
    return [
        f"at offset {after.offset}: {found}"
        for before, after in pairwise(history)
        for found in _judge(before, after, stopped_cleanly)
    ]


def _judge(before: ClusterState, after: ClusterState, stopped_cleanly: Collection[str]) -> Iterator[str]:
    replaced = {
        broker_id
        for broker_id, process in before.processes.items()
        if after.processes.get(broker_id, process) != process and process not in stopped_cleanly
    }
    for name, new in after.partitions.items():
        old = before.partitions.get(name)
        for broker_id in sorted(replaced & {*new.isr, *new.elr, new.leader}):
            yield f"the new process of broker {broker_id} is in the ISR or ELR of {name}, or leads it: {new}"
        if new.leader != NO_LEADER and new.leader not in new.isr:
            yield f"{name} is led by {new.leader}, which is not in sync: {new}"
        if old is None or old.leader == new.leader:
            continue
        if new.leader_epoch <= old.leader_epoch:
            yield f"{name} has another leader in the same epoch: {old}, then {new}"
        if new.leader not in (NO_LEADER, *old.heirs(replaced)):
            yield f"{name} is led by {new.leader}, which was not in sync before: {old}, then {new}"
