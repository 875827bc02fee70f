"""Messaging: a notifier collects a user's messages into one notification, as the user prefers, and sends none twice.

    python notifier.py [NAME]          until Ctrl-C or SIGTERM; NAME tells notifiers apart that run at once

Topics, all with as many partitions as `messages`:

    messages            key: the user; value: a text
    preferences         compacted; key: the user; value: {"digest_s": seconds to collect for, "is_muted": true or false}
    notifications       key: the user; value: the list of texts that go out together
    notifier-pending    compacted; key: the user; value: what is collected and has not gone out

What it collects, what it sends and how far it has read are one transaction, so a notifier that is killed has done all
of it or nothing, and the next one goes on from there. Any error ends it, for the same reason: start it again.
`--bootstrap` or the variable KAFKA_BOOTSTRAP_SERVERS says where the cluster is.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

MESSAGES = "messages"
PREFERENCES = "preferences"
NOTIFICATIONS = "notifications"
PENDING = "notifier-pending"
BATCH_SIZE = 500
POLL_S = 0.1
TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Without one, a message goes out at once."""

    digest_s: float = 0.0
    is_muted: bool = False


@dataclass(slots=True, kw_only=True)
class Digest:
    """The messages of a user that have not gone out."""

    partition: int
    first_ms: int
    texts: list[str] = field(default_factory=list)
    is_stored: bool = False

    def is_due(self, preference: Preference, now_ms: int) -> bool:
        return preference.is_muted or now_ms >= self.first_ms + preference.digest_s * 1000


class Notifier:
    """Reads, collects, sends, one transaction at a time."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.is_stopped = False
        self._bootstrap = bootstrap
        self._digests: dict[str, Digest] = {}
        self._preferences: dict[str, Preference] = {}
        # The same id as before it was killed: what the last life left open is aborted.
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"notifier-{name}"})
        self._messages = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "notifier",
                # It takes the place of its last life at once.
                "group.instance.id": name,
                "session.timeout.ms": 6000,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._table = _reader(bootstrap)

    def run(self) -> None:
        """Until `is_stopped`. Raises KafkaException."""
        self._producer.init_transactions(TIMEOUT_S)
        _assign_all(self._table, PREFERENCES)
        self._take_preferences(_to_end(self._table))
        self._messages.subscribe([MESSAGES], on_assign=self._assigned, on_revoke=self._revoked)
        try:
            while not self.is_stopped:
                self._step(self._messages.consume(BATCH_SIZE, POLL_S))
        finally:
            self._messages.close()
            self._table.close()

    def _step(self, messages: Iterable[Message]) -> None:
        self._take_preferences(self._table.consume(BATCH_SIZE, 0))
        changed = {self._collect(message) for message in messages}
        now_ms = int(time.time() * 1000)
        due = [
            user
            for user, digest in self._digests.items()
            if digest.is_due(self._preferences.get(user, Preference()), now_ms)
        ]
        if not changed and not due:
            return
        self._producer.begin_transaction()
        for user in {*changed, *due}:
            digest = self._digests[user]
            if user not in due:
                value = json.dumps({"first_ms": digest.first_ms, "texts": digest.texts})
                self._producer.produce(PENDING, value, user, digest.partition)
                digest.is_stored = True
                continue
            del self._digests[user]
            if not self._preferences.get(user, Preference()).is_muted:
                self._producer.produce(NOTIFICATIONS, json.dumps(digest.texts), user)
            if digest.is_stored:
                # Deleted: nothing of this user waits.
                self._producer.produce(PENDING, None, user, digest.partition)
        positions = [one for one in self._messages.position(self._messages.assignment()) if one.offset >= 0]
        self._producer.send_offsets_to_transaction(positions, self._messages.consumer_group_metadata(), TIMEOUT_S)
        self._producer.commit_transaction(TIMEOUT_S)

    def _collect(self, message: Message) -> str:
        """Returns the user."""
        _check(message)
        user = _text(message.key())
        _, sent_ms = message.timestamp()
        digest = self._digests.setdefault(user, Digest(partition=message.partition() or 0, first_ms=sent_ms))
        digest.texts.append(_text(message.value()))
        return user

    def _take_preferences(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if (error := message.error()) is not None and error.code() == KafkaError._PARTITION_EOF:
                continue
            _check(message)
            value = message.value()
            self._preferences[_text(message.key())] = Preference(**json.loads(value)) if value else Preference()

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Takes over what was collected of these partitions."""
        reader = _reader(self._bootstrap)
        reader.assign([TopicPartition(PENDING, one.partition, OFFSET_BEGINNING) for one in partitions])
        for message in _to_end(reader):
            user, value = _text(message.key()), message.value()
            self._digests.pop(user, None)
            if value:
                self._digests[user] = Digest(partition=message.partition() or 0, is_stored=True, **json.loads(value))
        reader.close()

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = {one.partition for one in partitions}
        self._digests = {user: one for user, one in self._digests.items() if one.partition not in numbers}


def _reader(bootstrap: str) -> Consumer:
    """Of a table: it reads from the start, outside any group."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )


def _assign_all(reader: Consumer, topic: str) -> None:
    partitions = reader.list_topics(topic, TIMEOUT_S).topics[topic].partitions
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])


def _to_end(reader: Consumer) -> Iterator[Message]:
    """Until the end of each partition that it was given."""
    at_end: set[int | None] = set()
    while len(at_end) < len(reader.assignment()):
        message = reader.poll(POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            at_end.add(message.partition())
            continue
        _check(message)
        yield message


def _check(message: Message) -> None:
    error = message.error()
    if error is not None:
        raise KafkaException(error)


def _text(data: str | bytes | None) -> str:
    return data.decode() if isinstance(data, bytes) else data or ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092"))
    parser.add_argument("name", nargs="?", default="1")
    options = parser.parse_args()
    notifier = Notifier(options.bootstrap, options.name)

    def stop(_signal: int, _frame: object) -> None:
        notifier.is_stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    notifier.run()


if __name__ == "__main__":
    main()
