"""A cluster of this machine as the target of a nemesis: processes, disks, clocks and an operator, no links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeVar

from ...client.admin import Admin, AdminError
from ...local.cluster import LocalCluster
from ...local.errors import ClusterError
from ...local.readiness import wait_ready
from ...protocol.rest.topic_overview import PartitionOverview
from ..faults.damaged_files import cut_end, flip_bit
from ..faults.kinds import KINDS
from ..faults.node_faults import NodeFaults
from ..faults.orders import DiskOperation, Orders
from ..links.link import CutMode, Link
from .fault import BitFlip, DamageFault, EmptiedDisk, PowerLoss, Truncation
from .selectors import View
from .target import NodeState

T = TypeVar("T")

_ANSWER_S: Final = 1.0
# A stop in good order takes longer where no controller answers; then the node is killed.
STOP_S: Final = 20.0
_ORDERED: Final = frozenset({"clocks", "disks"})


class LocalTarget:
    """`faults` has the `NodeFaults` of each node, made before the cluster was started; without them disks and clocks
    have no faults, and nodes lose no power; with them no other broker joins, which would not obey. `topics` are those
    under load."""

    def __init__(
        self, cluster: LocalCluster, topics: Sequence[str], faults: Mapping[int, NodeFaults] | None = None
    ) -> None:
        self._cluster = cluster
        self._faults = dict(faults or {})
        self._topics = tuple(topics)

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

    # Links: there are none that could be broken.

    def cut(self, links: Sequence[Link], mode: CutMode) -> None:  # noqa: ARG002 - as every target
        raise self._no_links()

    def slow(self, links: Sequence[Link], latency_ms: int, jitter_ms: int) -> None:  # noqa: ARG002
        raise self._no_links()

    def limit(self, links: Sequence[Link], kilobytes_s: int) -> None:  # noqa: ARG002
        raise self._no_links()

    def reset(self, links: Sequence[Link]) -> None:  # noqa: ARG002
        raise self._no_links()

    def heal(self, links: Sequence[Link]) -> None:  # noqa: ARG002
        raise self._no_links()

    def round_trips_ms(self, links: Sequence[Link]) -> Mapping[Link, float | None]:  # noqa: ARG002
        raise self._no_links()

    def is_reset(self, link: Link) -> bool:  # noqa: ARG002
        raise self._no_links()

    # Processes.

    def state(self, node: int) -> NodeState:
        one = self._cluster.nodes.get(node)
        if one is None or not one.is_running:
            return "down"
        return "paused" if one.is_paused else "up"

    def kill(self, node: int) -> None:
        self._cluster.kill_node(node)

    def pause(self, node: int) -> None:
        self._cluster.pause_node(node)

    def resume(self, node: int) -> None:
        self._cluster.resume_node(node)

    def stop(self, node: int) -> None:
        self._cluster.stop_node(node, timeout_s=STOP_S)

    def begin_start(self, node: int) -> None:
        self._cluster.begin_start(node)

    def wait_ready(self, nodes: Sequence[int], *, timeout_s: float) -> None:
        wait_ready(tuple(self._cluster.nodes[node] for node in nodes), timeout_s=timeout_s)

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
                return {}
            case BitFlip():
                return flip_bit(data, self._topics, random)
            case Truncation():
                return cut_end(data, self._topics, fault.size_bytes)
            case _:
                raise AssertionError(fault)

    # What an operator does.

    def admins(self) -> Sequence[str]:
        nodes = self._cluster.nodes.items()
        return tuple(node.admin for node_id, node in nodes if node.admin is not None and self.state(node_id) == "up")

    def topics(self) -> Sequence[str]:
        return self._topics

    def join(self) -> int:
        return self._cluster.add_node().id

    def leave(self, node: int) -> None:
        self._cluster.stop_node(node, timeout_s=STOP_S)
        self._cluster.forget_node(node)

    def _slots(self) -> tuple[str, ...]:
        return ()

    def _faults_of(self, node: int) -> NodeFaults:
        if node not in self._faults:
            raise ClusterError(f"node {node} was not started to obey orders: it has no NodeFaults")
        return self._faults[node]

    def _no_links(self) -> ClusterError:
        return ClusterError("the links of this cluster go through no proxies, and cannot be broken")

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
