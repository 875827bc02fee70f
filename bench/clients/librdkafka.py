"""confluent-kafka as it is, as the package says."""

from __future__ import annotations

import select
import sys
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, Producer

from ...client import clock

_INTERVAL_S: Final = 0.005
_VALUE: Final = bytes(20)


def _write(bootstrap: str, topic: str, partitions: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    numbers = [int(partition) for partition in partitions.split(",")]
    while _is_wanted():
        for partition in numbers:
            producer.produce(topic, _VALUE, partition=partition, on_delivery=partial(_tell_delivery, partition))
        next_s = clock.monotonic_s() + _INTERVAL_S
        while (left_s := next_s - clock.monotonic_s()) > 0:
            producer.poll(left_s)


def _commit(bootstrap: str, topic: str, group: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    while _is_wanted():
        message = consumer.poll(_INTERVAL_S)
        if message is None or message.error():
            continue
        try:
            consumer.commit(message=message, asynchronous=False)
        except KafkaException as error:
            sys.stderr.write(f"{error}\n")
        else:
            _tell("commit")


def _tell_delivery(partition: int, error: object, _message: Message) -> None:
    if error is None:
        _tell(f"ack {partition}")


def _tell(event: str) -> None:
    sys.stdout.write(f"{event}\n")
    sys.stdout.flush()


def _is_wanted() -> bool:
    return not select.select([sys.stdin], [], [], 0)[0]


def main() -> None:
    bootstrap, topic, mode, argument = sys.argv[1:]
    (_write if mode == "write" else _commit)(bootstrap, topic, argument)


if __name__ == "__main__":
    main()
