"""What a test holds in hand: a Kafka cluster of real processes that it can break, and that heals.

    with ChaosCluster() as cluster:
        topic = cluster.topic(partitions=1)
        with cluster.kill(cluster.leader(topic, 0)):
            …

Every fault holds from the call on and is healed by the end of its `with`, by `heal` of what the call returned, or by
`heal` of the cluster.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Final, Self

from ...client import clock
from ...client.admin import Admin, AdminError
from ...local.errors import ClusterError
from ...local.readiness import wait_ready
from ..faults.orders import DiskFault, DiskOperation, full_disk
from ..faults.request_faults import Point, Sender
from .held_fault import HeldFault
from .plain_nodes import PlainNodes
from .request_orders import Barrier, RequestOrders
from .timeline import Timeline
from .topic_states import Address, PartitionState, TopicStates

WAIT_S: Final = 60.0
"""How long a wait lasts at most: what a test waits for takes seconds, and more only on a machine that is too busy."""
DEFAULTS: Final[Mapping[str, str]] = {
    # What a cluster decides after a time, it decides soon: a test waits for it.
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    # Each partition costs files on every node, and one test has few groups.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
_REPLICAS: Final = 3
_NAME_MAX: Final = 80


class ChaosCluster:
    """Nodes 1 to `nodes`, started by `with` or `start`. Safe to share between threads, which wait for each other.

    `config` are broker properties of Kafka, over `DEFAULTS`. Data and logs of the nodes are in `folder`; without one
    they are in a temporary folder that goes when the cluster is closed. Raises ClusterError.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        config: Mapping[str, object] | None = None,
        folder: Path | None = None,
        seed: int = 0,
    ) -> None:
        self._made_folder = Path(tempfile.mkdtemp(prefix="penstock-")) if folder is None else None
        self.folder = (folder or self._made_folder or Path()).resolve()
        self._turn = RLock()
        properties = {**DEFAULTS, **{key: _text(value) for key, value in (config or {}).items()}}
        self._nodes = PlainNodes(self.folder / "cluster", node_count=nodes, properties=properties, seed=seed)
        self._states = TopicStates()
        self.timeline = Timeline()
        self.faults = RequestOrders(
            lambda: [self._nodes.node_faults(node_id) for node_id in self.nodes],
            self.folder,
            topic_id=lambda topic: self._states.latest(self._answering(), topic).topic_id,
            note=self.timeline.note,
            turn=self._turn,
        )
        self._held: list[HeldFault] = []
        self._down: list[HeldFault] = []
        self._disks: dict[int, list[tuple[tuple[DiskFault, ...], int]]] = {node_id: [] for node_id in self.nodes}
        self._topic_prefix = "topic"
        self._topic_number = 0
        self._topics: list[str] = []

    # The cluster.

    def start(self) -> None:
        """Raises NodeFailedError, ClusterError."""
        for node_id in self.nodes:
            self._nodes.node_faults(node_id).log_requests()
        self._nodes.start_all()
        self.timeline.begin()

    def close(self) -> None:
        """Kills what runs; nothing is kept but a folder that was given."""
        with self._turn:
            self._nodes.end_all()
            self._states.close()
            if self._made_folder is not None:
                shutil.rmtree(self._made_folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """`bootstrap.servers` of clients."""
        return self._nodes.bootstrap()

    @property
    def nodes(self) -> tuple[int, ...]:
        """Their ids."""
        return tuple(self._nodes.nodes)

    def state(self, node: int) -> str:
        """`up`, `paused` or `down`."""
        return self._nodes.state(self._known(node))

    def log(self, node: int) -> Path:
        """The file that a node logs to."""
        return self._nodes.nodes[self._known(node)].log

    def topic(self, *, partitions: int = 1, replication_factor: int | None = None, **config: object) -> str:
        """Makes a new topic, led and in sync everywhere, and returns its name.

        Without `replication_factor` it has three replicas, or as many as there are nodes. Configs are Kafka's, with `_`
        for each point: `cleanup_policy="compact"`, `min_insync_replicas=2`. Raises ClusterError.
        """
        with self._turn:
            self._topic_number += 1
            name = f"{self._topic_prefix}-{self._topic_number}"
            self._topics.append(name)
        answering = self._answering()
        self._states.create(
            tuple(answering.values()),
            name,
            partitions=partitions,
            replicas=min(_REPLICAS, len(self.nodes)) if replication_factor is None else replication_factor,
            configs={key.replace("_", "."): _text(value) for key, value in config.items()},
        )

        def is_known() -> bool:
            told = self._states.of_each(answering, name).values()
            return len(told) == len(answering) and all(_is_in_sync(one.partitions, partitions) for one in told)

        self._wait(is_known, f"every node knows topic {name} in sync")
        return name

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Which node leads, as the nodes that run say; None while there is no leader."""
        found = self._states.latest(self._answering(), topic).partitions.get(partition)
        return None if found is None else found.leader

    # Waiting.

    def wait_leader(
        self, topic: str, partition: int = 0, *, other_than: int | None = None, timeout_s: float = WAIT_S
    ) -> int:
        """Waits until a node that runs leads the partition, another one than `other_than`; returns it."""
        found: list[int] = []

        def is_led() -> bool:
            leader = self.leader(topic, partition)
            if leader is None or leader == other_than or self.state(leader) != "up":
                return False
            found.append(leader)
            return True

        other = "" if other_than is None else f" other than node {other_than}"
        self._wait(is_led, f"{topic}-{partition} has a leader{other}", timeout_s)
        return found[0]

    def wait_in_sync(self, *topics: str, timeout_s: float = WAIT_S) -> None:
        """Waits until every replica of these topics, or of all that `topic` made for this test, is in sync."""
        for topic in topics or tuple(self._topics):
            self._wait(
                lambda: _is_in_sync(self._states.latest(self._answering(), topic).partitions),  # noqa: B023
                f"every replica of {topic} is in sync",
                timeout_s,
            )

    def wait_lag(self, group: str, lag: int = 0, *, timeout_s: float = WAIT_S) -> None:
        """Waits until a group is at most `lag` records behind in all partitions together in which it has committed."""
        last: list[int | None] = [None]

        def is_near() -> bool:
            last[0] = self._lag(group)
            return last[0] is not None and last[0] <= lag

        def what() -> str:
            told = "it has committed nothing" if last[0] is None else f"it is {last[0]} behind"
            return f"group {group} is at most {lag} records behind: {told}"

        self._wait(is_near, what, timeout_s)

    # Faults of nodes.

    def kill(self, node: int) -> HeldFault:
        """SIGKILL; healed, the node is started again."""
        with self._turn:
            self._nodes.kill(self._known(node))
            return self._hold_down(f"node {node} killed", (node,))

    def stop(self, node: int) -> HeldFault:
        """SIGTERM, in good order; healed, the node is started again."""
        with self._turn:
            self._nodes.stop(self._known(node))
            return self._hold_down(f"node {node} stopped", (node,))

    def restart(self, node: int) -> None:
        """SIGTERM and a start; returns once the node serves clients."""
        self.stop(node).heal()

    def pause(self, node: int) -> HeldFault:
        """SIGSTOP: connections stand, and nothing is answered. Healed, the node goes on."""
        with self._turn:
            self._nodes.pause(self._known(node))
            # A signal takes effect a moment after it was sent.
            self._wait(lambda: self.state(node) != "up", f"node {node} stands still")
            return self._hold(f"node {node} paused", lambda: self._resume(node))

    def resume(self, node: int) -> None:
        """Ends a pause."""
        self._resume(self._known(node))

    def power_loss(self, *nodes: int) -> HeldFault:
        """The nodes are killed and lose what they have not synced; healed, they are started again.

        What Kafka and Penstock promise of it: records are safe on `min.insync.replicas` - 1 losses at a time, or with
        `flush.messages=1`.
        """
        with self._turn:
            for node in nodes:
                self._nodes.kill(self._known(node))
            dropped = 0
            for node in nodes:
                dropped += sum(self._nodes.node_faults(node).drop_unsynced().values())
            names = ", ".join(f"node {node}" for node in nodes)
            return self._hold_down(f"{names} without power, {dropped} bytes lost", nodes)

    def fill_disk(self, node: int, *, path: str = "*") -> HeldFault:
        """No room for anything more in files that match `path`."""
        return self._order_disk(node, full_disk(path), 0, f"disk of node {node} full for {path}")

    def fail_disk(
        self,
        node: int,
        operation: DiskOperation = "write",
        *,
        error: str | None = "EIO",
        delay_ms: int = 0,
        path: str = "*",
        count: int | None = None,
    ) -> HeldFault:
        """Calls of the disk fail with the error of that name, or only wait where it is None. Healed, a node that ended
        for it is started again."""
        fault = DiskFault(operation=operation, path=path, error=error, delay_ms=delay_ms, count=count)
        slow = f" after {delay_ms} ms" if delay_ms else ""
        return self._order_disk(node, (fault,), 0, f"{operation} on node {node} → {error or 'done'}{slow} for {path}")

    def shift_clock(self, node: int, offset_ms: int) -> HeldFault:
        """The wall clock of a node is that far from the machine's."""
        return self._order_disk(node, (), offset_ms, f"clock of node {node} shifted by {offset_ms} ms")

    # Faults of requests: more in `faults`.

    def barrier(
        self,
        api: str,
        *,
        at: Point = "before-ack",
        n: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        sender: Sender = "client",
    ) -> Barrier:
        """Requests, `n` of them or all, wait at the point until `release` or the end of the `with`."""
        return self.faults.barrier(api, at=at, n=n, topic=topic, client_id=client_id, sender=sender)

    # All.

    def heal(self) -> None:
        """Ends every fault, starts what is down, and waits until all nodes know each other."""
        with self._turn:
            self.faults.heal()
            for held in reversed(self._held):
                held.heal()
            # All nodes that are down begin before one of them is waited for: it may need the others.
            for held in self._down:
                held.holds = False
                self.timeline.note(f"ends: {held.what}")
            self._held.clear()
            self._down.clear()
            for node in self.nodes:
                if self.state(node) == "paused":
                    self._resume(node)
            self._start([node for node in self.nodes if self.state(node) == "down"])
            self._nodes.cluster.wait_ready()

    # What surrounds a test.

    def begin_test(self, name: str) -> None:
        """Topics are named after the test, and the time line begins."""
        letters = re.sub(r"[^a-zA-Z0-9._-]+", "-", name)[:_NAME_MAX].strip("-")
        self._topic_prefix = letters or "topic"
        self._topics.clear()
        self.timeline.begin()

    def end_test(self) -> None:
        """Heals, and deletes the topics of the test. Raises ClusterError when that is not possible."""
        with self._turn:
            if self._held or self._down or any(self.state(node) != "up" for node in self.nodes):
                self.heal()
            else:
                self.faults.heal()
            if self._topics:
                self._states.delete(tuple(self._answering().values()), self._topics)
                self._topics.clear()

    def story(self) -> str:
        """The time line since the test began: faults, leaders, and the requests of clients as the nodes saw them."""
        nodes = self._nodes.nodes.values()
        admins = [node.admin for node in nodes if node.admin is not None and self.state(node.id) == "up"]
        return self.timeline.text(
            admins, {node_id: self._nodes.node_faults(node_id).request_log for node_id in self.nodes}
        )

    def _known(self, node: int) -> int:
        if node not in self._nodes.nodes:
            raise ClusterError(f"there is no node {node}: expected one of {', '.join(map(str, self.nodes))}")
        return node

    def _answering(self) -> dict[int, Address]:
        return {
            node_id: (node.host, node.port)
            for node_id, node in self._nodes.nodes.items()
            if self._nodes.state(node_id) == "up"
        }

    def _hold(self, what: str, heal: Callable[[], None]) -> HeldFault:
        held = self._held_fault(what, heal, self._held)
        self._held.append(held)
        return held

    def _hold_down(self, what: str, nodes: Iterable[int]) -> HeldFault:
        held = self._held_fault(what, lambda: self._start(nodes), self._down)
        self._down.append(held)
        return held

    def _held_fault(self, what: str, heal: Callable[[], None], among: list[HeldFault]) -> HeldFault:
        self.timeline.note(f"begins: {what}")

        def end() -> None:
            with self._turn:
                heal()
                if held in among:
                    among.remove(held)
                self.timeline.note(f"ends: {what}")

        held = HeldFault(what, end)
        return held

    def _start(self, nodes: Iterable[int]) -> None:
        down = [node for node in nodes if self.state(node) == "down"]
        for node in down:
            self._nodes.begin_start(node)
        # Without a majority of the controllers no node gets ready: the last one that is started waits for all.
        if not self._nodes.cluster.missing_voters():
            wait_ready(tuple(self._nodes.nodes[node] for node in down), timeout_s=WAIT_S)

    def _resume(self, node: int) -> None:
        if self.state(node) == "paused":
            self._nodes.resume(node)

    def _order_disk(self, node: int, faults: tuple[DiskFault, ...], offset_ms: int, what: str) -> HeldFault:
        with self._turn:
            orders = self._disks[self._known(node)]
            ordered = (faults, offset_ms)
            orders.append(ordered)
            self._give_orders(node)

            def heal() -> None:
                orders[:] = [one for one in orders if one is not ordered]
                self._give_orders(node)
                if self.state(node) == "down":
                    self._start((node,))

            return self._hold(what, heal)

    def _give_orders(self, node: int) -> None:
        orders = self._disks[node]
        self._nodes.node_faults(node).order(
            *(fault for faults, _ in orders for fault in faults), clock_offset_ms=sum(offset for _, offset in orders)
        )

    def _lag(self, group: str) -> int | None:
        for node in self._nodes.nodes.values():
            if node.admin is None or self.state(node.id) != "up":
                continue
            try:
                with Admin(node.admin) as admin:
                    lags = admin.list_consumer_lags(group).data
            except AdminError:
                continue
            if not lags or any(one.lag is None for one in lags):
                return None
            return sum(one.lag or 0 for one in lags)
        return None

    def _wait(self, condition: Callable[[], bool], what: str | Callable[[], str], timeout_s: float = WAIT_S) -> None:
        if not clock.wait_until(condition, timeout_s=timeout_s):
            raise ClusterError(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")


def _is_in_sync(partitions: Mapping[int, PartitionState], count: int = 1) -> bool:
    return len(partitions) >= count and all(one.is_in_sync for one in partitions.values())


def _text(value: object) -> str:
    """As Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
