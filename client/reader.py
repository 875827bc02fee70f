"""Reads ranges of partitions, without a consumer group."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Self

import click
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from msgspec import Struct

from . import clock
from .bootstrap import Bootstrap
from .client_log import SILENT_LOGGER
from .positions import AtOffset, AtTime, BeforeEnd, Edge, Position
from .record_output import ReceivedRecord
from .topics import Topics

_BATCH_SIZE: Final = 1000
# Ctrl-C is heard between waits.
_WAIT_S: Final = 0.1
_TIMESTAMP_TYPES: Final = {
    TIMESTAMP_NOT_AVAILABLE: "NoTimestampType",
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


class PartitionRange(Struct, frozen=True, kw_only=True):
    """Half-open; without an end, reading does not stop."""

    partition: int
    start_offset: int
    end_offset: int | None

    @property
    def is_empty(self) -> bool:
        return self.end_offset is not None and self.start_offset >= self.end_offset


def resolve_ranges(
    topics: Topics, topic: str, partitions: Sequence[int], *, start: Position, end: Position | None
) -> tuple[PartitionRange, ...]:
    """The offsets that positions mean now, kept within what is there. Raises ClickException, KafkaException."""
    firsts = _known(topics.offsets(topic, partitions, Edge.EARLIEST))
    lasts = _known(topics.offsets(topic, partitions, Edge.LATEST))
    starts = _resolve(topics, topic, start, firsts, lasts)
    ends = dict.fromkeys(partitions) if end is None else _resolve(topics, topic, end, firsts, lasts)
    return tuple(
        PartitionRange(partition=partition, start_offset=starts[partition], end_offset=ends[partition])
        for partition in partitions
    )


class Reader:
    """Reads ranges of one topic's partitions until all are done."""

    def __init__(self, bootstrap: Bootstrap, topic: str, ranges: Sequence[PartitionRange]) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._ends = {part.partition: part.end_offset for part in ranges if not part.is_empty}
        self._consumer = Consumer(
            bootstrap.client_config(
                # The client wants a name; without subscribing and committing there is no group.
                group_id="penstock-terminal",
                enable_auto_commit="false",
                enable_partition_eof="true",
                # An offset that is gone meanwhile is an error, not a reason to begin elsewhere.
                auto_offset_reset="error",
                isolation_level="read_uncommitted",
                # When its queue is full the client would rest for a second; it is drained in milliseconds.
                fetch_queue_backoff_ms=20,
            ),
            logger=SILENT_LOGGER,
        )
        self._consumer.assign(
            [TopicPartition(topic, part.partition, part.start_offset) for part in ranges if not part.is_empty]
        )

    def batches(self) -> Iterator[list[ReceivedRecord]]:
        """Records as they come, in order within each partition.

        Raises ClickException when a partition cannot be read, or when nothing comes for the timeout and more is due.
        """
        heard_s = clock.monotonic_s()
        while self._ends:
            batch = []
            for message in self._received():
                partition = message.partition()
                error = message.error()
                if error is not None:
                    self._on_error(error, partition, message.offset())
                elif partition in self._ends and (record := self._take(message, partition)) is not None:
                    batch.append(record)
            if batch:
                yield batch
                heard_s = clock.monotonic_s()
            elif None not in self._ends.values() and clock.monotonic_s() - heard_s > self._bootstrap.timeout_s:
                raise click.ClickException(
                    f"{self._bootstrap} sent nothing for {self._bootstrap.timeout_s:g} s, but has not sent all."
                )

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _received(self) -> list[Message]:
        """Waits for one message and takes with it what has come as well: filling a batch would make the first wait."""
        first = self._consumer.poll(_WAIT_S)
        return [] if first is None else [first, *self._consumer.consume(_BATCH_SIZE - 1, 0)]

    def _take(self, message: Message, partition: int) -> ReceivedRecord | None:
        """The record, unless it is behind the end of its range. With that, or the last one, the partition is done."""
        offset = message.offset()
        assert offset is not None, "a record that was read has an offset"
        end_offset = self._ends[partition]
        if end_offset is not None and offset + 1 >= end_offset:
            self._finish(partition)
            if offset >= end_offset:
                return None
        return received_record(message)

    def _on_error(self, error: KafkaError, partition: int | None, offset: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            # The last offsets of a range may hold no record: compaction took them, or they are markers.
            end_offset = self._ends.get(partition) if partition is not None else None
            if partition is not None and end_offset is not None and offset is not None and offset >= end_offset:
                self._finish(partition)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise click.ClickException(f"An offset of partition {partition} is not there any more: {error.str()}")
        else:
            raise KafkaException(error)

    def _finish(self, partition: int) -> None:
        del self._ends[partition]
        self._consumer.pause([TopicPartition(self._topic, partition)])


def received_record(message: Message) -> ReceivedRecord:
    """Of a message without an error."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, "a record that was read has a topic"
    assert partition is not None, "a record that was read has a partition"
    assert offset is not None, "a record that was read has an offset"
    kind, timestamp_ms = message.timestamp()
    return ReceivedRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        timestamp_type=_TIMESTAMP_TYPES[kind],
        key=message.key(),
        value=message.value(),
        headers=_headers_of(message),
    )


def _resolve(
    topics: Topics, topic: str, position: Position, firsts: dict[int, int], lasts: dict[int, int]
) -> dict[int, int]:
    match position:
        case Edge.EARLIEST:
            return firsts
        case Edge.LATEST:
            return lasts
        case AtOffset(offset):
            return {partition: min(max(offset, firsts[partition]), lasts[partition]) for partition in firsts}
        case BeforeEnd(count):
            return {partition: max(lasts[partition] - count, firsts[partition]) for partition in firsts}
        case AtTime():
            found = topics.offsets(topic, list(firsts), position)
            return {partition: lasts[partition] if offset is None else offset for partition, offset in found.items()}


def _known(offsets: dict[int, int | None]) -> dict[int, int]:
    known = {}
    for partition, offset in offsets.items():
        if offset is None:
            raise click.ClickException(f"The broker does not tell the offsets of partition {partition}.")
        known[partition] = offset
    return known


def _headers_of(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
