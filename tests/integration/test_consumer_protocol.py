"""librdkafka's consumers of the protocol of KIP-848 on a real node, alone and together with classic ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.client.clock import wait_until
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DEADLINE_S = 60.0
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalCluster(tmp_path_factory.mktemp("consumers") / "c", node_count=1, properties=PROPERTIES) as cluster:
        yield cluster.bootstrap


class Members:
    """Consumers of one group, which poll by turns."""

    def __init__(self, bootstrap: str, group: str, stack: ExitStack) -> None:
        self._bootstrap = bootstrap
        self.group = group
        self._stack = stack
        self.read: list[tuple[str | None, int | None, int | None]] = []
        self._members: list[Consumer] = []

    def join(self, *topics: str, protocol: str = "consumer") -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self.group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                **({"partition.assignment.strategy": "cooperative-sticky"} if protocol == "classic" else {}),
            }
        )
        self._stack.enter_context(closing(consumer))
        consumer.subscribe(list(topics))
        self._members.append(consumer)
        return consumer

    def leave(self, consumer: Consumer) -> None:
        self._members.remove(consumer)
        consumer.close()

    def poll_until(self, condition: Callable[[], bool], what: str) -> None:
        def is_met() -> bool:
            for member in self._members:
                message = member.poll(0.02)
                if message is not None:
                    assert message.error() is None, message.error()
                    self.read.append((message.topic(), message.partition(), message.offset()))
            return condition()

        assert wait_until(is_met, timeout_s=DEADLINE_S, interval_s=0.0), f"no {what} within {DEADLINE_S:.0f} s"

    def wait_shared(self, *sizes: int) -> None:
        """So many partitions for each, and none twice."""

        def owned() -> list[list[tuple[str, int]]]:
            return [[(one.topic, one.partition) for one in member.assignment()] for member in self._members]

        self.poll_until(lambda: sorted(map(len, owned())) == sorted(sizes), f"assignment of {sizes}")
        flat = [one for partitions in owned() for one in partitions]
        assert len(flat) == len(set(flat))


@pytest.fixture
def members(bootstrap: str, topic: str) -> Iterator[Members]:
    with ExitStack() as stack:
        yield Members(bootstrap, f"group-{topic}", stack)


def make_topics(bootstrap: str, *names: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        future.result(DEADLINE_S)


def fill(bootstrap: str, topics: Sequence[str], partitions: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for topic in topics:
        for number in range(count):
            producer.produce(topic, str(number).encode(), partition=number % partitions)
    assert producer.flush(DEADLINE_S) == 0


def group_type(bootstrap: str, group: str) -> ConsumerGroupType:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    types = {one.group_id: one.type for one in admin.list_consumer_groups().result(DEADLINE_S).valid}
    found = types[group]
    assert isinstance(found, ConsumerGroupType)
    return found


def test_members_share_join_and_leave_and_every_record_is_read_once(
    bootstrap: str, topic: str, members: Members
) -> None:
    make_topics(bootstrap, topic, partitions=4)
    fill(bootstrap, [topic], 4, 100)
    first = members.join(topic)
    members.wait_shared(4)
    members.poll_until(lambda: len(members.read) == 100, "first hundred records")
    second = members.join(topic)
    members.wait_shared(2, 2)
    fill(bootstrap, [topic], 4, 100)
    members.poll_until(lambda: len(members.read) == 200, "second hundred records")
    members.leave(second)
    members.wait_shared(4)
    fill(bootstrap, [topic], 4, 100)
    members.poll_until(lambda: len(members.read) == 300, "third hundred records")
    members.leave(first)
    third = members.join(topic)
    members.wait_shared(4)
    assert {one.offset for one in third.committed(third.assignment(), timeout=DEADLINE_S)} == {75}
    assert len(set(members.read)) == 300


def test_an_expression_reads_what_matches_and_what_comes_later(bootstrap: str, topic: str, members: Members) -> None:
    make_topics(bootstrap, f"{topic}-a", f"{topic}-b", f"other-{topic}", partitions=2)
    member = members.join(f"^{topic}-.*")
    members.wait_shared(4)
    assert {one.topic for one in member.assignment()} == {f"{topic}-a", f"{topic}-b"}
    make_topics(bootstrap, f"{topic}-c", partitions=1)
    members.wait_shared(5)


def test_a_live_group_changes_its_protocol_there_and_back(bootstrap: str, topic: str, members: Members) -> None:
    make_topics(bootstrap, topic, partitions=4)
    fill(bootstrap, [topic], 4, 40)
    members.join(topic, protocol="classic")
    members.wait_shared(4)
    members.poll_until(lambda: len(members.read) == 40, "first records")
    assert group_type(bootstrap, members.group) is ConsumerGroupType.CLASSIC
    consumer = members.join(topic)
    members.wait_shared(2, 2)
    assert group_type(bootstrap, members.group) is ConsumerGroupType.CONSUMER
    fill(bootstrap, [topic], 4, 40)
    members.poll_until(lambda: len(set(members.read)) == 80, "records of both")
    members.leave(consumer)
    members.wait_shared(4)
    assert group_type(bootstrap, members.group) is ConsumerGroupType.CLASSIC
    fill(bootstrap, [topic], 4, 40)
    members.poll_until(lambda: len(set(members.read)) == 120, "records of the one that is left")
