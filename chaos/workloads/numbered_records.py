"""One idempotent producer that sends numbered values to each partition, and remembers what was acknowledged where.

Values are `<producer> <number> <filling>`; nothing else may be written to the topic. What it remembers, and what
`read_all` finds afterwards, is judged by `checkers.records`.
"""

from collections import Counter
from random import Random
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from ...client import clock
from ...local.errors import ClusterError
from ...protocol.structs import replace
from ..checkers.records import Finding, Sent, Stored, judge

# More than a client needs to have batches in flight at any moment, few enough that queues drain soon.
_QUEUE_LIMIT: Final = 2_000
_POLL_S: Final = 0.1
# Retries go on for longer than any fault lasts.
_DELIVERY_TIMEOUT_MS: Final = 600_000


class NumberedRecords:
    """The producer. Every wait ends at its deadline, with ClusterError."""

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: int, random: Random, name: str = "p", value_bytes: int = 100
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        # By partition; the place in the list is the number.
        self.sent: list[list[Sent]] = [[] for _ in range(partitions)]
        self.acknowledged_count = 0
        # What was given up by the client, by the name of the error. Retriable errors of the broker are not seen here.
        self.errors: Counter[str] = Counter()
        self._name = name
        self._random = random
        self._value_bytes = value_bytes
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "queue.buffering.max.messages": _QUEUE_LIMIT,
                "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                # What happens is in the history; the client need not say it again.
                "log_level": 0,
            }
        )

    def send(self) -> bool:
        """Hand one more record to the client; False when its queue is full."""
        partition = self._random.randrange(self.partitions)
        history = self.sent[partition]
        number = len(history)
        value = f"{self._name} {number} ".encode().ljust(self._value_bytes, b".")
        try:
            self._producer.produce(
                self.topic,
                value,
                partition=partition,
                on_delivery=lambda error, message: self._delivered(partition, number, error, message),
            )
        except BufferError:
            self._producer.poll(_POLL_S)
            return False
        history.append(Sent(producer=self._name, number=number, value=value))
        self._producer.poll(0)
        return True

    def send_until_acknowledged(self, count: int, *, timeout_s: float) -> None:
        """Keep sending until `count` more records are acknowledged."""
        goal = self.acknowledged_count + count
        deadline_s = clock.monotonic_s() + timeout_s
        while self.acknowledged_count < goal:
            self.send()
            if clock.monotonic_s() > deadline_s:
                raise ClusterError(f"{goal - self.acknowledged_count} of {count} records not acknowledged in time")

    def send_for(self, seconds: float) -> None:
        """Keep sending, whatever comes of it."""
        deadline_s = clock.monotonic_s() + seconds
        while clock.monotonic_s() < deadline_s:
            self.send()

    def finish(self, *, timeout_s: float) -> None:
        """Wait until everything sent has an outcome."""
        left = self._producer.flush(timeout_s)
        if left:
            raise ClusterError(f"{left} records have no outcome after {timeout_s:g} s")

    def judge(self, bootstrap: str, *, timeout_s: float) -> list[Finding]:
        """Read everything back and compare."""
        return [
            finding
            for partition in range(self.partitions)
            for finding in judge(self.sent[partition], read_all(bootstrap, self.topic, partition, timeout_s=timeout_s))
        ]

    def _delivered(self, partition: int, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors[str(error.name())] += 1
            return
        history = self.sent[partition]
        history[number] = replace(history[number], offset=message.offset())
        self.acknowledged_count += 1


def read_all(bootstrap: str, topic: str, partition: int, *, timeout_s: float) -> list[Stored]:
    """Every record of a partition from its start to the end it has when that is reached. Raises ClusterError."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            # The end is told by a fetch that finds nothing.
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    stored: list[Stored] = []
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(timeout_s)
            if message is None:
                raise ClusterError(f"{topic}-{partition} could not be read behind {stored[-1:]} within {timeout_s:g} s")
            error = message.error()
            if error is None:
                value, offset = message.value(), message.offset()
                stored.append(Stored(offset or 0, value if isinstance(value, bytes) else b""))
            elif error.code() == KafkaError._PARTITION_EOF:
                return stored
    finally:
        consumer.close()
