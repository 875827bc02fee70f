"""The driver's view of the offset map in the sink: makes its topic, follows it, and takes out what is of no use."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic, OffsetSpec

from ..connector.admin_clients import (
    QUICK_CLIENT,
    REQUEST_TIMEOUT_S,
    admin_client,
    describe_topics,
    error_of,
    list_offsets,
    repeatedly,
)
from ..connector.deadline import Deadline
from .errors import MirrorError
from .map_reader import read_map
from .rules.offset_map import OffsetMap, Pair, map_partition, tombstone
from .rules.source_partition import SourcePartition

_LOG: Final = logging.getLogger(__name__)

# Open transactions of one writer hold up readers of the same partition only.
_PARTITIONS: Final = 16
_CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": str(16 * 2**20), "min.cleanable.dirty.ratio": "0.1"}
_TIMEOUT_S: Final = 120.0


class SinkMap:
    def __init__(self, sink: Mapping[str, str], topic: str, replication_factor: int) -> None:
        self.topic = topic
        self.found = OffsetMap()
        self.offsets: list[int] = []
        """By partition: everything below is in `found`."""
        self._sink = dict(sink)
        self._replication_factor = replication_factor

    def follow(self, *, is_first_batch: bool) -> None:
        """Reads what was committed since. Raises RequestError, and MirrorError when the topic of a copy that has begun
        is gone."""
        deadline = Deadline(_TIMEOUT_S)
        if not self.offsets:
            self.offsets = [0] * self._partition_count(deadline, is_first_batch)
        places = {(self.topic, number): OffsetSpec.latest() for number in range(len(self.offsets))}
        ends = list_offsets(self._sink, places, deadline, isolation_level=IsolationLevel.READ_COMMITTED)
        wanted = {number: (start, ends[self.topic, number]) for number, start in enumerate(self.offsets)}
        records, following = read_map(self._sink, self.topic, wanted, deadline)
        for key, value in records:
            self.found.apply(key, value)
        for number, offset in following.items():
            self.offsets[number] = offset

    def write(self, records: Iterable[tuple[int, Pair]]) -> None:
        """Records by their partition. Raises MirrorError when they could not be stored."""
        producer = Producer({**self._sink, "enable.idempotence": True, **QUICK_CLIENT})
        failures: list[KafkaError] = []

        def note(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for partition, (key, value) in records:
            producer.produce(self.topic, value, key, partition=partition, on_delivery=note)
            producer.poll(0)
        left = producer.flush(_TIMEOUT_S)
        if left or failures:
            raise MirrorError(
                f"the offset map {self.topic} cannot be written: {failures[0] if failures else 'no answer'}"
            )

    def remove_lost_runs(self, log_starts: dict[tuple[str, int], int]) -> int:
        """Tombstones for runs whose records the sink has deleted; returns how many."""
        lost = self.found.lost_runs(log_starts)
        if lost:
            self.write((self.partition_of(partition), tombstone(partition, run)) for partition, run in lost)
        return len(lost)

    def partition_of(self, partition: SourcePartition) -> int:
        return map_partition(partition, len(self.offsets))

    def _partition_count(self, deadline: Deadline, is_first_batch: bool) -> int:
        described = describe_topics(self._sink, [self.topic], deadline).get(self.topic)
        if described is not None:
            return len(described.partitions)
        if not is_first_batch:
            raise MirrorError(
                f"topic {self.topic} of the sink is gone, and with it what says how far each partition was copied. Give"
                " the copy a new name (--set name=…) and a new checkpoint"
            )
        create_topic(self._sink, NewTopic(self.topic, _PARTITIONS, self._replication_factor, config=_CONFIGS), deadline)
        return _PARTITIONS


def create_topic(sink: Mapping[str, str], topic: NewTopic, deadline: Deadline) -> None:
    """Returns when all brokers that are asked know it. Raises MirrorError, RequestError."""

    def ask() -> None:
        (future,) = admin_client(sink).create_topics([topic], request_timeout=REQUEST_TIMEOUT_S).values()
        try:
            future.result()
            _LOG.info("topic %s created in the sink", topic.topic)
        except KafkaException as failure:
            error = error_of(failure)
            if error is None or error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    repeatedly(ask, f"topic {topic.topic} cannot be created in the sink", deadline)
    while topic.topic not in describe_topics(sink, [topic.topic], deadline):
        if deadline.is_over:
            raise MirrorError(f"topic {topic.topic} was created in the sink, and its brokers do not show it")
        deadline.pause()
