"""`penstock_cluster`, as a project's tests use it: every fault does something to a real client, and heals."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from faststream.confluent import KafkaBroker
from missing_tools import need_toxiproxy
from waiting import wait_for

from penstock.chaos.links.link import CutMode
from penstock.chaos.testing.async_chaos_cluster import AsyncChaosCluster
from penstock.chaos.testing.chaos_cluster import ChaosCluster
from penstock.chaos.testing.link_orders import End
from penstock.chaos.testing.unit_tests import ClusterTests
from penstock.client import clock
from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import run_tool
from penstock.local.errors import ClusterError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

DEADLINE_S = 60
ACKNOWLEDGED = "acknowledged"


def produce(cluster: ChaosCluster, topic: str, *values: bytes, **config: object) -> list[str]:
    """`ACKNOWLEDGED`, or the name of the error, of each record in turn."""
    outcomes: list[str] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        outcomes.append(ACKNOWLEDGED if error is None else str(error.name()))

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, **config})
    for value in values or (b"record",):
        producer.produce(topic, value, partition=0, on_delivery=on_delivery)
    producer.flush(DEADLINE_S)
    return outcomes


def read(cluster: ChaosCluster, topic: str, count: int) -> list[bytes]:
    """So many values of partition 0, from the beginning."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = []
    for message in consumer.consume(count, DEADLINE_S):
        value = message.value()
        assert isinstance(value, bytes), message.error()
        values.append(value)
    consumer.close()
    return values


def wait_time(cluster: ChaosCluster, topic: str, is_wanted: Callable[[int], bool]) -> bool:
    """Whether a record comes to have such a time: a node takes up its orders soon, not at once."""

    def is_so() -> bool:
        times: list[int] = []
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce(topic, b"a", partition=0, on_delivery=lambda _, message: times.append(message.timestamp()[1]))
        producer.flush(DEADLINE_S)
        return is_wanted(times[0])

    return clock.wait_until(is_so, timeout_s=DEADLINE_S)


def wait_reaches(cluster: ChaosCluster, source: End, target: End) -> None:
    """Asked more than once: a node has a second to answer, and a busy machine may take longer."""
    wait_for(lambda: cluster.reaches(source, target), f"a request from {source} to {target} is answered")


def leader_of(cluster: ChaosCluster, topic: str) -> int:
    leader = cluster.leader(topic)
    assert leader is not None
    return leader


def test_a_killed_leader_is_followed_by_another_and_nothing_acknowledged_is_lost(
    penstock_cluster: ChaosCluster,
) -> None:
    topic = penstock_cluster.topic(min_insync_replicas=2)
    assert produce(penstock_cluster, topic, b"a") == [ACKNOWLEDGED]
    leader = leader_of(penstock_cluster, topic)
    with penstock_cluster.kill(leader):
        assert penstock_cluster.state(leader) == "down"
        assert penstock_cluster.wait_leader(topic, other_than=leader) != leader
        assert produce(penstock_cluster, topic, b"b") == [ACKNOWLEDGED]
    assert penstock_cluster.state(leader) == "up"
    penstock_cluster.wait_in_sync(topic)
    assert read(penstock_cluster, topic, 2) == [b"a", b"b"]


def test_a_paused_leader_answers_when_it_is_resumed(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic(replication_factor=1)
    leader = leader_of(penstock_cluster, topic)
    with penstock_cluster.pause(leader):
        assert penstock_cluster.state(leader) == "paused"
        assert produce(penstock_cluster, topic, **{"message.timeout.ms": 300}) == ["_MSG_TIMED_OUT"]
    assert produce(penstock_cluster, topic)[-1] == ACKNOWLEDGED


def test_heal_starts_nodes_that_are_all_down(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic()
    assert produce(penstock_cluster, topic, b"a") == [ACKNOWLEDGED]
    faults = [penstock_cluster.kill(node) for node in penstock_cluster.nodes]
    penstock_cluster.heal()
    assert not any(fault.holds for fault in faults)
    assert [penstock_cluster.state(node) for node in penstock_cluster.nodes] == ["up"] * 3
    penstock_cluster.wait_in_sync(topic)
    assert read(penstock_cluster, topic, 1) == [b"a"]


def test_power_loss_takes_what_was_not_synced_of_a_record_on_one_node_alone(penstock_cluster: ChaosCluster) -> None:
    unsynced = penstock_cluster.topic(replication_factor=1)
    synced = penstock_cluster.topic(replication_factor=1, flush_messages=1)
    for topic in (unsynced, synced):
        assert produce(penstock_cluster, topic, b"a") == [ACKNOWLEDGED]
    penstock_cluster.power_loss(*penstock_cluster.nodes).heal()
    for topic in (unsynced, synced):
        penstock_cluster.wait_leader(topic)
    assert produce(penstock_cluster, unsynced, b"b") == [ACKNOWLEDGED]
    assert read(penstock_cluster, unsynced, 1) == [b"b"]
    assert read(penstock_cluster, synced, 1) == [b"a"]


def test_a_full_disk_refuses_records_until_it_is_healed(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic(replication_factor=1)
    leader = leader_of(penstock_cluster, topic)
    with penstock_cluster.fill_disk(leader, path=f"*/{topic}-0/*"):
        assert produce(penstock_cluster, topic, b"a", retries=0) == ["KAFKA_STORAGE_ERROR"]
    assert produce(penstock_cluster, topic, b"b") == [ACKNOWLEDGED]


@pytest.fixture
def linked_cluster(penstock_cluster: ChaosCluster) -> ChaosCluster:
    """One whose links can be broken."""
    need_toxiproxy()
    return penstock_cluster


def test_an_isolated_leader_is_followed_by_another_and_its_clients_find_that_one(linked_cluster: ChaosCluster) -> None:
    topic = linked_cluster.topic(min_insync_replicas=2)
    leader = leader_of(linked_cluster, topic)
    other = leader % 3 + 1
    with linked_cluster.isolate_leader(topic):
        assert not linked_cluster.reaches(leader, other)
        assert not linked_cluster.reaches(other, leader)
        assert not linked_cluster.reaches("client-0", leader)
        linked_cluster.wait_leader(topic, other_than=leader)
        assert produce(linked_cluster, topic, b"a") == [ACKNOWLEDGED]
    wait_reaches(linked_cluster, leader, other)
    linked_cluster.wait_in_sync(topic)
    assert read(linked_cluster, topic, 1) == [b"a"]


@pytest.mark.parametrize("mode", ["silence", "reset", "refusal"])
def test_a_partition_from_clients_is_theirs_alone(linked_cluster: ChaosCluster, mode: CutMode) -> None:
    topic = linked_cluster.topic()
    leader = leader_of(linked_cluster, topic)
    with linked_cluster.partition(["client-0"], linked_cluster.nodes, mode=mode):
        assert not linked_cluster.reaches("client-0", leader)
        wait_reaches(linked_cluster, leader, leader % 3 + 1)
        assert produce(linked_cluster, topic, **{"message.timeout.ms": 500}) == ["_MSG_TIMED_OUT"]
    assert produce(linked_cluster, topic) == [ACKNOWLEDGED]


@pytest.mark.penstock(nodes=1, client_slots=2)
def test_clients_of_one_slot_are_cut_off_and_those_of_the_other_are_not(linked_cluster: ChaosCluster) -> None:
    topic = linked_cluster.topic()
    other = {"bootstrap.servers": linked_cluster.bootstrap_of(1)}
    with linked_cluster.partition(["client-1"], [1]):
        assert produce(linked_cluster, topic) == [ACKNOWLEDGED]
        assert produce(linked_cluster, topic, **other, **{"message.timeout.ms": 500}) == ["_MSG_TIMED_OUT"]
    assert produce(linked_cluster, topic, **other) == [ACKNOWLEDGED]


@pytest.mark.penstock(nodes=1, client_slots=2)
def test_a_shifted_clock_is_in_the_times_that_a_node_writes(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic(message_timestamp_type="LogAppendTime")
    hour_ms = 3_600_000
    begun_ms = clock.now_ms()
    with penstock_cluster.shift_clock(1, hour_ms):
        assert wait_time(penstock_cluster, topic, lambda time_ms: time_ms >= begun_ms + hour_ms)
    assert wait_time(penstock_cluster, topic, lambda time_ms: time_ms < begun_ms + hour_ms)


def test_the_end_of_one_fault_of_a_link_leaves_the_other(linked_cluster: ChaosCluster) -> None:
    with linked_cluster.partition([1], [2]) as cut:
        with linked_cluster.partition([1], [2, 3]):
            assert not linked_cluster.reaches(1, 3)
        wait_reaches(linked_cluster, 1, 3)
        assert not linked_cluster.reaches(1, 2)
        cut.heal()
        wait_reaches(linked_cluster, 1, 2)
    with linked_cluster.slow_link("client-0", latency_ms=20), linked_cluster.limit_link(kilobytes_s=100):
        assert produce(linked_cluster, linked_cluster.topic()) == [ACKNOWLEDGED]
    linked_cluster.reset_connections()
    assert "connections *→* reset" in linked_cluster.story()


def test_a_link_is_cut_in_one_direction(linked_cluster: ChaosCluster) -> None:
    with linked_cluster.cut_link(1, 2):
        assert not linked_cluster.reaches(1, 2)
        wait_reaches(linked_cluster, 2, 1)
        wait_reaches(linked_cluster, "client-0", 2)
    wait_reaches(linked_cluster, 1, 2)
    assert "begins: 1→2 cut by silence" in linked_cluster.story()


def test_faults_of_requests_are_the_clusters_and_counted(penstock_cluster: ChaosCluster) -> None:
    topic, other = penstock_cluster.topic(), penstock_cluster.topic()
    fault = penstock_cluster.faults.next("Produce", n=2, error="TOPIC_AUTHORIZATION_FAILED", topic=topic)
    assert produce(penstock_cluster, other) == [ACKNOWLEDGED]
    outcomes = [produce(penstock_cluster, topic)[0] for _ in range(3)]
    assert outcomes == ["TOPIC_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", ACKNOWLEDGED]
    assert len(fault.hits) == 2
    with penstock_cluster.faults.always("Produce", error="DISCONNECT", at="before-ack"):
        # Without retries the first answer that is lost ends it; before that it is to be sent, however long that takes.
        once = {"enable.idempotence": False, "retries": 0}
        assert produce(penstock_cluster, other, b"lost answer", **once) == ["_TRANSPORT"]
    assert read(penstock_cluster, other, 2) == [b"record", b"lost answer"]
    with penstock_cluster.faults.delay("Produce", delay_ms=1, topic=topic) as late:
        assert produce(penstock_cluster, topic) == [ACKNOWLEDGED]
        assert len(late.hits) == 1


def test_a_barrier_holds_what_is_stored_and_not_acknowledged(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic()
    with ThreadPoolExecutor(1) as pool, penstock_cluster.barrier("Produce", topic=topic) as barrier:
        producing = pool.submit(produce, penstock_cluster, topic, b"a")
        barrier.wait_reached()
        assert read(penstock_cluster, topic, 1) == [b"a"]
        assert not producing.done()
        barrier.release()
        assert producing.result(DEADLINE_S) == [ACKNOWLEDGED]


def test_wait_lag_waits_for_what_a_group_commits(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic()
    produce(penstock_cluster, topic, b"a", b"b", b"c")
    consumer = Consumer({"bootstrap.servers": penstock_cluster.bootstrap, "group.id": topic, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    penstock_cluster.wait_lag(topic, 1)
    with pytest.raises(ClusterError, match="at most 0 records behind: it is 1 behind"):
        penstock_cluster.wait_lag(topic, timeout_s=0)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    penstock_cluster.wait_lag(topic)
    consumer.close()


def test_what_the_cluster_does_not_have_is_refused_with_a_sentence(penstock_cluster: ChaosCluster) -> None:
    with pytest.raises(ClusterError, match="there is no node 7: expected one of 1, 2, 3"):
        penstock_cluster.kill(7)
    with pytest.raises(ClusterError, match="there is no topic nothing whose requests could be hit"):
        penstock_cluster.faults.next("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="nothing")
    with pytest.raises(
        ClusterError, match=r"two groups or more: expected partition\(\[1\], \[2, 3\]\)|links cannot be broken"
    ):
        penstock_cluster.partition([1])
    with pytest.raises(ClusterError, match="INVALID_CONFIG"):
        penstock_cluster.topic(cleanup_policy="shred")


def test_kafka_python_goes_on_after_refused_requests(penstock_cluster: ChaosCluster) -> None:
    topic = penstock_cluster.topic()
    producer = kafka.KafkaProducer(bootstrap_servers=penstock_cluster.bootstrap, acks="all", retries=5)
    penstock_cluster.faults.next("Produce", n=2, error="NOT_ENOUGH_REPLICAS", topic=topic)
    assert producer.send(topic, b"a", partition=0).get(timeout=DEADLINE_S).offset == 0
    producer.close()
    assert read(penstock_cluster, topic, 1) == [b"a"]


def test_faststream_handles_an_order_once_although_answers_are_lost(penstock_cluster_async: AsyncChaosCluster) -> None:
    cluster = penstock_cluster_async

    async def run() -> None:
        orders, bills = await cluster.topic(), await cluster.topic()
        broker: Any = KafkaBroker(cluster.bootstrap)
        billed: asyncio.Queue[str] = asyncio.Queue()

        async def bill(order: str) -> str:
            return f"bill for {order}"

        async def note(one: str) -> None:
            await billed.put(one)

        handlers = {orders: broker.publisher(bills)(bill), bills: note}
        for topic, handler in handlers.items():
            broker.subscriber(topic, group_id=topic, auto_offset_reset="earliest")(handler)
        async with broker:
            await broker.start()
            refused = await cluster.faults.next("Produce", n=2, error="NOT_LEADER_OR_FOLLOWER", topic=orders)
            await broker.publish("an order", orders)
            assert await asyncio.wait_for(billed.get(), DEADLINE_S) == "bill for an order"
            assert len(refused.fault.hits) == 2

    asyncio.run(run())


def test_a_java_producer_sends_again_what_was_refused(penstock_cluster: ChaosCluster, kafka_jars: KafkaJars) -> None:
    topic = penstock_cluster.topic()
    refused = penstock_cluster.faults.next("Produce", n=2, error="NOT_LEADER_OR_FOLLOWER", topic=topic)
    connection = ("--bootstrap-server", penstock_cluster.bootstrap)
    result = run_tool(kafka_jars, "console-producer", *connection, "--topic", topic, stdin="a\nb\n")
    assert result.exit_code == 0, result.output
    assert read(penstock_cluster, topic, 2) == [b"a", b"b"]
    assert len(refused.hits) == 2


def test_coroutines_await_the_same_methods(penstock_cluster_async: AsyncChaosCluster) -> None:
    cluster = penstock_cluster_async

    async def run() -> None:
        topic = await cluster.topic()
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            async with cluster.barrier("Produce", topic=topic) as barrier:
                sending = asyncio.ensure_future(producer.send_and_wait(topic, b"a"))
                await barrier.wait_reached()
                assert not sending.done()
                await barrier.release()
                assert (await asyncio.wait_for(sending, DEADLINE_S)).offset == 0
            await cluster.faults.next("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=topic)
            assert (await asyncio.wait_for(producer.send_and_wait(topic, b"b"), DEADLINE_S)).offset == 1
        node = await cluster.leader(topic)
        async with cluster.pause(node):
            assert await cluster.state(node) == "paused"
        assert await cluster.state(node) == "up"
        with pytest.raises(TypeError, match="only a fault is held"):
            async with cluster.leader(topic):
                pass

    asyncio.run(run())


@pytest.mark.penstock(nodes=1, config={"message.max.bytes": 1_000})
def test_another_cluster_is_given_to_those_who_ask_for_it(penstock_cluster: ChaosCluster) -> None:
    assert penstock_cluster.nodes == (1,)
    topic = penstock_cluster.topic()
    assert produce(penstock_cluster, topic, b"x" * 100) == [ACKNOWLEDGED]
    assert produce(penstock_cluster, topic, b"x" * 2_000) == ["MSG_SIZE_TOO_LARGE"]


def test_unittest_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    class OrdersTest(ClusterTests, unittest.TestCase):
        penstock_nodes = 1

        def test_record(self) -> None:
            assert produce(self.cluster, self.cluster.topic()) == [ACKNOWLEDGED]

        def test_that_fails(self) -> None:
            self.cluster.faults.next("Produce", error="NOT_LEADER_OR_FOLLOWER")
            self.fail("as it is meant to")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(OrdersTest).run(result)
    assert (result.testsRun, len(result.failures), result.errors) == (2, 1, [])
    assert "begins: the next 1 Produce → NOT_LEADER_OR_FOLLOWER" in capsys.readouterr().err
