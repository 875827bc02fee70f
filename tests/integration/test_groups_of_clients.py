"""One group, many clients: librdkafka, the Java console consumer (each with both protocols), aiokafka and kafka-python.

What each Python client is told is timed by one clock: no partition is with two of them at any moment, but for those
that were killed or stood still, which cannot know. What the coordinator tells of a group never has a partition twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import combinations

import pytest
from client_members import DEADLINE_S, ConsoleMember, Holding, PythonMember
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from group_snapshots import GroupSnapshots
from waiting import wait_for

from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "200",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
}
CLASSIC = ("confluent-kafka:classic", "console:classic", "kafka-python:classic", "aiokafka:classic")
CONSUMER = ("confluent-kafka:consumer", "console:consumer", "confluent-kafka:consumer", "console:consumer")
# A live group that changes its protocol keeps its classic members. One of the new protocol is always there: were the
# last one gone, the group would be a classic one again, as which Apache Kafka too refuses it when it wakes up.
BOTH = (*CLASSIC[:3], "confluent-kafka:consumer", "console:consumer", CLASSIC[3])
AnyMember = PythonMember | ConsoleMember


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalCluster(tmp_path_factory.mktemp("clients") / "c", node_count=1, properties=PROPERTIES) as cluster:
        yield cluster.bootstrap


class Scene:
    """A topic, and groups that read it."""

    def __init__(self, bootstrap: str, topic: str, jars: KafkaJars, stack: ExitStack) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self._jars = jars
        self._stack = stack
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._partition_count = 0
        self.sent = 0
        self.members: list[AnyMember] = []
        self.gone: list[AnyMember] = []
        self.snapshots: GroupSnapshots | None = None

    def make_topic(self, partition_count: int) -> None:
        self._partition_count = partition_count
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.topic, partition_count, 1)])[self.topic].result(DEADLINE_S)

    def watch(self) -> None:
        """Look at the group of the topic's name all the time."""
        self.snapshots = self._stack.enter_context(GroupSnapshots(self.bootstrap, self.topic))

    def join(self, client: str, group: str | None = None) -> AnyMember:
        arguments = (self.bootstrap, self.topic, group or self.topic)
        member: AnyMember = (
            ConsoleMember(self._jars, client, *arguments)
            if client.startswith("console")
            else PythonMember(client, *arguments)
        )
        self._stack.enter_context(member)
        member.follow()
        self.members.append(member)
        return member

    def leave(self, member: AnyMember) -> None:
        self._remove(member)
        member.leave()

    def kill(self, member: AnyMember) -> None:
        self._remove(member)
        member.kill()

    def _remove(self, member: AnyMember) -> None:
        self.members.remove(member)
        self.gone.append(member)

    def wait_shared(self, *sizes: int) -> None:
        """So many partitions for each member, by the coordinator."""
        snapshots = self.snapshots
        assert snapshots is not None
        wait_for(lambda: snapshots.sizes() == sorted(sizes), lambda: f"shared as {sizes}: {snapshots.last}")

    def send(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.topic, b"", partition=self.sent % self._partition_count)
            self.sent += 1
        assert self._producer.flush(DEADLINE_S) == 0

    def send_and_wait(self, count: int) -> None:
        """Everything that was ever sent is read and committed."""
        self.send(count)
        self.wait_committed(self.topic)
        # What a member has printed may come after its commit.
        wait_for(
            lambda: {place for member in (*self.members, *self.gone) for place in member.read} == self.places,
            "every record that was sent is read",
        )

    def wait_committed(self, group: str) -> None:
        wait_for(lambda: self.committed(group) == self.sent, lambda: f"committed: {self.committed(group)}")

    @property
    def places(self) -> set[tuple[int, int]]:
        count = self._partition_count
        return {(number % count, number // count) for number in range(self.sent)}

    def committed(self, group: str) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            wanted = [TopicPartition(self.topic, partition) for partition in range(self._partition_count)]
            return sum(max(one.offset, 0) for one in consumer.committed(wanted, timeout=DEADLINE_S))
        finally:
            consumer.close()

    def check_owners(self) -> None:
        assert self.snapshots is not None
        assert not self.snapshots.violations, self.snapshots.violations
        knowing = [
            member
            for member in (*self.members, *self.gone)
            if isinstance(member, PythonMember) and not member.was_disturbed
        ]
        for one, other in combinations(knowing, 2):
            assert not overlaps(one.holdings, other.holdings)


def overlaps(some: Sequence[Holding], others: Sequence[Holding]) -> list[tuple[Holding, Holding]]:
    def is_before(one: Holding, other: Holding) -> bool:
        return one.end_s is not None and one.end_s <= other.start_s

    return [
        (one, other)
        for one in some
        for other in others
        if one.partition == other.partition and not is_before(one, other) and not is_before(other, one)
    ]


@pytest.fixture
def scene(bootstrap: str, topic: str, kafka_jars: KafkaJars) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(bootstrap, topic, kafka_jars, stack)


@pytest.mark.parametrize("clients", [CLASSIC, CONSUMER, BOTH], ids=["classic", "consumer", "both"])
def test_members_join_leave_are_killed_and_paused(scene: Scene, clients: Sequence[str]) -> None:
    count = len(clients)
    # Whatever the number of members is, each gets as many.
    partition_count = {4: 12, 6: 60}[count]
    scene.make_topic(partition_count)
    scene.watch()
    members = []
    for number, client in enumerate(clients, start=1):
        members.append(scene.join(client))
        # A member that joins while a group changes its protocol is told REBALANCE_IN_PROGRESS, as by Apache Kafka, and
        # aiokafka gives up then: in a live group that changes it, members join one after the other.
        if number in (1, 2) or clients == BOTH:
            scene.wait_shared(*[partition_count // number] * number)
            scene.send_and_wait(partition_count)
    scene.wait_shared(*[partition_count // count] * count)
    scene.send_and_wait(5 * partition_count)
    assert all(member.read for member in members)

    leaving, killed, paused = members[0], members[-1], members[-2]
    scene.leave(leaving)
    scene.wait_shared(*[partition_count // (count - 1)] * (count - 1))
    scene.send_and_wait(partition_count)
    scene.kill(killed)
    scene.wait_shared(*spread(partition_count, count - 2))
    scene.send_and_wait(partition_count)
    paused.pause()
    scene.wait_shared(*spread(partition_count, count - 3))
    scene.send_and_wait(partition_count)
    paused.resume()
    scene.wait_shared(*spread(partition_count, count - 2))
    scene.send_and_wait(partition_count)
    scene.check_owners()


def spread(partition_count: int, member_count: int) -> list[int]:
    return [(partition_count + number) // member_count for number in range(member_count)]


@pytest.mark.parametrize("clients", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
def test_two_partitions_leave_two_of_four_idle_who_take_over(scene: Scene, clients: Sequence[str]) -> None:
    scene.make_topic(2)
    scene.watch()
    members = [scene.join(client) for client in clients]
    scene.wait_shared(0, 0, 1, 1)
    busy: list[AnyMember] = []

    def are_two_busy() -> bool:
        # A client may ask for one more rebalance when it has heard of the others.
        before = [len(member.read) for member in members]
        scene.send_and_wait(40)
        busy[:] = [member for member, count in zip(members, before, strict=True) if len(member.read) > count]
        return len(busy) == 2

    wait_for(are_two_busy, lambda: f"two of four read: {len(busy)} did")
    scene.kill(busy[0])
    scene.leave(busy[1])
    scene.wait_shared(1, 1)
    scene.send_and_wait(40)
    idle = [member for member in members if member not in busy]
    assert all(member.read for member in idle)
    scene.check_owners()


def test_every_group_gets_everything_whichever_its_client(scene: Scene) -> None:
    scene.make_topic(4)
    groups = [f"{scene.topic}-{number}" for number, _ in enumerate(BOTH)]
    members = [scene.join(client, group) for client, group in zip(BOTH, groups, strict=True)]
    scene.send(200)
    for member, group in zip(members, groups, strict=True):
        scene.wait_committed(group)
        wait_for(lambda: len(member.read) >= len(scene.places), lambda: f"{member.read} printed")  # noqa: B023 - waited for here
        assert sorted(member.read) == sorted(scene.places)
