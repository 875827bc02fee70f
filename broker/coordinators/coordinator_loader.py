"""Loading of a coordinator: the records of its partition are read, and those that count replayed by an empty shard.

Kafka: `CoordinatorLoader`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ...protocol.batches import HEADER_SIZE, NO_PRODUCER_ID, BatchHeader, read_header
from ...protocol.errors import CorruptData
from ...protocol.plain_records import read_plain_records
from ...protocol.records import control_type, read_records
from ...storage.log.file_slice import FileSlice
from ...storage.log.rules.control_records import COMMIT
from ..coordination.coordinator_shard import CoordinatorShard
from ..coordination.latest_records import LatestRecords, LoadedRecord, TransactionEnd
from ..replicas.partition import Partition

RECORDS_PER_TURN: Final = 500
"""So many are replayed before other requests have their turn: some milliseconds."""
_BATCHES_PER_TURN: Final = 500
"""Of a few records each, that are only looked through: some milliseconds as well."""
_COLLECTED_MAX: Final = 50_000
"""Records in memory that are still to be replayed: some 20 MB."""


class ReadFailedError(Exception):
    """This node cannot read the log; another replica may."""


class CoordinatorLoader:
    """Of one partition that this node leads."""

    def __init__(self, partition: Partition, loop: asyncio.AbstractEventLoop, load_bytes: int) -> None:
        """`load_bytes` are read at a time."""
        self._partition = partition
        self._loop = loop
        self._load_bytes = load_bytes

    async def load(self, shard: CoordinatorShard) -> int:
        """The shard replays the log, except records that later ones make needless. Returns how many there were in all.

        Raises ReadFailedError, or what the shard raises.
        """
        log = self._partition.log
        latest = LatestRecords(shard.is_superseded)
        record_count = 0
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            raw = await self._read(offset)
            try:
                offset, count = await self._collect(latest, raw, offset)
            except CorruptData:
                # Either the log of this replica is damaged, and another one is to lead, or all have the same records.
                self._partition.check(offset, len(raw))
                raise
            record_count += count
            if len(latest) >= _COLLECTED_MAX:
                await self._replay(shard, latest)
        await self._replay(shard, latest)
        return record_count

    async def _read(self, offset: int) -> bytes:
        """Raises ReadFailedError; a file that cannot be read is damage that the next read finds."""
        try:
            data = self._partition.read(offset, self._load_bytes, self._partition.log.log_end_offset, True)
            return await self._loop.run_in_executor(None, _read_all, data.slices)
        except Exception as error:
            raise ReadFailedError(f"{error!r} at offset {offset}") from error

    async def _collect(self, latest: LatestRecords, raw: bytes, offset: int) -> tuple[int, int]:
        """All whole batches; returns where the next one begins, and how many records there were."""
        position = count = batch_count = 0
        start_offset = offset
        while len(raw) - position >= HEADER_SIZE:
            if batch_count == _BATCHES_PER_TURN:
                batch_count = 0
                await asyncio.sleep(0)
            plain = read_plain_records(raw, position, offset, _BATCHES_PER_TURN - batch_count)
            if plain.batch_count:
                latest.add_values(plain.records)
                count += len(plain.records)
                batch_count += plain.batch_count
                position, offset = plain.end, plain.next_offset
                continue
            batch_count += 1
            header = read_header(raw, position)
            if position + header.size_bytes > len(raw):
                break
            batch = memoryview(raw)[position : position + header.size_bytes]
            count += _collect_batch(latest, batch, header, start_offset)
            position += header.size_bytes
            offset = header.next_offset
        if position == 0:
            raise CorruptData(f"no whole batch at offset {offset}")
        return offset, count

    async def _replay(self, shard: CoordinatorShard, latest: LatestRecords) -> None:
        for number, record in enumerate(latest.take(), start=1):
            try:
                if isinstance(record, TransactionEnd):
                    shard.replay_end_transaction(record.producer_id, is_commit=record.is_commit)
                else:
                    shard.replay(*record)
            except CorruptData:
                self._partition.check(record.offset, self._load_bytes)
                raise
            if number % RECORDS_PER_TURN == 0:
                await asyncio.sleep(0)


def _collect_batch(latest: LatestRecords, batch: memoryview, header: BatchHeader, start_offset: int) -> int:
    """Any batch; returns how many records it has from `start_offset` on. Raises CorruptData."""
    count = 0
    for record in read_records(batch, header):
        if record.offset < start_offset:
            continue
        count += 1
        if not header.is_control:
            if header.is_transactional or record.key is None:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                latest.add(LoadedRecord(record.offset, record.key, record.value, producer_id))
            else:
                latest.add_values([(record.offset, record.key, record.value)])
        elif (kind := control_type(record)) <= COMMIT:
            latest.add(TransactionEnd(record.offset, header.producer_id, kind == COMMIT))
    return count


def _read_all(slices: Sequence[FileSlice]) -> bytes:
    """In a thread: it may wait for the disk. Raises OSError."""
    return b"".join(bytes(piece.read(0, piece.size)) for piece in slices)
