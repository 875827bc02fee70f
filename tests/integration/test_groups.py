"""Groups of real consumers on three real nodes: who joins, leaves, is killed or paused, and who coordinates them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from group_members import DEADLINE_S, MemberProcess
from waiting import wait_for

from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NODE_COUNT = 3
PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    # A short first wait: no test here starts hundreds of consumers.
    properties = {"group.initial.rebalance.delay.ms": "200"}
    with LocalCluster(
        tmp_path_factory.mktemp("groups") / "cluster", node_count=NODE_COUNT, properties=properties
    ) as cluster:
        yield cluster


class Load:
    """A topic, and numbered records in it."""

    def __init__(self, cluster: LocalCluster, topic: str, partitions: int = PARTITIONS) -> None:
        self.topic = topic
        self._bootstrap = cluster.bootstrap
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
        self._partitions = partitions
        self.count = 0
        self.admin.create_topics([NewTopic(topic, partitions, NODE_COUNT)])[topic].result(DEADLINE_S)

    def send(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.topic, str(self.count).encode(), partition=self.count % self._partitions)
            self.count += 1
        assert self._producer.flush(DEADLINE_S) == 0

    @property
    def places(self) -> set[tuple[int, int]]:
        return {(number % self._partitions, number // self._partitions) for number in range(self.count)}

    def committed(self, bootstrap: str, group: str) -> int:
        """How many records are committed in all."""
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        try:
            wanted = [TopicPartition(self.topic, partition) for partition in range(self._partitions)]
            return sum(max(one.offset, 0) for one in consumer.committed(wanted, timeout=DEADLINE_S))
        finally:
            consumer.close()

    def owners(self, group: str) -> dict[str, set[int]]:
        """The partitions of each member, by its id; a partition that two have fails the test."""
        # A new client each time: librdkafka's (2.16) asks the coordinator that it once found, whatever that says.
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        (future,) = admin.describe_consumer_groups([group]).values()
        try:
            members = future.result(DEADLINE_S).members
        except KafkaException:
            # The coordinator is moving.
            return {}
        owned = {
            member.member_id: {one.partition for one in member.assignment.topic_partitions or ()} for member in members
        }
        times = Counter(partition for partitions in owned.values() for partition in partitions)
        assert not times or max(times.values()) == 1, owned
        return owned


@pytest.fixture
def load(cluster: LocalCluster, topic: str) -> Load:
    return Load(cluster, topic)


def sizes(load: Load, group: str) -> list[int]:
    return sorted(len(partitions) for partitions in load.owners(group).values())


def test_members_share_join_leave_and_are_killed_and_every_record_is_read(cluster: LocalCluster, load: Load) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(MemberProcess(cluster.bootstrap, load.topic, load.topic))
        load.send(200)
        wait_for(lambda: sizes(load, load.topic) == [4], "one member with all partitions")
        second = stack.enter_context(MemberProcess(cluster.bootstrap, load.topic, load.topic))
        wait_for(lambda: sizes(load, load.topic) == [2, 2], "two members with two partitions each")
        load.send(200)
        second.wait_read(50)
        second.leave()
        wait_for(lambda: sizes(load, load.topic) == [4], "one member with all partitions")
        third = stack.enter_context(MemberProcess(cluster.bootstrap, load.topic, load.topic))
        wait_for(lambda: sizes(load, load.topic) == [2, 2], "two members with two partitions each")
        load.send(200)
        third.wait_read(50)
        first.kill()
        wait_for(lambda: sizes(load, load.topic) == [4], "all partitions with the one that is left")
        load.send(200)
        wait_for(lambda: load.committed(cluster.bootstrap, load.topic) == load.count, "everything committed")
        assert {*first.read, *second.read, *third.read} == load.places


def test_a_paused_member_loses_its_partitions_and_takes_part_again(cluster: LocalCluster, load: Load) -> None:
    with (
        MemberProcess(cluster.bootstrap, load.topic, load.topic) as paused,
        MemberProcess(cluster.bootstrap, load.topic, load.topic) as other,
    ):
        wait_for(lambda: sizes(load, load.topic) == [2, 2], "two members with two partitions each")
        load.send(100)
        paused.wait_read(1)
        paused.pause()
        wait_for(lambda: sizes(load, load.topic) == [4], "all partitions with the one that is left")
        load.send(100)
        wait_for(lambda: load.committed(cluster.bootstrap, load.topic) == load.count, "everything committed")
        paused.resume()
        wait_for(lambda: sizes(load, load.topic) == [2, 2], "two members with two partitions each")
        load.send(100)
        wait_for(lambda: load.committed(cluster.bootstrap, load.topic) == load.count, "everything committed")
        assert {*paused.read, *other.read} == load.places


def test_two_partitions_leave_two_of_four_members_idle_until_they_are_needed(cluster: LocalCluster, topic: str) -> None:
    load = Load(cluster, topic, partitions=2)
    with ExitStack() as stack:
        members = [stack.enter_context(MemberProcess(cluster.bootstrap, topic, topic)) for _ in range(4)]
        wait_for(lambda: sizes(load, topic) == [0, 0, 1, 1], "two idle members")
        load.send(100)
        wait_for(lambda: load.committed(cluster.bootstrap, topic) == load.count, "everything committed")
        busy = [member for member in members if member.read]
        assert len(busy) == 2
        for member in busy:
            member.leave()
        wait_for(lambda: sizes(load, topic) == [1, 1], "the idle ones at work")
        load.send(100)
        wait_for(lambda: load.committed(cluster.bootstrap, topic) == load.count, "everything committed")
        assert {place for member in members for place in member.read} == load.places


def test_every_group_gets_everything(cluster: LocalCluster, load: Load) -> None:
    groups = [f"{load.topic}-{number}" for number in range(4)]
    with ExitStack() as stack:
        members = [stack.enter_context(MemberProcess(cluster.bootstrap, load.topic, group)) for group in groups]
        load.send(400)
        for group, member in zip(groups, members, strict=True):
            wait_for(lambda group=group: load.committed(cluster.bootstrap, group) == load.count, "everything committed")  # type: ignore[misc]
            assert set(member.read) == load.places


def coordinator(load: Load, group: str) -> int:
    (future,) = load.admin.describe_consumer_groups([group]).values()
    return int(future.result(DEADLINE_S).coordinator.id)


@pytest.mark.parametrize("is_graceful", [True, False], ids=["SIGTERM", "SIGKILL"])
def test_a_group_outlives_the_node_that_coordinates_it(cluster: LocalCluster, load: Load, *, is_graceful: bool) -> None:
    with (
        MemberProcess(cluster.bootstrap, load.topic, load.topic) as one,
        MemberProcess(cluster.bootstrap, load.topic, load.topic) as two,
    ):
        wait_for(lambda: sizes(load, load.topic) == [2, 2], "two members with two partitions each")
        load.send(200)
        wait_for(lambda: load.committed(cluster.bootstrap, load.topic) == load.count, "everything committed")
        lost = coordinator(load, load.topic)
        if is_graceful:
            cluster.stop_node(lost)
        else:
            cluster.kill_node(lost)
        load.send(200)
        wait_for(lambda: load.committed(cluster.bootstrap, load.topic) == load.count, "everything committed")
        cluster.start_node(lost)
        load.send(200)
        wait_for(lambda: load.committed(cluster.bootstrap, load.topic) == load.count, "everything committed")
        assert {*one.read, *two.read} == load.places
        wait_for(lambda: sizes(load, load.topic) == [2, 2], "two members with two partitions each")
