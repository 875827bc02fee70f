"""Loading of a coordinator: all records of its partition are read and replayed by an empty shard.

Kafka: `CoordinatorLoader`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ...protocol.batches import HEADER_SIZE, NO_PRODUCER_ID, read_header
from ...protocol.errors import CorruptData
from ...protocol.records import control_type, read_records
from ...storage.log.file_slice import FileSlice
from ...storage.log.rules.control_records import COMMIT
from ..coordination.coordinator_shard import CoordinatorShard
from ..replicas.partition import Partition

RECORDS_PER_TURN: Final = 500
"""So many are replayed before other requests have their turn: some milliseconds."""


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
        """The shard replays the whole log. Returns how many records there were.

        Raises ReadFailedError, or what the shard raises.
        """
        log = self._partition.log
        record_count = 0
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            raw = await self._read(offset)
            try:
                offset, count = await self._replay(shard, raw, offset)
            except CorruptData:
                # Either the log of this replica is damaged, and another one is to lead, or all have the same records.
                self._partition.check(offset, len(raw))
                raise
            record_count += count
        return record_count

    async def _read(self, offset: int) -> bytes:
        """Raises ReadFailedError; a file that cannot be read is damage that the next read finds."""
        try:
            data = self._partition.read(offset, self._load_bytes, self._partition.log.log_end_offset, True)
            return await self._loop.run_in_executor(None, _read_all, data.slices)
        except Exception as error:
            raise ReadFailedError(f"{error!r} at offset {offset}") from error

    async def _replay(self, shard: CoordinatorShard, raw: bytes, offset: int) -> tuple[int, int]:
        """All whole batches; returns where the next one begins, and how many records there were."""
        position = 0
        count = since_pause = 0
        start_offset = offset
        while len(raw) - position >= HEADER_SIZE:
            header = read_header(raw, position)
            if position + header.size_bytes > len(raw):
                break
            batch = memoryview(raw)[position : position + header.size_bytes]
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            for record in read_records(batch, header):
                if record.offset < start_offset:
                    continue
                if header.is_control:
                    kind = control_type(record)
                    if kind <= COMMIT:
                        shard.replay_end_transaction(header.producer_id, is_commit=kind == COMMIT)
                else:
                    shard.replay(record.offset, record.key, record.value, producer_id)
                since_pause += 1
                if since_pause >= RECORDS_PER_TURN:
                    count += since_pause
                    since_pause = 0
                    await asyncio.sleep(0)
            position += header.size_bytes
            offset = header.next_offset
        if position == 0:
            raise CorruptData(f"no whole batch at offset {offset}")
        return offset, count + since_pause


def _read_all(slices: Sequence[FileSlice]) -> bytes:
    """In a thread: it may wait for the disk. Raises OSError."""
    return b"".join(bytes(piece.read(0, piece.size)) for piece in slices)
