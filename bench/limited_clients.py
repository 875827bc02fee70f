"""A client that does as much as its quota allows: a process of its own.

`python -m penstock.bench.limited_clients ROLE BOOTSTRAP TOPIC FROM_S SECONDS` prints how much it did a second in so
many seconds, from `FROM_S` after its start: bytes of values, or topics.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import click
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ..client import clock
from ..client.client_log import SILENT_LOGGER

PRODUCER, CONSUMER, ADMINISTRATOR = "producer", "consumer", "administrator"
"""The roles, and client ids."""
FULL: Final = "full"
"""The topic that the consumer reads: records that are there already, so that nothing but the quota limits it."""
VALUE_BYTES: Final = 10_000
_RESPONSE_BYTES: Final = 200_000
_ANSWER_S: Final = 30.0
_PAUSE_S: Final = 0.05


class Role(Protocol):
    def step(self) -> int:
        """Does something, or waits a little; how much was done since the last step."""


class LimitedProducer:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._done = 0
        self._value = bytes(VALUE_BYTES)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": PRODUCER,
                "linger.ms": 5,
                "batch.size": _RESPONSE_BYTES,
                "queue.buffering.max.messages": 100,
            },
            logger=SILENT_LOGGER,
        )

    def step(self) -> int:
        try:
            self._producer.produce(self._topic, self._value, on_delivery=self._on_delivery)
        except BufferError:
            self._producer.poll(_PAUSE_S)
        self._producer.poll(0)
        done, self._done = self._done, 0
        return done

    def _on_delivery(self, error: object, _: object) -> None:
        if error is None:
            self._done += VALUE_BYTES


class LimitedConsumer:
    def __init__(self, bootstrap: str, _topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": CONSUMER,
                "group.id": "penstock-bench",
                "enable.auto.commit": False,
                "fetch.max.bytes": _RESPONSE_BYTES,
                "message.max.bytes": _RESPONSE_BYTES,
                "max.partition.fetch.bytes": _RESPONSE_BYTES,
                # No more is fetched in advance than a response has.
                "queued.max.messages.kbytes": _RESPONSE_BYTES // 1000,
            },
            logger=SILENT_LOGGER,
        )
        self._consumer.assign([TopicPartition(FULL, 0, OFFSET_BEGINNING)])

    def step(self) -> int:
        messages = self._consumer.consume(100, _PAUSE_S)
        return sum(len(message.value() or b"") for message in messages if message.error() is None)


class LimitedAdministrator:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap, "client.id": ADMINISTRATOR}, logger=SILENT_LOGGER)
        self._topic = topic
        self._made_count = 0

    def step(self) -> int:
        topic = NewTopic(f"{self._topic}-{self._made_count}", 1, 1)
        (answer,) = self._client.create_topics([topic], operation_timeout=_ANSWER_S).values()
        try:
            answer.result(_ANSWER_S)
        except KafkaException:
            # The quota is exhausted: this library does not wait by itself.
            clock.pause(_PAUSE_S)
            return 0
        self._made_count += 1
        return 1


ROLES: Final[Mapping[str, Callable[[str, str], Role]]] = {
    PRODUCER: LimitedProducer,
    CONSUMER: LimitedConsumer,
    ADMINISTRATOR: LimitedAdministrator,
}


def main(role: str, bootstrap: str, topic: str, from_s: float, seconds: float) -> None:
    """Prints how much it did a second."""
    client = ROLES[role](bootstrap, topic)
    begin_s = clock.monotonic_s() + from_s
    done = 0
    while (now_s := clock.monotonic_s()) < begin_s + seconds:
        step = client.step()
        done += step if now_s >= begin_s else 0
    click.echo(done / seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
