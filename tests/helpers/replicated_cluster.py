"""Real nodes with a topic of three replicas, of which two must be in sync, and a producer that writes steadily."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from cluster_views import metadata
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata
from metadata_history import read_history
from waiting import wait_for

from penstock.chaos.checkers.leaderships import ClusterState, judge_leaderships
from penstock.chaos.workloads.steady_records import SETTINGS, SteadyRecords
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster

DEADLINE_S = 90.0
TOPIC = "replicated"
PARTITIONS = 3
REPLICAS = 3
# A record each 10 ms, over all partitions.
RECORDS_BETWEEN_FAULTS = 100


class ReplicatedCluster:
    """What tests ask the cluster as clients do. It is started."""

    def __init__(
        self,
        cluster: LocalCluster,
        *,
        partitions: int = PARTITIONS,
        replicas: int = REPLICAS,
        configs: Mapping[str, str] | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """Creates the topic. `assignment` are the replicas of each partition, the preferred leader first."""
        self.cluster = cluster
        self.partitions = partitions
        self.replicas = replicas
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap}, logger=SILENT_LOGGER)
        config = {"min.insync.replicas": "2", **(configs or {})}
        if assignment is None:
            topic = NewTopic(TOPIC, partitions, replicas, config=config)
        else:
            topic = NewTopic(TOPIC, partitions, replica_assignment=list(map(list, assignment)), config=config)
        self._admin.create_topics([topic])[TOPIC].result(DEADLINE_S)
        self.wait_in_sync()

    def balance(self) -> dict[int, int]:
        """Wait until each node leads as many partitions as the others; who leads which, as `leaders`."""

        def is_balanced() -> bool:
            self.elect_preferred()
            return set(Counter(self.leaders().values()).values()) == {self.partitions // len(self.cluster.nodes)}

        wait_for(is_balanced, "each node leads as many partitions as the others")
        return self.leaders()

    def elect_preferred(self) -> None:
        """The first replica of each partition leads then, if it is in sync."""
        partitions = [TopicPartition(TOPIC, index) for index in range(self.partitions)]
        self._admin.elect_leaders(ElectionType.PREFERRED, partitions).result(DEADLINE_S)

    def create_topic(self, name: str, replicas: Sequence[int]) -> None:
        """Create another one, with one partition, and wait until its replicas are in sync."""
        topic = NewTopic(name, 1, replica_assignment=[list(replicas)], config={"min.insync.replicas": "2"})
        self._admin.create_topics([topic])[name].result(DEADLINE_S)

    def writer(self, **settings: str | int) -> SteadyRecords:
        """For a `with` statement. `settings` are librdkafka's beside the usual ones."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return SteadyRecords(self.cluster.bootstrap, TOPIC, partitions=self.partitions, settings={**SETTINGS, **named})

    def leaders(self) -> dict[int, int]:
        """By partition, -1 for none, as one node tells."""
        return {index: int(one.leader) for index, one in self._described().items()}

    def replicas_of(self, partition: int) -> tuple[int, ...]:
        """Where they are, in the order of preference."""
        return tuple(map(int, self._described()[partition].replicas))

    def wait_in_sync(self) -> None:
        """Until every node says that each partition has all of its replicas in sync, and a leader."""
        wait_for(lambda: all(map(self.is_in_sync, self.cluster.nodes)), "all replicas in sync")

    def is_in_sync(self, asked_id: int) -> bool:
        """Whether all replicas are, with a leader for each partition, as that node tells."""
        node = self.cluster.nodes[asked_id]
        try:
            told = [one for one in metadata(node.address).topics if one.name == TOPIC]
        except (ConnectionError, TimeoutError) as error:
            if not node.is_running:
                raise node.failure("ended") from error
            return False
        return bool(told) and all(
            len(one.isr_nodes) == self.replicas and one.leader_id >= 0 for one in told[0].partitions
        )

    def check(self, writer: SteadyRecords) -> None:
        """Nothing was given up, and what was acknowledged is there, once, in order."""
        assert not writer.errors, writer.errors[0]
        findings = writer.judge(self.cluster.bootstrap, timeout_s=DEADLINE_S)
        assert not findings, "\n".join(map(str, findings))

    def history(self) -> list[ClusterState]:
        """By the disk that has most of it."""
        return max((read_history(node.data) for node in self.cluster.nodes.values()), key=len)

    def check_leaderships(self, *, kills: int = 0) -> None:
        """Every process that took another's place did so after SIGKILL; so often at least."""
        history = self.history()
        findings = judge_leaderships(history)
        assert not findings, "\n".join(findings)
        replaced = [
            broker_id
            for before, after in pairwise(history)
            for broker_id, process in before.processes.items()
            if after.processes.get(broker_id) != process
        ]
        assert len(replaced) >= kills, "a fault that did not happen shows nothing"

    def check_replicas_equal(self, topic: str = TOPIC, partitions: int | None = None) -> None:
        """After a stop: all batches of all replicas, wherever their segments begin."""
        for partition in range(self.partitions if partitions is None else partitions):
            self.check_equal(f"{topic}-{partition}", list(self.cluster.nodes))

    def check_equal(self, partition: str, replicas: Sequence[int]) -> None:
        """After a stop: all batches of a partition (`topic-index`) on the nodes that have it."""
        first, *others = (_stored_bytes(self.cluster.nodes[one].data / partition) for one in replicas)
        assert first, f"{partition} is empty on node {replicas[0]}"
        assert all(other == first for other in others), f"{partition} differs between nodes {replicas}"

    def _described(self) -> Mapping[int, PartitionMetadata]:
        return ask_metadata(self._admin, TOPIC).topics[TOPIC].partitions


def _stored_bytes(log: Path) -> bytes:
    return b"".join(segment.read_bytes() for segment in sorted(log.glob("*.log")))


def is_soak() -> bool:
    return os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"


def repetitions(sample: int, soak: int) -> int:
    """How often a fault is repeated: `PENSTOCK_TEST_REPETITIONS`, or as the profile says."""
    return int(os.environ.get("PENSTOCK_TEST_REPETITIONS", soak if is_soak() else sample))


def draw_generator(place: str) -> random.Random:
    """Seeded anew, or with `PENSTOCK_TEST_SEED`; the output says how to repeat it."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
    sys.stdout.write(f"replay: PENSTOCK_TEST_SEED={seed} pytest {place}\n")
    return random.Random(seed)


def say(*words: object) -> None:
    """One line of what happened, for the reader of the output."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
