"""Activity tracking: what visitors of several sites do, one topic for each kind of event, each user's events in order.

    python activity_tracking.py track SITE < events     lines such as {"kind": "views", "user": "ada", "page": "/", …}
    python activity_tracking.py count KIND              how often each page has an event of this kind
    python activity_tracking.py of-user KIND USER       what one user did, in order

The key of a record is the user, so all events of a user lie in one partition of the topic, in the order of that site.
`--bootstrap` or the variable KAFKA_BOOTSTRAP_SERVERS says where the cluster is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What one user did, at which site."""

    user: str
    page: str
    site: str


def track(bootstrap: str, site: str, lines: Iterable[str]) -> int:
    """Sends each event to the topic of its kind; returns how many. Raises KafkaException when one was not taken."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    # Idempotent: retries neither repeat an event nor change the order. murmur2 is what Java's producers use.
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random"})
    count = 0
    for line in lines:
        event = json.loads(line)
        kind, user = event.pop("kind"), event.pop("user")
        producer.produce(topic_of(kind), json.dumps({**event, "site": site}), user, on_delivery=delivered)
        producer.poll(0)
        count += 1
    producer.flush()
    if failures:
        raise KafkaException(failures[0])
    return count


def events(bootstrap: str, kind: str) -> Iterator[Event]:
    """All that the topic has now."""
    for message in read_to_end(bootstrap, topic_of(kind)):
        value = json.loads(message.value() or b"{}")
        key = message.key()
        user = key.decode() if isinstance(key, bytes) else str(key)
        yield Event(user=user, page=value["page"], site=value["site"])


def topic_of(kind: str) -> str:
    """The topic of a kind of event."""
    return f"activity.{kind}"


def read_to_end(bootstrap: str, topic: str) -> Iterator[Message]:
    """Every record from the start of each partition to the end that it has then. Raises KafkaException."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True})
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        at_end: set[int | None] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("track").add_argument("site")
    commands.add_parser("count").add_argument("kind")
    of_user = commands.add_parser("of-user")
    of_user.add_argument("kind")
    of_user.add_argument("user")
    options = parser.parse_args()
    if options.command == "track":
        print(f"{track(options.bootstrap, options.site, sys.stdin)} events from {options.site}")
    elif options.command == "count":
        for page, count in sorted(Counter(event.page for event in events(options.bootstrap, options.kind)).items()):
            print(f"{count} {page}")
    else:
        for event in events(options.bootstrap, options.kind):
            if event.user == options.user:
                print(f"{event.page} at {event.site}")


if __name__ == "__main__":
    main()
