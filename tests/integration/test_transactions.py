"""Transactions by real clients on three real nodes: what readers of committed records see, and who is fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from plain_producer import PlainClient, PlainProducer

from penstock.client.clock import wait_until
from penstock.local.cluster import LocalCluster
from penstock.protocol.errors import ErrorCode

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NODE_COUNT = 3
PARTITIONS = 3
DEADLINE_S = 60.0
NOTHING: Mapping[str, object] = MappingProxyType({})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    properties = {
        "group.initial.rebalance.delay.ms": "200",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }
    with LocalCluster(
        tmp_path_factory.mktemp("transactions") / "cluster", node_count=NODE_COUNT, properties=properties
    ) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: LocalCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


@pytest.fixture
def output(admin: AdminClient, topic: str) -> str:
    create(admin, topic)
    return topic


def create(admin: AdminClient, topic: str, partitions: int = PARTITIONS) -> None:
    admin.create_topics([NewTopic(topic, partitions, NODE_COUNT)])[topic].result(DEADLINE_S)


def transactional(cluster: LocalCluster, transactional_id: str, **settings: object) -> Producer:
    """Initialised."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    producer.init_transactions(DEADLINE_S)
    return producer


def send(producer: Producer, topic: str, *values: int) -> None:
    """They are stored when this returns."""
    for value in values:
        producer.produce(topic, str(value).encode(), partition=value % PARTITIONS)
    assert producer.flush(DEADLINE_S) == 0


def read_all(
    bootstrap: str, topic: str, isolation: str = "read_committed", *, partitions: int = PARTITIONS
) -> list[int]:
    """Everything up to the ends of the partitions, as this reader sees them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[int] = []
    ended: set[int | None] = set()
    try:
        while len(ended) < partitions:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"only {len(ended)} partitions ended"
            error = message.error()
            if error is None:
                values.append(int(message.value() or b""))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
    finally:
        consumer.close()
    return sorted(values)


def test_readers_of_committed_records_see_whole_transactions_and_no_aborted_one(
    cluster: LocalCluster, output: str
) -> None:
    producer = transactional(cluster, output)
    for number in range(6):
        producer.begin_transaction()
        send(producer, output, *range(number * 10, number * 10 + 10))
        if number % 2:
            producer.abort_transaction(DEADLINE_S)
        else:
            producer.commit_transaction(DEADLINE_S)
    producer.begin_transaction()
    send(producer, output, 1000, 1001, 1002)
    committed = [value for number in (0, 2, 4) for value in range(number * 10, number * 10 + 10)]
    assert read_all(cluster.bootstrap, output) == committed
    assert read_all(cluster.bootstrap, output, "read_uncommitted") == [*range(60), 1000, 1001, 1002]
    producer.commit_transaction(DEADLINE_S)
    assert read_all(cluster.bootstrap, output) == [*committed, 1000, 1001, 1002]


def test_producer_with_the_same_id_fences_the_one_before_it_and_aborts_what_that_began(
    cluster: LocalCluster, output: str
) -> None:
    zombie = transactional(cluster, output)
    zombie.begin_transaction()
    send(zombie, output, 1, 2, 3)
    successor = transactional(cluster, output)
    zombie.produce(output, b"4", partition=0)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction(DEADLINE_S)
    assert caught.value.args[0].code() in {KafkaError._FENCED, KafkaError._STATE}
    successor.begin_transaction()
    send(successor, output, 5)
    successor.commit_transaction(DEADLINE_S)
    assert read_all(cluster.bootstrap, output) == [5]


def test_every_input_is_counted_once_by_consume_transform_produce(
    cluster: LocalCluster, admin: AdminClient, output: str
) -> None:
    source = f"{output}-in"
    create(admin, source)
    plain = Producer({"bootstrap.servers": cluster.bootstrap})
    send(plain, source, *range(300))
    producer = transactional(cluster, output)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": output,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([source])
    counted = 0
    number = 0
    while counted < 300:
        messages = [one for one in consumer.consume(20, 1.0) if one.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(output, message.value(), partition=message.partition() or 0)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), DEADLINE_S
        )
        number += 1
        if number % 3 == 0:
            # As after a crash: it goes on from what is committed.
            producer.abort_transaction(DEADLINE_S)
            for position in consumer.committed(consumer.assignment(), DEADLINE_S):
                consumer.seek(TopicPartition(position.topic, position.partition, max(position.offset, 0)))
        else:
            producer.commit_transaction(DEADLINE_S)
            counted += len(messages)
    consumer.close()
    assert Counter(read_all(cluster.bootstrap, output)) == Counter(range(300))


def test_transaction_outlives_the_leaders_of_its_partitions(cluster: LocalCluster, output: str) -> None:
    producer = transactional(cluster, output)
    done: list[int] = []
    for number in range(NODE_COUNT):
        producer.begin_transaction()
        send(producer, output, *range(number * 10, number * 10 + 5))
        cluster.kill_node(number + 1)
        send(producer, output, *range(number * 10 + 5, number * 10 + 10))
        try:
            producer.commit_transaction(DEADLINE_S)
            done += range(number * 10, number * 10 + 10)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(DEADLINE_S)
        cluster.start_node(number + 1)
    assert wait_until(lambda: read_all(cluster.bootstrap, output) == done, timeout_s=DEADLINE_S, interval_s=0.5)


def test_transaction_that_takes_too_long_is_aborted(cluster: LocalCluster, output: str) -> None:
    producer = transactional(cluster, output, transaction_timeout_ms=1000)
    producer.begin_transaction()
    send(producer, output, 1, 2, 3)
    other = Producer({"bootstrap.servers": cluster.bootstrap})
    send(other, output, 4, 5, 6)
    assert wait_until(lambda: read_all(cluster.bootstrap, output) == [4, 5, 6], timeout_s=DEADLINE_S, interval_s=0.5)
    with pytest.raises(KafkaException):
        producer.commit_transaction(DEADLINE_S)


@pytest.fixture
def ask(bootstrap: str) -> Iterator[PlainClient]:
    client = PlainClient(bootstrap)
    yield client
    client.close()


@pytest.fixture
def place(bootstrap: str, topic: str) -> str:
    """A topic of one partition on the one node that `ask` asks."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(DEADLINE_S)
    return topic


def test_every_transaction_of_version_2_has_an_epoch_of_its_own_kip_890(
    bootstrap: str, ask: PlainClient, place: str
) -> None:
    producer = PlainProducer(ask, place)
    producer.init()
    epochs = []
    for number in range(4):
        epochs.append(producer.epoch)
        assert producer.produce(place, 0, value=b"%d" % number) is ErrorCode.NONE
        assert producer.produce(place, 1, value=b"%d" % (number + 100)) is ErrorCode.NONE
        assert producer.end(is_commit=number % 2 == 0) is ErrorCode.NONE
    assert epochs == list(range(epochs[0], epochs[0] + 4))
    assert read_all(bootstrap, place, partitions=1) == [0, 2, 100, 102]


def test_late_produce_after_an_abort_is_refused(bootstrap: str, ask: PlainClient, place: str) -> None:
    producer = PlainProducer(ask, place)
    producer.init()
    epoch = producer.epoch
    assert producer.produce(place, 0, value=b"1") is ErrorCode.NONE
    assert producer.end(is_commit=False) is ErrorCode.NONE
    assert wait_until(lambda: read_all(bootstrap, place, partitions=1) == [], timeout_s=DEADLINE_S)
    assert producer.produce(place, 1, epoch=epoch, value=b"2") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.produce(place, 0, value=b"3") is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE
    assert wait_until(lambda: read_all(bootstrap, place, partitions=1) == [3], timeout_s=DEADLINE_S)


def test_late_produce_of_version_1_is_not_part_of_any_transaction(bootstrap: str, ask: PlainClient, place: str) -> None:
    producer = PlainProducer(ask, place, is_old=True)
    producer.init()
    assert producer.produce(place, 0, version=10) is ErrorCode.INVALID_TXN_STATE
    assert producer.produce(place, 0) is ErrorCode.TRANSACTION_ABORTABLE
    assert producer.add(place) is ErrorCode.NONE
    assert producer.produce(place, 0, value=b"1") is ErrorCode.NONE
    assert producer.end(is_commit=False) is ErrorCode.NONE
    assert wait_until(
        lambda: producer.produce(place, 1, value=b"2") is ErrorCode.TRANSACTION_ABORTABLE, timeout_s=DEADLINE_S
    )
    assert read_all(bootstrap, place, partitions=1) == []


def test_end_that_arrives_again_tears_the_next_transaction_of_version_1_kafka_17754(
    bootstrap: str, ask: PlainClient, place: str
) -> None:
    producer = PlainProducer(ask, place, is_old=True)
    producer.init()
    for number in range(2):
        assert producer.add(place) is ErrorCode.NONE
        assert producer.produce(place, number, value=b"%d" % number) is ErrorCode.NONE
        # The second time it is the end of the first transaction, delayed on its way; the producer does not know.
        assert producer.end() is ErrorCode.NONE
    assert wait_until(lambda: read_all(bootstrap, place, partitions=1) == [0, 1], timeout_s=DEADLINE_S)


def test_end_that_arrives_again_is_refused_by_version_2_kafka_17754(
    bootstrap: str, ask: PlainClient, place: str
) -> None:
    producer = PlainProducer(ask, place)
    producer.init()
    first = producer.epoch
    assert producer.produce(place, 0, value=b"0") is ErrorCode.NONE
    assert producer.end() is ErrorCode.NONE
    assert producer.produce(place, 0, value=b"1") is ErrorCode.NONE
    assert producer.end(epoch=first) in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
    assert read_all(bootstrap, place, partitions=1) == [0]
    assert producer.end(is_commit=False) is ErrorCode.NONE
    assert wait_until(lambda: read_all(bootstrap, place, partitions=1) == [0], timeout_s=DEADLINE_S)


@pytest.mark.parametrize("is_old", [True, False])
def test_offsets_of_a_transaction_count_when_it_commits(
    bootstrap: str, ask: PlainClient, place: str, *, is_old: bool
) -> None:
    producer = PlainProducer(ask, place, is_old=is_old)
    producer.init()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": place, "isolation.level": "read_committed"})

    def committed() -> int:
        (one,) = consumer.committed([TopicPartition(place, 0)], DEADLINE_S)
        return one.offset

    # The coordinator of the group is there once it was asked for.
    assert committed() < 0
    for offset, is_commit in ((5, True), (6, False), (7, True)):
        if is_old:
            assert producer.add_offsets(place) is ErrorCode.NONE
        assert producer.commit_offset(place, place, offset) is ErrorCode.NONE
        assert producer.end(is_commit=is_commit) is ErrorCode.NONE
        # While the end is on its way the offset is unstable, and librdkafka asks again.
        assert committed() == (offset if is_commit else offset - 1)
    consumer.close()
