"""What is read twice and what is lost when a consumer's process dies between reading and committing, client by client.

At most once: committed before the work. At least once: committed after it. Automatic commits: each client has its own
moment, which decides between the two. The process is killed, so nothing is committed that was not before.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_members import DEADLINE_S, PythonMember
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.client.clock import wait_until
from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

RECORD_COUNT = 40
SESSION_MS = 1_500
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "300",
}
CLIENTS = ("confluent-kafka:classic", "confluent-kafka:consumer", "kafka-python:classic", "aiokafka:classic")
NEVER_MS = 3_600_000
SOON_MS = 100


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalCluster(tmp_path_factory.mktemp("delivery") / "c", node_count=1, properties=PROPERTIES) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """A topic of one partition with `RECORD_COUNT` records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for _ in range(RECORD_COUNT):
        producer.produce(topic, b"", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    return topic


class Group:
    """One after the other its members read the topic."""

    def __init__(self, bootstrap: str, topic: str, client: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._client = client

    def member(self, auto_commit_ms: int = 0) -> PythonMember:
        return PythonMember(
            self._client,
            self._bootstrap,
            self._topic,
            self._topic,
            session_ms=SESSION_MS,
            auto_commit_ms=auto_commit_ms,
        )

    def committed(self) -> int | None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": self._topic})
        try:
            (one,) = consumer.committed([TopicPartition(self._topic, 0)], timeout=DEADLINE_S)
            return None if one.offset < 0 else one.offset
        finally:
            consumer.close()

    def wait_committed(self, offset: int) -> None:
        assert wait_until(lambda: self.committed() == offset, timeout_s=DEADLINE_S, interval_s=0.05), self.committed()

    def check_successor_reads_from(self, offset: int) -> None:
        """All the rest, once and in order, and commits come at the place where it is."""
        with self.member() as successor:
            rest = list(range(offset, RECORD_COUNT))
            assert offsets(successor, len(rest)) == rest
            successor.commit()
            assert self.committed() == RECORD_COUNT
            successor.leave()


def offsets(member: PythonMember, count: int) -> list[int]:
    return [offset for _, offset in member.read_next(count)]


@pytest.fixture(params=CLIENTS)
def group(request: pytest.FixtureRequest, bootstrap: str, filled: str) -> Group:
    return Group(bootstrap, filled, request.param)


def test_at_least_once_reads_again_what_was_not_committed_and_loses_nothing(group: Group) -> None:
    with group.member() as dying:
        assert offsets(dying, 10) == list(range(10))
        dying.commit()
        assert offsets(dying, 5) == list(range(10, 15))
        dying.kill()
    assert group.committed() == 10
    group.check_successor_reads_from(10)


def test_at_most_once_loses_what_was_committed_and_reads_nothing_again(group: Group) -> None:
    with group.member() as dying:
        assert offsets(dying, 10) == list(range(10))
        # What comes next would be the work on these ten.
        dying.commit()
        dying.kill()
    assert group.committed() == 10
    group.check_successor_reads_from(10)


def test_without_any_commit_everything_is_read_again(group: Group) -> None:
    with group.member(auto_commit_ms=NEVER_MS) as dying:
        assert offsets(dying, 15) == list(range(15))
        dying.kill()
    assert group.committed() is None
    group.check_successor_reads_from(0)


def test_a_clean_end_commits_what_was_read(group: Group) -> None:
    with group.member(auto_commit_ms=NEVER_MS) as leaving:
        assert offsets(leaving, 15) == list(range(15))
        assert group.committed() is None
        leaving.leave()
    assert group.committed() == 15
    group.check_successor_reads_from(15)


def test_without_automatic_commits_a_clean_end_commits_nothing(group: Group) -> None:
    with group.member() as leaving:
        assert offsets(leaving, 10) == list(range(10))
        leaving.commit()
        assert offsets(leaving, 5) == list(range(10, 15))
        leaving.leave()
    assert group.committed() == 10
    group.check_successor_reads_from(10)


@pytest.mark.parametrize("client", [client for client in CLIENTS if not client.startswith("kafka-python")])
def test_automatic_commits_in_the_background_lose_what_was_being_worked_on(
    bootstrap: str, filled: str, client: str
) -> None:
    """librdkafka and aiokafka commit what they have handed out, whatever becomes of it."""
    group = Group(bootstrap, filled, client)
    with group.member(auto_commit_ms=SOON_MS) as dying:
        assert offsets(dying, 10) == list(range(10))
        group.wait_committed(10)
        dying.kill()
    group.check_successor_reads_from(10)


def test_automatic_commits_with_the_next_poll_read_again_what_was_being_worked_on(bootstrap: str, filled: str) -> None:
    """kafka-python, like the Java consumer, commits what was handed out before when it is asked for more."""
    group = Group(bootstrap, filled, "kafka-python:classic")
    with group.member(auto_commit_ms=NEVER_MS) as dying:
        assert offsets(dying, 10) == list(range(10))
        dying.kill()
    assert group.committed() is None
    with group.member(auto_commit_ms=SOON_MS) as dying:
        assert offsets(dying, RECORD_COUNT) == list(range(RECORD_COUNT))
        # It asks for more: so it is done with these.
        dying.follow()
        group.wait_committed(RECORD_COUNT)
        dying.kill()
    group.check_successor_reads_from(RECORD_COUNT)
