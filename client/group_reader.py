"""Reads a topic as a member of a consumer group, and commits what its caller is done with."""

from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

import click
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .bootstrap import Bootstrap
from .client_log import SILENT_LOGGER
from .positions import Edge
from .reader import received_record
from .record_output import ReceivedRecord

_BATCH_SIZE: Final = 1000
# Ctrl-C is heard between waits.
_WAIT_S: Final = 0.1


class GroupReader:
    """Reads what the group gives this member, from where the group has come to."""

    def __init__(self, bootstrap: Bootstrap, topic: str, group: str, *, start: Edge, is_followed: bool) -> None:
        """Where the group has committed nothing it begins at `start`. Unless it is followed, it ends when the member
        has read all that there is in its partitions."""
        self._topic = topic
        self._is_followed = is_followed
        # The partitions of this member that it has not read to the end, once it is a member.
        self._unread: set[int] | None = None
        self._consumer = Consumer(
            bootstrap.client_config(
                group_id=group,
                enable_auto_commit="false",
                enable_partition_eof="true",
                auto_offset_reset=start.value,
                isolation_level="read_uncommitted",
                fetch_queue_backoff_ms=20,
            ),
            logger=SILENT_LOGGER,
        )
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def batches(self) -> Iterator[list[ReceivedRecord]]:
        """Records as they come, in order within each partition. Raises ClickException, KafkaException."""
        while self._is_followed or self._unread is None or self._unread:
            batch = []
            first = self._consumer.poll(_WAIT_S)
            for message in [] if first is None else [first, *self._consumer.consume(_BATCH_SIZE - 1, 0)]:
                error = message.error()
                partition = message.partition()
                if error is None:
                    batch.append(received_record(message))
                    if self._unread is not None and partition is not None:
                        self._unread.add(partition)
                elif error.code() == KafkaError._PARTITION_EOF:
                    if self._unread is not None and partition is not None:
                        self._unread.discard(partition)
                elif error.fatal():
                    raise click.ClickException(f"The group does not go on: {error.str()}")
                elif not error.retriable():
                    raise KafkaException(error)
            if batch:
                yield batch

    def commit(self, records: list[ReceivedRecord]) -> None:
        """The caller is done with these: no member of the group reads them again. Raises KafkaException, unless the
        partitions were reassigned to another member: then they may be read again."""
        ends = {record.partition: record.offset + 1 for record in records}
        offsets = [TopicPartition(self._topic, partition, offset) for partition, offset in ends.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in _MOVED:
                raise

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._unread = {partition.partition for partition in partitions}

    def _on_revoke(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._unread = None


_MOVED: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
    }
)
