"""Writes the records of one source partition to the sink, each exactly once.

Every transaction has records and, in the offset map, the position after them. A writer begins like this:

1. `init_transactions` with the transactional id of the source partition: the coordinator ends what a writer before has
   left open, and fences it (KIP-98). No other writer commits any more, wherever its task runs.
2. It opens a transaction with a record in the offset map, the fence, and reads the map up to the fence's offset. Only
   the leader could give that offset, so that a broker that was a leader once cannot answer with an older map; and in
   read_committed the records below are all decided. The last position there is the position.
3. Records below the position are in the sink already: they are left out.

A transaction that fails is tried again from 1. with the same records, until `write_timeout_s` is over. A fault may have
hidden that it was committed; then 2. finds that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ..connector.admin_clients import QUICK_CLIENT, is_hopeless, topic_id
from ..connector.deadline import Deadline
from .errors import MirrorError
from .map_reader import read_map
from .record_columns import RecordColumns, joined
from .rules.offset_map import Pair, Position, fence_record, map_partition, position_of, position_record, run_records
from .rules.offset_runs import marks, runs, sections
from .rules.source_partition import SourcePartition
from .rules.write_plan import WritePlan, check_topic_ids

_LOG: Final = logging.getLogger(__name__)

_POLL_EVERY: Final = 5_000
_FULL_QUEUE_POLL_S: Final = 0.5
# The client's partitioner says.
_BY_KEY: Final = -1
# The smallest part of a batch that is tried alone when larger ones take too long.
_SMALLEST_PART: Final = 100
# Fenced so often without a transaction of its own, a writer gives way.
_FENCED_MAX: Final = 5
_FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.FENCED_INSTANCE_ID}
)
_ABORT_TIMEOUT_S: Final = 10.0
_LINGER_MS: Final = 5
_BATCH_BYTES: Final = 1_000_000
_QUEUE_KBYTES: Final = 256 * 1024
# The sink's max.message.bytes decides, not the client.
_MESSAGE_BYTES_MAX: Final = 500_000_000


class PartitionWriter:
    def __init__(self, plan: WritePlan, partition: SourcePartition) -> None:
        """Raises MirrorError when the plan has no target for it."""
        self.partition = partition
        self.written = 0
        self.skipped = 0
        self.transactions = 0
        self._plan = plan
        self._route = plan.route(partition)
        self._map_partition = map_partition(partition, len(plan.map_offsets))
        self._position = plan.positions.get(partition)
        self._map_offset = plan.map_offsets[self._map_partition]
        self._parts: list[RecordColumns] = []
        self._producer: Producer | None = None
        self._is_open = False
        self._fenced = 0

    @property
    def next_offset(self) -> int | None:
        """As far as is known here."""
        return None if self._position is None else self._position.next_offset

    def add(self, records: RecordColumns) -> None:
        """In ascending order of the offsets. Raises MirrorError, RequestError."""
        self._parts.append(records)
        size_bytes = sum(part.size_bytes for part in self._parts)
        count = sum(map(len, self._parts))
        if size_bytes >= self._plan.transaction_bytes or count >= self._plan.transaction_records:
            self._write_parts()

    def finish(self) -> None:
        """Writes what is left. Raises MirrorError, RequestError."""
        self._write_parts()
        if self._producer is not None and self._is_open:
            # Readers of the offset map need not wait for its timeout.
            with suppress(KafkaException):
                self._producer.abort_transaction(_ABORT_TIMEOUT_S)
        self.close()

    def close(self) -> None:
        """A transaction that is open is aborted by the coordinator, or by the next writer."""
        producer, self._producer, self._is_open = self._producer, None, False
        if producer is not None:
            producer.purge()

    def _write_parts(self) -> None:
        if not self._parts:
            return
        records, self._parts = joined(self._parts), []
        if self.next_offset is not None and records.offsets[-1] < self.next_offset:
            # A position never goes back: nothing needs to be opened, and the writer of later ones is not fenced.
            self.skipped += len(records)
            return
        # After all were read, so that they are records of the topic that has the id now.
        deadline = Deadline(self._plan.write_timeout_s)
        found = topic_id(self._plan.sources[self.partition.cluster], self.partition.topic, deadline)
        if found is None:
            raise MirrorError(
                f"topic {self.partition.topic} of {self.partition.cluster} was deleted while it was copied"
            )
        waiting = [records]
        deadline = Deadline(self._plan.write_timeout_s)
        while waiting:
            part = waiting.pop()
            try:
                self._write(part, found, deadline)
                deadline = Deadline(self._plan.write_timeout_s)
            except (KafkaException, SystemError) as raised:
                failure = self._failure(raised)
                self.close()
                self._judge(failure, deadline)
                # A transaction may be too large for its timeout.
                if len(part) > _SMALLEST_PART:
                    middle = len(part) // 2
                    waiting += [part.part(middle, len(part)), part.part(0, middle)]
                else:
                    waiting.append(part)
                deadline.pause()

    def _failure(self, raised: KafkaException | SystemError) -> KafkaException:
        """Raises SystemError if it has nothing to do with the client.

        The client raises a fatal error in the midst of its callbacks, so that Python wraps it or loses it; each later
        call is refused with it.
        """
        if isinstance(raised, KafkaException):
            return raised
        if self._producer is not None:
            try:
                self._producer.abort_transaction(_ABORT_TIMEOUT_S)
            except KafkaException as fatal:
                return fatal
        raise raised

    def _judge(self, failure: KafkaException, deadline: Deadline) -> None:
        """Raises MirrorError unless another attempt may help."""
        error = failure.args[0]
        _LOG.warning("transaction of %s failed and is tried again: %s", self.partition, failure)
        if is_hopeless(failure):
            raise MirrorError(
                f"{self.partition} cannot be written to {self._route.target_topic}: {failure}"
            ) from failure
        if error.code() in _FENCED:
            self._fenced += 1
            if self._fenced > _FENCED_MAX:
                raise MirrorError(
                    f"{self.partition} is written by another task too, with the same transactional id"
                    f" {self.partition.transactional_id(self._plan.transactional_prefix)}: run only one copy of this"
                    f" name ({failure})"
                ) from failure
        if deadline.is_over:
            raise MirrorError(
                f"{self.partition} could not be written within {self._plan.write_timeout_s:g} s: {failure}"
            ) from failure

    def _write(self, records: RecordColumns, source_topic_id: str, deadline: Deadline) -> None:
        """In one transaction. Raises KafkaException after which the producer is of no use."""
        producer = self._producer or self._begin(deadline)
        check_topic_ids(self.partition, self._route, source_topic_id, self._position)
        before = self.next_offset
        rest = records if before is None else records.since(before)
        self.skipped += len(records) - len(rest)
        if not rest:
            return
        if not self._is_open:
            producer.begin_transaction()
            self._is_open = True
        self._send(producer, rest, source_topic_id, deadline)
        self._fenced = 0
        self.written += len(rest)
        self.transactions += 1

    def _send(self, producer: Producer, records: RecordColumns, source_topic_id: str, deadline: Deadline) -> None:
        is_kept = self._plan.partitioning == "keep"
        found = sections(records.offsets, self.next_offset) if is_kept else []
        last = len(records) - 1
        deliveries = _Deliveries()
        self._produce(producer, records, [*marks(found), last], deliveries, deadline)
        targets = deliveries.flush(producer, deadline)
        position = Position(
            next_offset=records.offsets[-1] + 1,
            source_topic_id=source_topic_id,
            target_topic=self._route.target_topic,
            target_topic_id=self._route.target_topic_id,
            target_partition=self.partition.partition if is_kept else None,
            target_next_offset=targets[last] + 1 if is_kept else None,
        )
        run_found = runs(records.offsets, found, targets)
        for record in [*run_records(self.partition, run_found), position_record(self.partition, position)]:
            self._produce_to_map(producer, record)
        _commit(producer, deadline)
        self._is_open = False
        self._position = position

    def _produce(
        self,
        producer: Producer,
        records: RecordColumns,
        marked: list[int],
        deliveries: _Deliveries,
        deadline: Deadline,
    ) -> None:
        """The marked ones are those whose target offsets are wanted."""
        topic = self._route.target_topic
        columns = zip(
            records.offsets, records.timestamps_ms, records.keys, records.values, records.headers, strict=True
        )
        partitioning, kept, count = (
            self._plan.partitioning,
            self.partition.partition,
            self._route.target_partition_count,
        )
        marks_left = iter(marked)
        mark = next(marks_left)
        for index, (offset, timestamp_ms, key, value, headers) in enumerate(columns):
            target = kept if partitioning == "keep" else offset % count if partitioning == "round-robin" else _BY_KEY
            on_delivery = None
            if index == mark:
                on_delivery = deliveries.of(index)
                while mark == index:
                    mark = next(marks_left, -1)
            while True:
                try:
                    producer.produce(
                        topic,
                        value,
                        key,
                        target,
                        on_delivery=on_delivery,
                        # To the client 0 is the present time.
                        timestamp=timestamp_ms or 1,
                        headers=headers or None,
                    )
                    break
                except BufferError as full:
                    producer.poll(_FULL_QUEUE_POLL_S)
                    if deadline.is_over:
                        raise _timed_out("the queue of the client stays full") from full
            if index % _POLL_EVERY == 0:
                producer.poll(0)

    def _begin(self, deadline: Deadline) -> Producer:
        """A producer with an open transaction; the position is known then. Raises KafkaException, MirrorError."""
        plan = self._plan
        producer = self._producer = Producer(
            {
                "linger.ms": _LINGER_MS,
                "compression.type": "lz4",
                **plan.sink,
                "transactional.id": self.partition.transactional_id(plan.transactional_prefix),
                "transaction.timeout.ms": plan.transaction_timeout_ms,
                "batch.size": _BATCH_BYTES,
                "message.max.bytes": _MESSAGE_BYTES_MAX,
                "queue.buffering.max.kbytes": _QUEUE_KBYTES,
                "queue.buffering.max.messages": 0,
                "partitioner": "murmur2_random",
                **QUICK_CLIENT,
            }
        )
        producer.init_transactions(max(deadline.left_s, 1.0))
        producer.begin_transaction()
        fence = _Deliveries()
        self._produce_to_map(producer, fence_record(self.partition), fence)
        wanted = {self._map_partition: (self._map_offset, fence.flush(producer, deadline)[0])}
        # Open transactions of others end within their timeout.
        patience = Deadline(max(deadline.left_s, 2 * plan.transaction_timeout_ms / 1000))
        records, _ = read_map(plan.sink, plan.map_topic, wanted, patience)
        self._position = position_of(self.partition, records, plan.positions.get(self.partition))
        self._is_open = True
        return producer

    def _produce_to_map(self, producer: Producer, record: Pair, deliveries: _Deliveries | None = None) -> None:
        key, value = record
        on_delivery = None if deliveries is None else deliveries.of(0)
        producer.produce(self._plan.map_topic, value, key, self._map_partition, on_delivery=on_delivery)


class _Deliveries:
    """Offsets of records in the target, by their index."""

    def __init__(self) -> None:
        self._wanted: set[int] = set()
        self._offsets: dict[int, int] = {}
        self._error: KafkaError | None = None

    def of(self, index: int) -> Callable[[KafkaError | None, Message], None]:
        self._wanted.add(index)
        return partial(self._note, index)

    def flush(self, producer: Producer, deadline: Deadline) -> dict[int, int]:
        """Raises KafkaException when not everything was delivered."""
        if producer.flush(max(deadline.left_s, 1.0)) > 0:
            raise _timed_out("records were not acknowledged")
        if self._wanted - self._offsets.keys():
            raise KafkaException(self._error) if self._error else _timed_out("records were not delivered")
        return self._offsets

    def _note(self, index: int, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is not None:
            self._error = error
        elif offset is not None:
            self._offsets[index] = offset


def _commit(producer: Producer, deadline: Deadline) -> None:
    while True:
        try:
            producer.commit_transaction(max(deadline.left_s, 1.0))
            return
        except KafkaException as failure:
            # What became of it shows when it is asked again, or to the next producer of this id.
            if not failure.args[0].retriable() or deadline.is_over:
                raise
            deadline.pause()


def _timed_out(what: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, what))
