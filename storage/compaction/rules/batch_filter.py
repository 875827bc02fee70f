"""What is left of one batch: all of it, some of its records, its header alone, or nothing.

Kafka: `Cleaner.cleanInto`, `MemoryRecords.filterTo`. Offsets never change, and a batch keeps its base and last offset,
its leader epoch, producer and sequences.

A tombstone, and the marker of a transaction of which no batch is left, stay for `delete.retention.ms` from when
compaction first comes to them: until the *delete horizon*, which then stands in the batch's header instead of the base
timestamp (KIP-534). So every consumer that is quicker than that sees them.

The header alone stays of the last batch of a producer that may write on, for its sequence and epoch, and of its last
one that is committed, if that is another: a log that is cut may end with it. And of the first batch of each leader
epoch: replicas that fetch what is compacted, or lose their checkpoint, would not know of the epoch, and those that ask
them where it ends would cut what is committed. And of the last batch of what becomes one segment: so no offsets are
missing between two segments, which recovery would take for lost.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ....protocol.batches import (
    COMPRESSION_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    assemble,
)
from ....protocol.compression import compress, decompress
from ....protocol.ids import NO_LEADER_EPOCH
from ...log.rules.config import LogConfig
from ...log.rules.control_records import read_end_transaction_marker
from ...log.rules.producer_entry import ProducerEntry
from ...log.rules.record_batch import StoredBatch
from ...log.rules.record_validation import OPENED_BYTES_MAX
from .cleaned_transactions import CleanedTransactions
from .latest_offsets import LatestOffsets
from .record_table import RecordTable, largest_timestamp_delta, only, read_record_table, rebased, without


class LastBatch(NamedTuple):
    """The last that a producer has written, as its partition remembers it, and may remember it after a cut."""

    epoch: int
    last_offset: int | None
    """None when that was the end of a transaction."""
    committed_offset: int | None
    """The last offset of the last one that will not be cut; None when that is not known or no batch of it is left."""

    def may_be(self, header: BatchHeader) -> bool:
        if self.last_offset is None:
            return header.is_control and header.producer_epoch == self.epoch
        if header.is_control:
            return False
        # Of those that are remembered all may be cut: then the last one is any of the others.
        return self.committed_offset is None or header.last_offset in (self.last_offset, self.committed_offset)


def last_batch_of(entry: ProducerEntry, stable_offset: int) -> LastBatch:
    """Of one producer of a log; what is below `stable_offset` is not cut."""
    last = entry.last_batch
    committed = [batch.last_offset for batch in entry.batches if batch.last_offset < stable_offset]
    return LastBatch(entry.epoch, None if last is None else last.last_offset, committed[-1] if committed else None)


class Kept(NamedTuple):
    """What is left of a batch."""

    data: bytes | None
    """None: all of it, as it is. Empty: nothing."""
    record_count: int


GONE: Final = Kept(b"", 0)


def open_table(batch: StoredBatch) -> RecordTable:
    """CorruptData when the records are not what the header says, or more than a node opens."""
    return read_record_table(_open(batch), batch.header)


def _open(batch: StoredBatch) -> bytes:
    return bytes(decompress(batch.header.compression, batch.data[HEADER_SIZE:], OPENED_BYTES_MAX))


class BatchFilter:
    """Batches come in offset order, from the first of the log on."""

    __slots__ = (
        "_begins_epoch",
        "_config",
        "_last_batches",
        "_latest",
        "_leader_epoch",
        "_now_ms",
        "segment_end",
        "transactions",
    )

    def __init__(
        self,
        latest: LatestOffsets,
        transactions: CleanedTransactions,
        last_batches: Mapping[int, LastBatch],
        *,
        now_ms: int,
        config: LogConfig,
    ) -> None:
        """`last_batches` are by producer id; `now_ms` is the wall clock's."""
        self._latest = latest
        self.transactions = transactions
        self._last_batches = last_batches
        self.segment_end = 0
        """Where the segment that is being written ends: set by the caller."""
        self._leader_epoch: int = NO_LEADER_EPOCH
        # Of the batch at hand.
        self._begins_epoch = False
        self._now_ms = now_ms
        self._config = config

    def keep(self, batch: StoredBatch) -> Kept:
        """CorruptData when the batch has to be opened and cannot be."""
        header = batch.header
        self._begins_epoch = header.partition_leader_epoch > self._leader_epoch
        if self._begins_epoch:
            self._leader_epoch = header.partition_leader_epoch
        return self._keep_marker(batch, header) if header.is_control else self._keep_records(batch, header)

    def _keep_records(self, batch: StoredBatch, header: BatchHeader) -> Kept:
        latest = self._latest
        if self.transactions.is_aborted(header) or header.record_count == 0:
            return self._keep_header(header)
        if header.base_offset >= latest.end_offset:
            return Kept(None, header.record_count)
        left = latest.left_of(header)
        if left is not None:
            return self._keep_offsets(batch, header, left)
        table = open_table(batch)
        superseded = latest.superseded(table)
        horizon_ms = header.delete_horizon_ms
        begins_horizon = False
        if table.tombstones:
            live = set(table.tombstones).difference(superseded)
            if horizon_ms is None:
                begins_horizon = bool(live)
            elif horizon_ms <= self._now_ms:
                superseded = sorted(live.union(superseded))
        count = header.record_count - len(superseded)
        if count == 0:
            return self._keep_header(header)
        if not superseded and not begins_horizon:
            return Kept(None, count)
        records = without(table, superseded) if superseded else table.data
        return Kept(self._rewritten(header, records, count, begins_horizon=begins_horizon), count)

    def _keep_offsets(self, batch: StoredBatch, header: BatchHeader, offsets: Sequence[int]) -> Kept:
        """Of records that were read before, none of which is a tombstone."""
        count = len(offsets)
        if count == 0:
            return self._keep_header(header)
        if count == header.record_count:
            return Kept(None, count)
        if header.record_count == header.last_offset_delta + 1:
            records = only(_open(batch), [offset - header.base_offset for offset in offsets])
        else:
            # Compaction has been here before.
            table = open_table(batch)
            latest = set(offsets)
            records = without(table, [number for number, offset in enumerate(table.offsets) if offset not in latest])
        return Kept(self._rewritten(header, records, count, begins_horizon=False), count)

    def _keep_marker(self, batch: StoredBatch, header: BatchHeader) -> Kept:
        marker = read_end_transaction_marker(batch.data, header)
        if not self.transactions.is_ended(header, marker):
            return Kept(None, header.record_count)
        if marker is None:
            return self._keep_header(header)
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None:
            records = open_table(batch).data
            return Kept(self._rewritten(header, records, header.record_count, begins_horizon=True), header.record_count)
        return self._keep_header(header) if horizon_ms <= self._now_ms else Kept(None, header.record_count)

    def _keep_header(self, header: BatchHeader) -> Kept:
        """All records go."""
        last = self._last_batches.get(header.producer_id) if header.has_producer_id else None
        is_last = last is not None and last.may_be(header)
        if not (is_last or self._begins_epoch or header.next_offset == self.segment_end):
            return GONE
        if header.record_count == 0:
            return Kept(None, 0)
        attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG)
        return Kept(
            assemble(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b""), 0
        )

    def _rewritten(self, header: BatchHeader, records: bytes, count: int, *, begins_horizon: bool) -> bytes:
        if not header.is_log_append_time:
            header = header._replace(max_timestamp=header.base_timestamp + largest_timestamp_delta(records))
        if begins_horizon:
            horizon_ms = self._now_ms + self._config.delete_retention_ms
            records = rebased(records, horizon_ms - header.base_timestamp)
            header = header._replace(base_timestamp=horizon_ms, attributes=header.attributes | DELETE_HORIZON_FLAG)
        level = self._config.level_of(header.compression)
        return assemble(header._replace(record_count=count), compress(header.compression, records, level))
