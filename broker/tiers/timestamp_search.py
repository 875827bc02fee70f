"""Looks for timestamps in what only the tier has. Kafka: `RemoteLogManager.findOffsetByTimestamp`.

Searches share the threads and the quota of reads, and leave threads to them: more searches wait for their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, NamedTuple

from ...protocol.batches import HEADER_SIZE, Buffer, read_header
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...storage.log.timestamp_lookup import TimestampOffset, first_in_batch
from ...storage.tiers.rules.tier_store import TierError, TierStore
from ..replicas.partition import Partition
from ..replication.rules.replication_quota import ReplicationQuota
from .byte_rate import within_quota
from .metadata_log import MetadataLog
from .rules.remote_segment import RemoteSegment
from .rules.tier_plan import tiered_runs
from .tier_loader import key_of, load_indexes

SEARCHED_BYTES: Final = 1024 * 1024
"""Of a log, loaded at once: an index says where the record is, within some batches."""


class _Searched(NamedTuple):
    found: TimestampOffset | None
    position: int
    """Up to where whole batches were searched."""
    needed: int
    """Bytes of the batch there, where that is known."""


class TimestampSearch:
    """A port of `apis/list_offsets.py`."""

    def __init__(
        self,
        store: TierStore,
        metadata: MetadataLog,
        executor: Executor,
        *,
        searches_max: int,
        timeout_ms: Callable[[], int],
        quota: ReplicationQuota,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`quota` is that of `remote.log.manager.fetch.max.bytes.per.second`."""
        self._store = store
        self._metadata = metadata
        self._executor = executor
        self._turns = asyncio.Semaphore(searches_max)
        self._timeout_ms = timeout_ms
        self._quota = quota
        self._loop = loop
        self._monotonic_ms = monotonic_ms

    @property
    def timeout_ms(self) -> int:
        """How long a request waits that does not say it (`remote.list.offsets.request.timeout.ms`)."""
        return self._timeout_ms()

    async def find_by_timestamp(self, partition: Partition, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that only the tier has whose timestamp is at least `timestamp_ms`. KafkaError."""
        log = partition.log
        if not self._metadata.is_current(partition.topic_id, partition.index):
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        start_offset, end_offset = log.log_start_offset, log.local_log_start_offset
        segments = self._metadata.segments_of(partition.topic_id, partition.index)
        runs = list(tiered_runs(segments, log.leader_epochs, start_offset, end_offset))
        async with self._turns:
            for segment, own_end in runs:
                if segment.max_timestamp_ms >= timestamp_ms:
                    try:
                        found = await self._find_in(segment, timestamp_ms, start_offset)
                    except (TierError, CorruptData) as error:
                        partition.counters.failed_remote_fetches += 1
                        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
                    if found is not None and found.offset < own_end:
                        return found
                start_offset = own_end
        return None

    async def _find_in(self, segment: RemoteSegment, timestamp_ms: int, start_offset: int) -> TimestampOffset | None:
        """TierError, CorruptData."""
        await within_quota(self._quota, self._monotonic_ms)
        indexes = await self._loop.run_in_executor(self._executor, load_indexes, self._store, segment)
        position = indexes.position_of(max(indexes.offset_before(timestamp_ms), start_offset))
        size = min(SEARCHED_BYTES, segment.size_bytes - position)
        while position < segment.size_bytes:
            await within_quota(self._quota, self._monotonic_ms)
            load = partial(self._store.get_range, key_of(segment), position, size)
            data = await self._loop.run_in_executor(self._executor, load)
            self._quota.record(len(data), self._monotonic_ms())
            search = partial(_search, data, timestamp_ms, start_offset)
            found, searched, needed = await self._loop.run_in_executor(self._executor, search)
            if found is not None:
                return found
            if len(data) < size or (searched < len(data) and position + len(data) == segment.size_bytes):
                raise CorruptData(f"{key_of(segment)} ends within a batch at {position + searched}")
            position += searched
            size = min(max(SEARCHED_BYTES, needed), segment.size_bytes - position)
        return None


def _search(data: Buffer, timestamp_ms: int, start_offset: int) -> _Searched:
    """Of a log, from the beginning of a batch on; in a thread. CorruptData."""
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        end = position + header.size_bytes
        if end > len(data):
            return _Searched(None, position, header.size_bytes)
        if header.records_timestamp >= timestamp_ms and header.last_offset >= start_offset:
            batch = memoryview(data)[position:end]
            found = first_in_batch(header, batch, timestamp_ms, start_offset)
            if found is not None:
                return _Searched(found, position, 0)
        position = end
    return _Searched(None, position, HEADER_SIZE)
