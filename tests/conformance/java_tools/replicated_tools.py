"""What the checks of replication work with: the tools, told of all nodes of a cluster, and its nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.client.clock import wait_until
from penstock.local.readiness import wait_ready

from ..suite import Node
from .tools import Tools, require

CHANGE_TIMEOUT_S: Final = 90.0
"""Apache Kafka fences a killed broker after nine seconds, and each answer of a tool takes seconds of Java."""
_ANSWER_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.2
# That a killed node refuses connections is no news.
_SILENT: Final = {"log_level": 0}
_REPLICAS = re.compile(r"Partition: (\d+)\s.*\tReplicas: ([\d,]+)")

Replicas = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedTools:
    """For one check."""

    tools: Tools
    nodes: Mapping[int, Node]

    def __call__(self, tool: str, *arguments: str | int, stdin: str = "", check: bool = True) -> str:
        """See Tools."""
        return self.tools(tool, *arguments, stdin=stdin, check=check)

    def new_topic(self, *assignment: Replicas, suffix: str = "", **configs: str) -> str:
        """A topic whose partitions have these replicas, the preferred leader first; all of them are in sync."""
        topic = self.tools.name + suffix
        options = (("--config", f"{name.replace('_', '.')}={value}") for name, value in configs.items())
        placed = ",".join(":".join(map(str, replicas)) for replicas in assignment)
        given = [argument for option in options for argument in option]
        self("topics", "--create", "--topic", topic, "--replica-assignment", placed, *given)
        self.wait_in_sync(topic)
        return topic

    def write(self, what: str, content: object) -> str:
        """The path of a file with this as JSON."""
        file: Path = self.tools.work / f"{self.tools.name}-{what}.json"
        file.write_text(json.dumps(content))
        return str(file)

    def leaders(self, topic: str) -> dict[int, int]:
        """By partition, as some node says; -1: none."""
        return {number: partition.leader for number, partition in self._partitions(topic).items()}

    def end_offset(self, topic: str) -> int:
        """Of partition 0, below which everything can be read; 0 while it cannot be told."""
        consumer = Consumer({"bootstrap.servers": self.tools.bootstrap, "group.id": "none", **_SILENT})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_ANSWER_TIMEOUT_S)
        except KafkaException:
            return 0
        finally:
            consumer.close()
        return int(end)

    def described_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """By partition, as kafka-topics says."""
        found = _REPLICAS.findall(self("topics", "--describe", "--topic", topic))
        return {int(partition): tuple(map(int, replicas.split(","))) for partition, replicas in found}

    def states(self, *flags: str) -> dict[str, list[str]]:
        """By topic, the lines about its partitions that kafka-topics prints with these flags, tabs as blanks."""
        found: dict[str, list[str]] = {}
        for line in self("topics", "--describe", *flags).splitlines():
            if match := re.match(r"\tTopic: (\S+)\tPartition:", line):
                found.setdefault(match[1], []).append(" ".join(line.split()))
        return found

    def wait_in_sync(self, topic: str) -> None:
        """Until every node says that all replicas are."""

        def in_sync() -> bool:
            known = [self._partitions(topic, node) for node in self.nodes.values()]
            return all(known) and all(
                partition.leader >= 0 and len(partition.isrs) == len(partition.replicas)
                for partitions in known
                for partition in partitions.values()
            )

        self.wait(in_sync, f"not all replicas of {topic} are in sync")

    def wait_leader(self, topic: str, leader: int) -> None:
        """Of partition 0; -1: none."""
        self.wait(lambda: self.leaders(topic).get(0) == leader, f"{topic}-0 is not led by {leader}")

    def wait_in_sync_replicas(self, topic: str, wanted: Replicas) -> None:
        """Of partition 0."""

        def in_sync() -> bool:
            partition = self._partitions(topic).get(0)
            return partition is not None and sorted(partition.isrs) == sorted(wanted)

        self.wait(in_sync, f"the replicas in sync of {topic}-0 are not {list(wanted)}")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Fails the check with this sentence when the condition does not come to hold."""
        require(wait_until(condition, timeout_s=CHANGE_TIMEOUT_S, interval_s=_POLL_S), what)

    def kill(self, node_id: int) -> None:
        self.nodes[node_id].process.kill()

    def start(self, node_id: int) -> None:
        """Returns once the node serves clients."""
        process = self.nodes[node_id].process
        process.start()
        wait_ready((process,), timeout_s=CHANGE_TIMEOUT_S)

    def start_all(self) -> None:
        """Those that were killed."""
        for node_id, node in self.nodes.items():
            if not node.process.is_running:
                self.start(node_id)

    def folder(self, node_id: int, topic: str, partition: int = 0) -> Path:
        """Where a node has its replica."""
        return self.nodes[node_id].process.data / f"{topic}-{partition}"

    def _partitions(self, topic: str, node: Node | None = None) -> dict[int, Any]:
        bootstrap = self.tools.bootstrap if node is None else node.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap, **_SILENT})
        try:
            found = admin.list_topics(topic, timeout=_ANSWER_TIMEOUT_S).topics[topic]
        except KafkaException:
            # No controller answers while a quorum is elected: the caller asks again, until its time is over.
            return {}
        return found.partitions if found.error is None else {}
