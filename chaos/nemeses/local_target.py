"""A cluster of this machine as the target of a nemesis: processes, disks, clocks and an operator, no links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeVar

from ...client.admin import Admin, AdminError
from ...local.cluster import LocalCluster
from ...protocol.rest.topic_overview import PartitionOverview
from ..faults.kinds import KINDS
from ..faults.node_faults import NodeFaults
from ..faults.orders import DiskOperation, Orders
from .fault import DamageFault, EmptiedDisk, PowerLoss
from .process_target import STOP_S, ProcessTarget
from .selectors import View

T = TypeVar("T")

_ANSWER_S: Final = 1.0
_ORDERED: Final = frozenset({"clocks", "disks"})


class LocalTarget(ProcessTarget):
    """`faults` has the `NodeFaults` of each node, made before the cluster was started; without them disks and clocks
    have no faults, and nodes lose no power; with them no other broker joins, which would not obey. `topics` are those
    under load."""

    def __init__(
        self, cluster: LocalCluster, topics: Sequence[str], faults: Mapping[int, NodeFaults] | None = None
    ) -> None:
        super().__init__(cluster.nodes, topics)
        self._cluster = cluster
        self._faults = dict(faults or {})

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(
            kind.name
            for kind in KINDS.values()
            if kind.is_real
            and kind.group != "links"
            and (not self._faults if kind.name == "join" else self._faults or kind.group not in _ORDERED)
        )

    def view(self, *, with_leaders: bool = True) -> View:
        nodes, slots = tuple(self._cluster.nodes), self._slots()
        if not with_leaders:
            return View(nodes=nodes, slots=slots)
        quorums = self._ask_all(Admin.get_quorum)
        known = [(told.epoch, told.leader_id) for told in quorums if told.leader_id is not None and told.leader_id >= 0]
        leaders = {name: one.leader for name, one in self._partitions().items() if one.leader is not None}
        return View(
            nodes=nodes,
            controller=max(known)[1] if known else None,
            leaders={name: leader for name, leader in leaders.items() if leader >= 0},
            slots=slots,
        )

    # Processes: what is done to a node is recorded in the folder of the cluster.

    def kill(self, node: int) -> None:
        self._cluster.kill_node(node)

    def stop(self, node: int) -> None:
        self._cluster.stop_node(node, timeout_s=STOP_S)

    def begin_start(self, node: int) -> None:
        self._cluster.begin_start(node)

    def is_in_sync(self) -> bool:
        # A node that has just been started is in the ISR until the controller has seen its new registration: what it
        # says of itself counts too.
        ready = self._ask_all(lambda admin: admin.get_ready(caught_up=True).is_ok)
        if len(ready) < len(self._cluster.nodes) or not all(ready):
            return False
        partitions = self._partitions().values()
        return bool(partitions) and all(set(one.isr) >= set(one.replicas) for one in partitions)

    # Disks and clocks.

    def order(self, node: int, orders: Orders) -> None:
        self._faults_of(node).order(*orders.disk, clock_offset_ms=orders.clock_offset_ms)

    def fired(self, node: int) -> Counter[DiskOperation]:
        return self._faults_of(node).fired()

    def clock_steps(self, node: int) -> int:
        return self._faults_of(node).clock_steps()

    def damage(self, node: int, fault: DamageFault, random: Random) -> Mapping[str, Any]:
        data = self._cluster.nodes[node].data
        match fault:
            case PowerLoss():
                dropped = self._faults_of(node).drop_unsynced()
                return {"dropped": {str(path.relative_to(data)): size for path, size in dropped.items()}}
            case EmptiedDisk():
                self._cluster.empty_node(node)
                if node in self._faults:
                    self._faults[node].forget_synced()
                return {}
            case _:
                return super().damage(node, fault, random)

    # What an operator does.

    def admins(self) -> Sequence[str]:
        nodes = self._cluster.nodes.items()
        return tuple(node.admin for node_id, node in nodes if node.admin is not None and self.state(node_id) == "up")

    def join(self) -> int:
        return self._cluster.add_node().id

    def leave(self, node: int) -> None:
        self._cluster.stop_node(node, timeout_s=STOP_S)
        self._cluster.forget_node(node)

    def _slots(self) -> tuple[str, ...]:
        return ()

    def _faults_of(self, node: int) -> NodeFaults:
        if node not in self._faults:
            raise self._no_orders(node)
        return self._faults[node]

    def _partitions(self) -> dict[str, PartitionOverview]:
        """Of topics under load, by `t-0`, as the node says that knows the latest epochs."""

        def tell(admin: Admin) -> dict[str, PartitionOverview]:
            return {
                f"{topic}-{one.partition}": one
                for topic in self._topics
                for told in admin.list_topic_overviews(topic=topic, offsets=False).topics
                for one in told.partitions or ()
            }

        latest: dict[str, PartitionOverview] = {}
        for told in self._ask_all(tell):
            for name, one in told.items():
                if name not in latest or _epochs(one) > _epochs(latest[name]):
                    latest[name] = one
        return latest

    def _ask_all(self, ask: Callable[[Admin], T]) -> list[T]:
        """Of each node that runs; one that does not answer, or refuses, is left out."""
        answers = []
        for url in self.admins():
            with Admin(url, timeout_s=_ANSWER_S) as admin, suppress(AdminError):
                answers.append(ask(admin))
        return answers


def _epochs(one: PartitionOverview) -> tuple[int, int]:
    return one.leader_epoch, one.partition_epoch
