"""Random operations on one partition, each done to both brokers: their answers must stay alike, whatever came before.

Sequences of producers go right, repeat and jump; records are read from anywhere, deleted up to anywhere, and looked up
by time. Everything follows from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from differential.record_batches import batch
from differential.script import Run

from penstock.protocol.apis import APIS, ApiKey

PRODUCERS = 3
MAX_RECORDS = 5
TIME_RANGE_MS = 5_000
CODECS = (0, 1, 2, 3, 4)
VALUE_SIZES = (1, 10, 300)


class Operations:
    """What one seed does to one partition: the same on every broker, whatever that answers."""

    def __init__(self, run: Run, seed: int, count: int) -> None:
        self._run = run
        self._random = random.Random(seed)
        self._count = count
        self._name = run.create("random", segment_bytes=1_048_576, max_message_bytes=5_000)
        self._producers = [run.producer_id() for _ in range(PRODUCERS)]
        for producer in self._producers:
            run.names.number("producer_id", producer)
        self._sequences = [0] * PRODUCERS
        self._end_offset = 0

    def play(self) -> None:
        kinds: tuple[tuple[Callable[[str], None], int], ...] = (
            (self._produce, 6),
            (self._fetch, 5),
            (self._list_offsets, 3),
            (self._delete_records, 1),
            (self._describe_producers, 1),
        )
        choices, weights = zip(*kinds, strict=True)
        for number in range(self._count):
            self._random.choices(choices, weights)[0](f"{number}")

    def _version(self, key: ApiKey) -> int:
        return self._random.randint(max(APIS[key].min_version, 4 if key == ApiKey.FETCH else 0), APIS[key].max_version)

    def _produce(self, step: str) -> None:
        chance = self._random
        records = chance.randint(1, MAX_RECORDS)
        options: dict[str, int] = {"compression": chance.choice(CODECS), "step_ms": chance.choice((0, 1, 7))}
        if chance.random() < 0.6:
            which = chance.randrange(PRODUCERS)
            jump = chance.choices((0, -1, 1, -records, 100), (16, 1, 1, 4, 1))[0]
            sequence = max(self._sequences[which] + jump, 0)
            options |= {"producer_id": self._producers[which], "producer_epoch": 0, "base_sequence": sequence}
            if jump == 0:
                self._sequences[which] = sequence + records
        word = "v" * chance.choice(VALUE_SIZES)
        data = batch(self._run.base_ms + chance.randrange(TIME_RANGE_MS), records, word=word, **options)
        topic = self._run.produce_topic(self._name, {"index": 0, "records": data})
        # Versions before 7 may not hold zstd.
        version = chance.randint(7, APIS[ApiKey.PRODUCE].max_version)
        self._run.ask(f"{step} produce", ApiKey.PRODUCE, version, acks=-1, timeout=10_000, topic_data=[topic])
        self._end_offset += records

    def _fetch(self, step: str) -> None:
        chance = self._random
        limit = chance.choice((1, 100, 1_000, 100_000))
        wanted = {"partition": 0, "fetch_offset": self._offset(), "partition_max_bytes": limit}
        values: dict[str, Any] = {"max_wait": 1, "min_bytes": 0, "isolation_level": chance.randint(0, 1)}
        topics = [self._run.fetch_topic(self._name, wanted)]
        self._run.ask(
            f"{step} fetch", ApiKey.FETCH, self._version(ApiKey.FETCH), topics=topics, replica_id=-1, **values
        )

    def _list_offsets(self, step: str) -> None:
        at = self._random.choice((-1, -2, -3, self._run.base_ms + self._random.randrange(-10, TIME_RANGE_MS + 100)))
        wanted = {"partition_index": 0, "timestamp": at}
        topics = [{"name": self._name, "partitions": [wanted]}]
        version = self._version(ApiKey.LIST_OFFSETS)
        self._run.ask(f"{step} offsets", ApiKey.LIST_OFFSETS, version, replica_id=-1, topics=topics, timeout=10_000)

    def _delete_records(self, step: str) -> None:
        wanted = {"partition_index": 0, "offset": self._offset()}
        topics = [{"name": self._name, "partitions": [wanted]}]
        version = self._version(ApiKey.DELETE_RECORDS)
        self._run.ask(f"{step} delete", ApiKey.DELETE_RECORDS, version, topics=topics, timeout=10_000)

    def _describe_producers(self, step: str) -> None:
        topics = [{"name": self._name, "partition_indexes": [0]}]
        self._run.ask(f"{step} producers", ApiKey.DESCRIBE_PRODUCERS, topics=topics)

    def _offset(self) -> int:
        """Mostly one that may be there, sometimes just beyond."""
        return self._random.randint(-1, self._end_offset + 2)
