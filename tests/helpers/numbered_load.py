"""A producer that numbers what it sends, and remembers what was acknowledged where; and what a consumer finds."""

from __future__ import annotations

import random
from collections import defaultdict

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

DEADLINE_S = 60.0
# More than a client needs to have batches in flight at every kill, few enough that queues drain within the deadline.
QUEUE_LIMIT = 2_000


class NumberedLoad:
    """An idempotent producer of the values 0, 1, 2, … of each partition, that remembers what was acknowledged where."""

    def __init__(self, bootstrap: str, topic: str, partition_count: int, generator: random.Random) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "queue.buffering.max.messages": QUEUE_LIMIT,
                "delivery.timeout.ms": 300_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
            }
        )
        self._generator = generator
        self.sent: dict[int, int] = defaultdict(int)
        self.acknowledged: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.errors: list[KafkaError] = []

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def send_until(self, acknowledged_count: int) -> None:
        """Keep sending until so many records are acknowledged in all."""
        while self.acknowledged_count < acknowledged_count:
            partition = self._generator.randrange(self._partition_count)
            value = self.sent[partition]
            try:
                self._producer.produce(
                    self._topic, str(value).encode(), partition=partition, on_delivery=self._delivered
                )
                self.sent[partition] += 1
                self._producer.poll(0)
            except BufferError:
                self._producer.poll(0.1)
            assert not self.errors, self.errors[0]

    def finish(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0
        assert not self.errors, self.errors[0]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            value = message.value()
            assert isinstance(value, bytes)
            self.acknowledged[message.partition() or 0].append((message.offset() or 0, int(value)))


def read_all(bootstrap: str, topic: str, partition: int) -> list[tuple[int, int]]:
    """(offset, value) of every record."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    records: list[tuple[int, int]] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        error = message.error()
        if error is None:
            value = message.value()
            assert isinstance(value, bytes)
            records.append((message.offset() or 0, int(value)))
        elif error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return records
