"""Reads records of the offset map, of committed transactions only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ..connector.admin_clients import QUICK_CLIENT
from ..connector.deadline import Deadline
from .errors import MirrorError
from .rules.offset_map import Pair

# The client wants one, and nothing is ever committed to it.
_GROUP: Final = "penstock-offset-map"
_POLL_S: Final = 0.2


def read_map(
    sink: Mapping[str, str], topic: str, wanted: Mapping[int, tuple[int, int]], deadline: Deadline
) -> tuple[list[Pair], dict[int, int]]:
    """Records by partition from the first offset to the second, which is not inside, and the offsets to go on from.

    A transaction that is open below the end is waited for. Raises MirrorError at the deadline.
    """
    places = {partition: start for partition, (start, end) in wanted.items() if start < end}
    records: list[Pair] = []
    following = {partition: start for partition, (start, _) in wanted.items()}
    if not places:
        return records, following
    consumer = Consumer(
        {
            **sink,
            "group.id": _GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # An offset that is not there any more is an error: the topic was deleted.
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            **QUICK_CLIENT,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, start) for partition, start in places.items()])
        left = set(places)
        while left:
            message = consumer.poll(min(_POLL_S, deadline.left_s))
            if message is not None and not _is_passing(message.error(), topic):
                partition, offset = message.partition(), message.offset()
                assert partition is not None, "it has a place, be it a record or an end"
                assert offset is not None, "it has a place, be it a record or an end"
                if message.error() is None:
                    key, value = message.key(), message.value()
                    if isinstance(key, bytes):
                        records.append((key, value if isinstance(value, bytes) else None))
                    offset += 1
                following[partition] = max(following[partition], offset)
                if following[partition] >= wanted[partition][1]:
                    left.discard(partition)
            if left and deadline.is_over:
                raise MirrorError(
                    f"the offset map {topic} could not be read to its end: partition {min(left)} is at"
                    f" {following[min(left)]} of {wanted[min(left)][1]} (a transaction is open, or its leader is away)"
                )
    finally:
        consumer.close()
    return records, following


def _is_passing(error: KafkaError | None, topic: str) -> bool:
    """What the client gets over by itself: no record, and no end of a partition. Raises MirrorError for others."""
    if error is None or error.code() == KafkaError._PARTITION_EOF:
        return False
    if error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal():
        raise MirrorError(
            f"the offset map {topic} does not have the offsets any more that it had ({error}): without it nothing says"
            " what was copied. Give the copy a new name (--set name=…) and a new checkpoint"
        )
    return True
