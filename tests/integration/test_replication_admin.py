"""Python clients that move replicas and leaders, unchanged: kafka-python for both, confluent-kafka for leaders.

confluent-kafka has no reassignments; aiokafka's admin client has neither.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic
from waiting import wait_for

from penstock.client.cluster_metadata import ask_metadata
from penstock.local.cluster import LocalCluster
from penstock.protocol.errors import ErrorCode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(180),
    # kafka-python leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

DEADLINE_S = 60.0
PREFERRED = 0


@pytest.fixture(autouse=True)
def collected_here() -> Iterator[None]:
    """What kafka-python leaves open is closed within its own test, where the warning is expected."""
    yield
    gc.collect()


class World:
    """A cluster of three nodes, and the two clients."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.kafka_python: Any = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
        self.confluent = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})

    def create(self, topic: str, *replicas: int) -> TopicPartition:
        self.kafka_python.create_topics([NewTopic(topic, replica_assignments={0: list(replicas)})])
        wait_for(lambda: self.partition(topic) is not None)
        return TopicPartition(topic, 0)

    @contextmanager
    def without(self, node_id: int) -> Iterator[None]:
        """That node is killed, and the clients know of it. Whatever fails, later tests have the whole cluster again."""
        # It asks all its life the broker that it has chosen for changes.
        self.kafka_python.close()
        self.cluster.kill_node(node_id)
        try:
            wait_for(lambda: node_id not in ask_metadata(self.confluent).brokers, f"node {node_id} is fenced")
            left = [node.address for node in self.cluster.nodes.values() if node.id != node_id]
            self.kafka_python = KafkaAdminClient(bootstrap_servers=left)
            yield
        finally:
            self.cluster.begin_start(node_id)
            self.cluster.wait_ready()

    def partition(self, topic: str) -> Any:
        """As confluent-kafka describes it; None before it is known."""
        return ask_metadata(self.confluent, topic).topics[topic].partitions.get(0)

    def wait_settled(self, partition: TopicPartition, *replicas: int) -> None:
        """Until these are the replicas, all in sync, and nothing moves any more."""

        def settled() -> bool:
            found = self.partition(partition.topic)
            return list(found.replicas) == list(replicas) and sorted(found.isrs) == sorted(replicas)

        wait_for(settled)
        wait_for(lambda: self.kafka_python.list_partition_reassignments() == {})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    with LocalCluster(folder, node_count=3) as cluster:
        yield cluster


@pytest.fixture
def world(cluster: LocalCluster) -> Iterator[World]:
    world = World(cluster)
    yield world
    world.kafka_python.close()


def test_kafka_python_moves_adds_and_removes_replicas(world: World, topic: str) -> None:
    partition = world.create(topic, 1, 2)
    for replicas in ([3, 2], [3, 2, 1], [1]):
        assert world.kafka_python.alter_partition_reassignments({partition: replicas}) == {partition: None}
        world.wait_settled(partition, *replicas)


def test_kafka_python_is_told_what_cannot_be_reassigned(world: World, topic: str) -> None:
    partition, absent = world.create(topic, 1, 2), TopicPartition(topic, 7)
    answers = world.kafka_python.alter_partition_reassignments({partition: [1, 4711], absent: [1]})
    assert codes(answers) == {
        partition: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        absent: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    answers = world.kafka_python.alter_partition_reassignments({partition: None})
    assert codes(answers) == {partition: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}


def test_kafka_python_sees_and_cancels_what_waits_for_a_node_that_is_gone(world: World, topic: str) -> None:
    partition = world.create(topic, 1, 2)
    world.wait_settled(partition, 1, 2)
    with world.without(3):
        assert world.kafka_python.alter_partition_reassignments({partition: [2, 3]}) == {partition: None}
        expected = {"replicas": [2, 3, 1], "adding_replicas": [3], "removing_replicas": [1]}
        for asked in (None, [partition]):
            assert world.kafka_python.list_partition_reassignments(asked) == {partition: expected}
        assert world.kafka_python.alter_partition_reassignments({partition: None}) == {partition: None}
        # As in Apache Kafka the order is that of the reassignment, without what it was to add.
        world.wait_settled(partition, 2, 1)


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_clients_elect_preferred_leaders(world: World, topic: str, client: str) -> None:
    partition = world.create(topic, 1, 2, 3)
    world.wait_settled(partition, 1, 2, 3)
    world.kafka_python.alter_partition_reassignments({partition: [2, 3, 1]})
    world.wait_settled(partition, 2, 3, 1)
    assert world.partition(topic).leader == 1
    # The second time none is needed, which both clients tell in their own ways.
    for expected in (None, "ELECTION_NOT_NEEDED"):
        if client == "kafka-python":
            answer = world.kafka_python.elect_leaders(PREFERRED, {topic: [0]})
            (code,) = (one.error_code for result in answer.replica_election_results for one in result.partition_result)
            assert code == (ErrorCode.NONE if expected is None else ErrorCode.ELECTION_NOT_NEEDED)
        else:
            elected = world.confluent.elect_leaders(ElectionType.PREFERRED, [ConfluentPartition(topic, 0)])
            (error,) = elected.result(DEADLINE_S).values()
            assert (None if error is None else name_of(error)) == expected
        wait_for(lambda: world.partition(topic).leader == 2)


def codes(answers: Any) -> dict[TopicPartition, int]:
    """What kafka-python makes an exception's class of."""
    return {partition: error.errno for partition, error in answers.items()}


def name_of(error: Any) -> str:
    cause = error.args[0] if isinstance(error, KafkaException) else error
    return str(cause.name())
