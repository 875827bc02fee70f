"""Sends records to one topic and keeps account of what was acknowledged."""

from dataclasses import dataclass, field
from typing import Final

import click
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from . import clock
from .bootstrap import Bootstrap
from .client_log import SILENT_LOGGER
from .partitioners import Partitioner
from .record_input import RecordToSend

# How long a topic that is not there may take to be created by the broker (auto.create.topics.enable).
_AUTO_CREATE_S: Final = 2.0
_AUTO_CREATE_POLL_S: Final = 0.05
# How long a record may wait for its acknowledgement before it counts as failed.
_DELIVERY_TIMEOUT_MS: Final = 30_000
# Acknowledgements are taken in between, so that they do not pile up.
_RECORDS_PER_POLL: Final = 200


@dataclass(slots=True)
class Placed:
    """What one partition got. Offsets are None with acks=0, whose responses have none."""

    count: int = 0
    first: int | None = None
    last: int | None = None


@dataclass(slots=True)
class Sent:
    acknowledged: int = 0
    failed: int = 0
    # Of keys and values that were acknowledged.
    size_bytes: int = 0
    partitions: dict[int, Placed] = field(default_factory=dict)
    first_error: KafkaError | None = None


class Sender:
    """One producer for one topic."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        topic: str,
        *,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
        acks: str = "all",
        compression: str = "none",
        is_idempotent: bool = True,
    ) -> None:
        """Raises ClickException when the cluster, the topic or the partition is not there."""
        bootstrap.check_reachable()
        self._topic = topic
        self._partition = partition
        self._partitioner = partitioner
        self._headers = list(headers)
        self._sent = Sent()
        self._since_poll = 0
        self._producer = Producer(
            bootstrap.client_config(
                acks=acks,
                compression_type=compression,
                enable_idempotence=str(is_idempotent).lower(),
                # As the Java client: records without a key stay on one partition for a batch.
                partitioner="murmur2_random",
                message_timeout_ms=_DELIVERY_TIMEOUT_MS,
            ),
            logger=SILENT_LOGGER,
        )
        self.partition_count = self._count_partitions(bootstrap)
        if partition is not None and partition >= self.partition_count:
            raise click.ClickException(
                f"Topic {topic!r} has no partition {partition}; its last one is {self.partition_count - 1}."
            )

    @property
    def has_failed(self) -> bool:
        return self._sent.failed > 0

    def send(self, record: RecordToSend) -> None:
        """Takes a record; it may wait for room. What becomes of it is known after `finish`. Raises ClickException."""
        partition = self._partition_of(record)
        headers: list[tuple[str, str | bytes | None]] = [*record.headers, *self._headers]
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=record.value,
                    key=record.key,
                    partition=partition,
                    on_delivery=self._on_delivery,
                    # librdkafka takes 0 for "now".
                    timestamp=record.timestamp_ms or 0,
                    headers=headers,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                # This record only; it was not queued.
                self._fail(error.args[0])
                return
            else:
                break
        self._since_poll += 1
        if self._since_poll >= _RECORDS_PER_POLL:
            self._producer.poll(0)
            self._since_poll = 0

    def finish(self) -> Sent:
        """Waits until every record that was taken is acknowledged or has failed."""
        while self._producer.flush(1.0) > 0:
            pass
        return self._sent

    def _partition_of(self, record: RecordToSend) -> int:
        if self._partition is not None:
            return self._partition
        chosen = record.partition
        if chosen is None and self._partitioner is not None:
            chosen = self._ask(self._partitioner, record)
        if chosen is None:
            return -1
        if not 0 <= chosen < self.partition_count:
            raise click.ClickException(
                f"A record is for partition {chosen!r}, but the last one of topic {self._topic!r} is"
                f" {self.partition_count - 1}."
            )
        return chosen

    def _ask(self, partitioner: Partitioner, record: RecordToSend) -> int:
        try:
            chosen = partitioner(record.key, record.value, self.partition_count)
        except Exception as error:  # code of the user, which may raise anything
            raise click.ClickException(f"The partitioner failed: {error!r}.") from error
        if not isinstance(chosen, int):
            raise click.ClickException(f"The partitioner answered {chosen!r}, not the number of a partition.")
        return chosen

    def _count_partitions(self, bootstrap: Bootstrap) -> int:
        """Asking for a topic makes a broker that creates topics by itself create it; that takes a moment."""
        found = 0

        def has_partitions() -> bool:
            nonlocal found
            topic = self._producer.list_topics(self._topic, timeout=bootstrap.timeout_s).topics[self._topic]
            if topic.error is not None and topic.error.code() == KafkaError.TOPIC_EXCEPTION:
                raise click.ClickException(f"{self._topic!r} cannot be the name of a topic.")
            found = len(topic.partitions)
            return found > 0

        if not clock.wait_until(has_partitions, timeout_s=_AUTO_CREATE_S, interval_s=_AUTO_CREATE_POLL_S):
            raise click.ClickException(
                f"Topic {self._topic!r} does not exist; `penstock topic create {self._topic}` creates it."
            )
        return found

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(error)
            return
        sent = self._sent
        sent.acknowledged += 1
        # The length of a message is that of its value.
        sent.size_bytes += len(message) + len(message.key() or b"")
        partition, offset = message.partition(), message.offset()
        assert partition is not None, "an acknowledged record has a partition"
        placed = sent.partitions.get(partition)
        if placed is None:
            placed = sent.partitions[partition] = Placed()
        placed.count += 1
        if offset is not None and offset >= 0:
            placed.first = offset if placed.first is None else min(placed.first, offset)
            placed.last = offset if placed.last is None else max(placed.last, offset)

    def _fail(self, error: KafkaError) -> None:
        self._sent.failed += 1
        self._sent.first_error = self._sent.first_error or error
