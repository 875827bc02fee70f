"""A broker that loses the quorum goes on with what it leads, refuses what needs a controller, and heals."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_views import brokers, create_topic, leaders, metadata, produce, read
from confluent_kafka import Consumer, Producer, TopicPartition
from fourth_broker import FourthBroker
from kio.schema.create_topics.v7.response import CreatableTopicResult
from waiting import wait_for

from penstock.local.cluster import LocalCluster
from penstock.protocol.errors import ErrorCode

DEADLINE_S = 30.0
SESSION = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "200"}
LONG_SESSION = {"broker.session.timeout.ms": "120000", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture(params=[SESSION, LONG_SESSION], ids=["session ends", "session goes on"])
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    chosen: dict[str, str] = request.param
    return chosen


@pytest.fixture
def cluster(tmp_path: Path, properties: dict[str, str]) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, node_count=3, properties=properties) as started:
        yield started


def written(first: int, count: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, first + count)]


def produce_through_leader(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in written(first, count):
        producer.produce("flights", value, partition=0)
    assert producer.flush(DEADLINE_S) == 0


def read_from_leader(bootstrap: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("flights", 0, 0)])
    found: list[bytes] = []

    def has_all() -> bool:
        found.extend(one.value() or b"" for one in consumer.consume(count, 0.5) if one.error() is None)
        return len(found) >= count

    wait_for(has_all)
    consumer.close()
    return found


def refused(result: CreatableTopicResult) -> tuple[ErrorCode, bool]:
    """Return the code, and whether the message tells what is missing."""
    return ErrorCode(int(result.error_code)), "The controller did not answer" in (result.error_message or "")


def test_a_cut_off_broker_serves_what_it_leads_and_changes_nothing(
    cluster: LocalCluster, tmp_path: Path, properties: dict[str, str]
) -> None:
    others = cluster.nodes[1].address
    with FourthBroker(cluster, tmp_path, properties) as fourth:
        fourth.start()
        address = fourth.node.address
        wait_for(lambda: 4 in brokers(others))
        assert create_topic(others, "flights", {0: (4,)}).error_message is None
        wait_for(lambda: [leader.broker_id for leader in leaders(address, "flights")] == [4])
        produce_through_leader(address, 0, 100)
        fourth.cut()
        if properties is SESSION:
            wait_for(lambda: leaders(others, "flights")[0].broker_id == -1)

        # A client that reaches the others as well may know from them that there is no leader; these asked only here.
        assert produce(address, "flights", 0, written(100, 100)) is ErrorCode.NONE
        assert read(address, "flights", 0) == written(0, 200)
        assert {int(broker.node_id) for broker in metadata(address).brokers} == {1, 2, 3, 4}
        for _ in range(2):
            assert refused(create_topic(address, "weather", {0: (4,)}, timeout_s=1)) == (
                ErrorCode.REQUEST_TIMED_OUT,
                True,
            )
        assert leaders(others, "weather") == []

        fourth.heal()
        wait_for(lambda: leaders(others, "flights")[0].broker_id == 4)
        assert create_topic(address, "weather", {0: (4,)}).error_message is None
        wait_for(lambda: leaders(address, "flights") == leaders(others, "flights"))
        produce_through_leader(others, 200, 100)
        assert read_from_leader(others, 300) == written(0, 300)
