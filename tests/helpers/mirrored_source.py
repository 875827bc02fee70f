"""Topics of a source cluster, written in transactions, and what a mirror must have made of them at its target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic
from exactly_once import committed_offsets
from replicated_cluster import DEADLINE_S

from penstock.client import clock
from penstock.client.client_log import SILENT_LOGGER
from penstock.client.cluster_metadata import ask_metadata

ORDERS: Final = "orders"
PRICES: Final = "prices"
GROUP: Final = "shop"
PARTITIONS: Final = 3
MORE_PARTITIONS: Final = 5
TRANSACTION_RECORDS: Final = 50
# Beside each transaction of that many records one of so many is aborted: offsets at the target are others.
ABORTED_RECORDS: Final = 7
# None of them is a default.
CONFIGS: Final[Mapping[str, Mapping[str, str]]] = {
    ORDERS: {"retention.ms": "-1", "segment.bytes": "20000000", "max.message.bytes": "2000000"},
    PRICES: {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"},
}
CHANGED_CONFIG: Final = ("max.message.bytes", "3000000")
# The time of a record is its own, not that of the mirror. Within a segment's time: markers of transactions are of now.
AGE_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """What a record is at both clusters. Its offset may differ."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    offset: int
    record: SourceRecord


class MirroredSource:
    """Of one source cluster, by its alias; topics at the target are `alias.topic`."""

    def __init__(self, alias: str, bootstrap: str, *, replicas: int) -> None:
        self.alias = alias
        self.bootstrap = bootstrap
        self.committed: dict[str, list[list[SourceRecord]]] = {ORDERS: [[] for _ in range(PARTITIONS)], PRICES: [[]]}
        """By topic and partition, in order."""
        self._read_counts: list[int] = []
        self._configs = {topic: dict(configs) for topic, configs in CONFIGS.items()}
        self.replicas = replicas
        self._admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
        self._number = 0
        self._first_ms = clock.now_ms() - AGE_MS

    def create_topics(self) -> None:
        topics = [
            NewTopic(topic, len(partitions), self.replicas, config=self._configs[topic])
            for topic, partitions in self.committed.items()
        ]
        for future in self._admin.create_topics(topics).values():
            future.result(DEADLINE_S)

    def write(self, records: int) -> None:
        """So many records to each partition of orders, a price for each, and transactions that are aborted."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.alias}-writer"}, logger=SILENT_LOGGER
        )
        producer.init_transactions(DEADLINE_S)
        for first in range(0, records, TRANSACTION_RECORDS):
            size = min(TRANSACTION_RECORDS, records - first)
            producer.begin_transaction()
            written = [
                self._produce(producer, ORDERS, partition)
                for _ in range(size)
                for partition in range(len(self.committed[ORDERS]))
            ]
            written += [self._produce(producer, PRICES, 0) for _ in range(size)]
            producer.commit_transaction(DEADLINE_S)
            for topic, partition, record in written:
                self.committed[topic][partition].append(record)
            producer.begin_transaction()
            for _ in range(ABORTED_RECORDS):
                self._produce(producer, ORDERS, 0)
            assert producer.flush(DEADLINE_S) == 0
            producer.abort_transaction(DEADLINE_S)

    def read_in_group(self) -> None:
        """All orders, with offsets committed."""
        with closing(_group_consumer(self.bootstrap)) as consumer:
            found = _read_to_ends(consumer, ORDERS, len(self.committed[ORDERS]))
            assert [[one.record for one in part] for part in found] == self.committed[ORDERS]
            self._read_counts = list(map(len, found))
            consumer.commit(asynchronous=False)

    def change(self) -> None:
        """More partitions, and another config."""
        self._admin.create_partitions([NewPartitions(ORDERS, MORE_PARTITIONS)])[ORDERS].result(DEADLINE_S)
        self.committed[ORDERS] += [[] for _ in range(MORE_PARTITIONS - PARTITIONS)]
        name, value = CHANGED_CONFIG
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource("topic", ORDERS, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)
        self._configs[ORDERS][name] = value

    def count_at(self, target: str) -> int:
        """Records of orders that the target has."""
        return sum(map(len, self._orders_at(target)))

    @property
    def count(self) -> int:
        """Records of orders that were committed."""
        return sum(map(len, self.committed[ORDERS]))

    def is_complete_at(self, target: str) -> bool:
        """Whether all that was committed is there. AssertionError when something is repeated, misplaced or changed."""
        return all(self._is_topic_complete(topic, partitions, target) for topic, partitions in self.committed.items())

    def _is_topic_complete(self, topic: str, partitions: Sequence[Sequence[SourceRecord]], target: str) -> bool:
        if _partition_count(target, self.topic_at_target(topic)) != len(partitions):
            return False
        found = read_topic(target, self.topic_at_target(topic), len(partitions))
        for number, (there, here) in enumerate(zip(found, partitions, strict=True)):
            records = [one.record for one in there]
            assert records == list(here[: len(records)]), f"{topic}-{number} of {self.alias} differs at the target"
        return [len(there) for there in found] == [len(here) for here in partitions]

    def are_configs_at(self, target: str) -> bool:
        """Whether the configs of the topics are those of the source."""
        admin = AdminClient({"bootstrap.servers": target}, logger=SILENT_LOGGER)
        for topic, configs in self._configs.items():
            resource = ConfigResource("topic", self.topic_at_target(topic))
            try:
                found = admin.describe_configs([resource])[resource].result(DEADLINE_S)
            except KafkaException:
                return False
            if any(found[name].value != value for name, value in configs.items()):
                return False
        return True

    def is_group_at(self, target: str) -> bool:
        """Whether the group's offsets at the target are behind exactly what it read at the source."""
        topic = self.topic_at_target(ORDERS)
        found = self._orders_at(target)[: len(self._read_counts)]
        expected = [there[count - 1].offset + 1 for there, count in zip(found, self._read_counts, strict=True)]
        return committed_offsets(target, GROUP, topic, len(expected)) == expected

    def check_group_goes_on(self, target: str) -> int:
        """A consumer of the group reads at the target what it had not read at the source; returns how many records."""
        expected = [records[count:] for records, count in zip(self.committed[ORDERS], self._counts(), strict=True)]
        with closing(_group_consumer(target)) as consumer:
            found = _read_to_ends(consumer, self.topic_at_target(ORDERS), len(expected))
        assert [[one.record for one in part] for part in found] == expected
        return sum(map(len, expected))

    def repeat_at(self, target: str) -> None:
        """Plants a fault: the last record of a partition is there twice."""
        record = self.committed[ORDERS][0][-1]
        producer = Producer({"bootstrap.servers": target}, logger=SILENT_LOGGER)
        producer.produce(
            self.topic_at_target(ORDERS),
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
        )
        assert producer.flush(DEADLINE_S) == 0

    def topic_at_target(self, topic: str) -> str:
        """By MirrorMaker's DefaultReplicationPolicy."""
        return f"{self.alias}.{topic}"

    def _counts(self) -> list[int]:
        return self._read_counts + [0] * (len(self.committed[ORDERS]) - len(self._read_counts))

    def _orders_at(self, target: str) -> list[list[FoundRecord]]:
        topic = self.topic_at_target(ORDERS)
        return read_topic(target, topic, _partition_count(target, topic))

    def _produce(self, producer: Producer, topic: str, partition: int) -> tuple[str, int, SourceRecord]:
        self._number += 1
        number = self._number
        # Each tenth price is deleted.
        value = None if topic == PRICES and number % 10 == 0 else f"{self.alias} {number}".encode()
        record = SourceRecord(
            key=str(number % 17).encode(),
            value=value,
            headers=(("number", str(number).encode()), ("from", self.alias.encode())),
            timestamp_ms=self._first_ms + number,
        )
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=partition,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
        )
        return topic, partition, record


def read_topic(bootstrap: str, topic: str, partitions: int) -> list[list[FoundRecord]]:
    """Its committed records, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", **_READING}, logger=SILENT_LOGGER)
    with closing(consumer):
        if not partitions:
            return []
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        return _to_ends(consumer, partitions)


_READING: Final[Mapping[str, str | bool | int]] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    # The end is told by a fetch that finds nothing.
    "fetch.wait.max.ms": 10,
}


def _group_consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **_READING}, logger=SILENT_LOGGER)


def _read_to_ends(consumer: Consumer, topic: str, partitions: int) -> list[list[FoundRecord]]:
    consumer.subscribe([topic])
    return _to_ends(consumer, partitions)


def _to_ends(consumer: Consumer, partitions: int) -> list[list[FoundRecord]]:
    """Until the end of each partition was met."""
    found: list[list[FoundRecord]] = [[] for _ in range(partitions)]
    open_partitions = set(range(partitions))
    while open_partitions:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"the ends of {open_partitions} were not met"
        error = message.error()
        if error is None:
            found[message.partition() or 0].append(_found(message))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            open_partitions.discard(message.partition() or 0)
    return found


def _found(message: Message) -> FoundRecord:
    key, value, (_, timestamp_ms) = message.key(), message.value(), message.timestamp()
    headers = message.headers() or []
    assert isinstance(headers, list), headers
    record = SourceRecord(key=_bytes(key), value=_bytes(value), headers=_headers(headers), timestamp_ms=timestamp_ms)
    return FoundRecord(offset=message.offset() or 0, record=record)


def _bytes(data: object) -> bytes | None:
    assert data is None or isinstance(data, bytes), data
    return data


def _headers(headers: Iterable[tuple[str, object]]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, _bytes(value) or b"") for name, value in headers)


def _partition_count(bootstrap: str, topic: str) -> int:
    """0 without the topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT_LOGGER)
    told = ask_metadata(admin).topics.get(topic)
    return 0 if told is None else len(told.partitions)
