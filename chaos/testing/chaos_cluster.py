"""What a test holds in hand: a Kafka cluster of real processes that it can break, and that heals.

    with ChaosCluster() as cluster:
        topic = cluster.topic(partitions=1)
        with cluster.kill(cluster.leader(topic, 0)):
            …

Faults of links need toxiproxy's server (`penstock chaos install-toxiproxy` builds it); without one the cluster has all
other faults. Every fault holds from the call on and is healed by the end of its `with`, by `heal` of what the call
returned, or by `heal` of the cluster.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ...client.admin import Admin, AdminError
from ...local.preloaded_nodes import PreloadedNodes
from ..faults.preloaded_nodes import preload
from ..links.link import CutMode
from .breakable_nodes import WAIT_S, BreakableNodes
from .broker_properties import DEFAULTS, text_of
from .held_fault import HeldFault
from .nodes import make_nodes
from .topic_states import PartitionState

_REPLICAS: Final = 3
_NAME_MAX: Final = 80


class ChaosCluster(BreakableNodes):
    """Nodes 1 to `nodes`, started by `with` or `start`. Safe to share between threads, which wait for each other.

    `config` are broker properties of Kafka, over `DEFAULTS`. Data and logs of the nodes are in `folder`; without one
    they are in a temporary folder that goes when the cluster is closed. Raises ClusterError.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        config: Mapping[str, object] | None = None,
        client_slots: int = 1,
        folder: Path | None = None,
        seed: int = 0,
        preloaded: PreloadedNodes | None = None,
    ) -> None:
        """`client_slots` are groups of clients, of which one can be cut off while the others are not.

        Several clusters may share what starts their nodes, `preloaded`; without one the cluster has its own.
        """
        properties = {**DEFAULTS, **{key: text_of(value) for key, value in (config or {}).items()}}
        with ExitStack() as made:
            if folder is None:
                folder = Path(tempfile.mkdtemp(prefix="penstock-"))
                made.callback(shutil.rmtree, folder, ignore_errors=True)
            if preloaded is None:
                preloaded = preload()
                made.callback(preloaded.end)
            self._preloaded = preloaded
            self.folder = folder.resolve()
            breakable = make_nodes(
                self.folder / "cluster",
                node_count=nodes,
                client_slots=client_slots,
                properties=properties,
                preloaded=preloaded,
                seed=seed,
            )
            super().__init__(breakable, self.folder)
            made.callback(self._states.close)
            # All went well: what was made goes with the cluster.
            self._made = made.pop_all()
        self._is_started = False
        self._topic_prefix = "topic"
        self._topic_number = 0
        self._topics: list[str] = []

    # The cluster.

    def start(self) -> None:
        """Raises NodeFailedError, ClusterError."""
        self._nodes.start_all()
        self._is_started = True
        for node_id in self.nodes:
            self._nodes.node_faults(node_id).log_requests()
        self.timeline.begin()

    def close(self) -> None:
        """Kills what runs; nothing is kept but a folder that was given."""
        with self._turn:
            try:
                # A start that failed has left nothing running.
                if self._is_started:
                    self._is_started = False
                    self._nodes.end_all()
            finally:
                self._made.close()

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
        """`bootstrap.servers` of clients; of those in slot 0, where there are several."""
        return self._nodes.bootstrap()

    def bootstrap_of(self, slot: int) -> str:
        """`bootstrap.servers` of the clients of one slot. Raises ClusterError."""
        return self._nodes.bootstrap(slot)

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the nodes, of what their links go through, and of what starts them."""
        nodes = (node.process.pid for node in self._nodes.nodes.values() if node.process is not None)
        proxy = () if self._nodes.proxy_pid is None else (self._nodes.proxy_pid,)
        return (*nodes, *proxy, self._preloaded.pid)

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
            configs={key.replace("_", "."): text_of(value) for key, value in config.items()},
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

    def isolate_leader(
        self, topic: str, partition: int = 0, *, clients: bool = True, mode: CutMode = "silence"
    ) -> HeldFault:
        """The leader of a partition is cut off from the other nodes, and from clients unless `clients=False`.

        A client that still reaches it may stay with it as long as it is cut off, as with Apache Kafka: it leads, as
        far as it knows, and acknowledges what needs no other replica.
        """
        return self.isolate(self.wait_leader(topic, partition), clients=clients, mode=mode)

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


def _is_in_sync(partitions: Mapping[int, PartitionState], count: int = 1) -> bool:
    return len(partitions) >= count and all(one.is_in_sync for one in partitions.values())
