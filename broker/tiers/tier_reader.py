"""Reads below the start of the local log: from memory, or later, once a thread has fetched it from the tier.

Kafka: `RemoteLogReader`, `RemoteIndexCache`, `RemoteLogManager.read`, `RemoteLogManager.findOffsetByTimestamp`.

The loop never waits. A read that finds what it needs in the caches is answered at once; else it begins to load what is
missing, and the partition's waiting fetches look again when that is there. Logs are loaded in windows, the next one
ahead of its reader. Loads beyond `remote.log.reader.max.pending.tasks` are not begun: the client asks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from ...protocol.batches import HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, read_header
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...storage.log.file_slice import FileSlice, MemorySlice
from ...storage.log.rules.aborted_transaction import AbortedTransaction
from ...storage.log.timestamp_lookup import TimestampOffset, first_in_batch
from ...storage.tiers.rules.segment_objects import indexes_key, log_key, unpack_parts
from ...storage.tiers.rules.tier_store import TierError, TierStore
from ...storage.tiers.tiered_indexes import TieredIndexes
from ..replicas.partition import Partition
from ..replication.rules.replication_quota import ReplicationQuota
from .byte_rate import within_quota
from .metadata_log import MetadataLog
from .rules.remote_segment import RemoteSegment
from .rules.tier_cache import TierCache
from .rules.tier_plan import TieredRun, find_readable, tiered_runs

logger = logging.getLogger(__name__)

WINDOW_BYTES: Final = 4 * 1024 * 1024
"""Of a log, loaded at once: large enough for a store that takes 50 ms to begin."""
WINDOWS_BYTES: Final = 64 * 1024 * 1024
"""Of windows in memory."""
INDEXES_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of indexes in memory, whatever `remote.log.index.file.cache.total.size.bytes` says beyond: Kafka's are files."""
INDEXES_OBJECT_BYTES_MAX: Final = 256 * 1024 * 1024
_INDEXES: Final = -1
"""In place of the number of a window."""

LoadKey = tuple[UUID, int]


class TierRead(NamedTuple):
    slices: Sequence[FileSlice]
    size: int
    aborted: Sequence[tuple[int, int]]
    """Producer id and first offset of the aborted transactions with records in them."""


class TierReader:
    """Serves fetches and ListOffsets; a port of `fetching/fetch_read.py`."""

    def __init__(
        self,
        store: TierStore,
        metadata: MetadataLog,
        executor: Executor,
        *,
        pending_max: int,
        index_bytes_max: Callable[[], int],
        quota: ReplicationQuota,
        max_wait_ms: Callable[[], int],
        on_loaded: Callable[[Partition], None],
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`quota` is that of `remote.log.manager.fetch.max.bytes.per.second`; `on_loaded` completes fetches."""
        self._store = store
        self._metadata = metadata
        self._executor = executor
        self._pending_max = pending_max
        self._quota = quota
        self._max_wait_ms = max_wait_ms
        self._on_loaded = on_loaded
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._indexes: TierCache[UUID, TieredIndexes] = TierCache(
            lambda: min(index_bytes_max(), INDEXES_BYTES_MAX), lambda one: one.memory_bytes
        )
        self._windows: TierCache[LoadKey, bytes] = TierCache(lambda: WINDOWS_BYTES, len)
        self._loads: dict[LoadKey, asyncio.Task[None]] = {}
        # Who waits for a load: partition and offset.
        self._waiters: dict[LoadKey, set[tuple[Partition, int]]] = {}
        self._waiting: Counter[tuple[Partition, int]] = Counter()
        self._failures: dict[LoadKey, str] = {}
        # Transactions that were aborted with records in a segment, up to where it has the log's own: final, as all of
        # it was stable when it was copied.
        self._aborted: TierCache[tuple[UUID, int], tuple[AbortedTransaction, ...]] = TierCache(
            lambda: INDEXES_BYTES_MAX, lambda some: 64 + 160 * len(some)
        )

    @property
    def max_wait_ms(self) -> int:
        """How long a fetch waits for the tier (`remote.fetch.max.wait.ms`)."""
        return self._max_wait_ms()

    @property
    def pending_count(self) -> int:
        return len(self._loads)

    def is_loading(self, partition: Partition, offset: int) -> bool:
        """Whether what `read` lacked when it was last asked is still on its way."""
        return (partition, offset) in self._waiting

    def read(
        self, partition: Partition, offset: int, max_bytes: int, *, min_one_batch: bool, with_aborted: bool
    ) -> TierRead | None:
        """Batches from the one with `offset` on, as `Log.read`; None when it has to be asked again.

        KafkaError OFFSET_OUT_OF_RANGE when the tier does not have the offset, KAFKA_STORAGE_ERROR when it failed.
        """
        run = self._find(partition, offset)
        if run is None:
            return None
        segment = run.segment
        indexes = self._indexes_of(segment, partition, offset)
        if indexes is None:
            return None
        place = self._locate(segment, indexes, partition, offset)
        if place is None:
            return None
        position, batch_bytes = place
        size = self._own_size(run, indexes, position, max_bytes, (partition, offset))
        if size is None:
            return None
        if size < batch_bytes:
            if not min_one_batch:
                return TierRead((), 0, ())
            size = batch_bytes
        aborted: Sequence[tuple[int, int]] = ()
        if with_aborted:
            overlapping = self._aborted_in(run, partition, offset)
            if overlapping is None:
                return None
            aborted = [(one.producer_id, one.first_offset) for one in overlapping if one.last_offset >= offset]
        slices = self._slices(segment, position, size, batch_bytes, partition, offset)
        if slices is None:
            return None
        size = sum(piece.size for piece in slices)
        partition.counters.remote_fetch_bytes += size
        return TierRead(slices, size, aborted)

    async def find_by_timestamp(self, partition: Partition, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that only the tier has whose timestamp is at least `timestamp_ms`. KafkaError."""
        log = partition.log
        if not self._metadata.is_current(partition.topic_id, partition.index):
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        start_offset, end_offset = log.log_start_offset, log.local_log_start_offset
        segments = self._metadata.segments_of(partition.topic_id, partition.index)
        runs = dict(tiered_runs(segments, log.leader_epochs, start_offset, end_offset))
        for segment, own_end in runs.items():
            if segment.max_timestamp_ms < timestamp_ms:
                continue
            job = partial(_search, self._store, segment, timestamp_ms, start_offset)
            try:
                found = await self._loop.run_in_executor(self._executor, job)
            except (TierError, CorruptData) as error:
                partition.counters.failed_remote_fetches += 1
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            if found is not None and found.offset < own_end:
                return found
        return None

    async def close(self) -> None:
        loads = list(self._loads.values())
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)

    # In memory.

    def _find(self, partition: Partition, offset: int) -> TieredRun | None:
        log = partition.log
        segments = self._metadata.segments_of(partition.topic_id, partition.index)
        run = find_readable(segments, log.leader_epochs, offset, log.log_end_offset)
        if run is None and self._metadata.is_current(partition.topic_id, partition.index):
            if log.leader_epochs.epoch_of(offset) is None:
                # A consumer must not give up the records for that.
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"The leader epoch of {log.name} at {offset} is unknown."
                )
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The tier has no segment of partition {log.name} with offset {offset}.",
            )
        return run

    def _indexes_of(self, segment: RemoteSegment, partition: Partition, offset: int) -> TieredIndexes | None:
        indexes = self._indexes.get(segment.id)
        if indexes is None:
            self._begin(segment, _INDEXES, (partition, offset))
        return indexes

    def _locate(
        self, segment: RemoteSegment, indexes: TieredIndexes, partition: Partition, offset: int
    ) -> tuple[int, int] | None:
        """Position and size of the batch with `offset`."""
        position = indexes.position_of(offset)
        while position + HEADER_SIZE <= segment.size_bytes:
            header = self._header_at(segment, position, (partition, offset))
            if header is None:
                return None
            if header.last_offset >= offset:
                return position, header.size_bytes
            position += header.size_bytes
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{_log_key(segment)} has no batch with offset {offset} to its end."
        )

    def _own_size(
        self,
        run: TieredRun,
        indexes: TieredIndexes,
        position: int,
        max_bytes: int,
        waiter: tuple[Partition, int],
    ) -> int | None:
        """Bytes from `position`, at most `max_bytes`, up to where another lineage's records may begin."""
        segment, own_end = run
        end = min(position + max_bytes, segment.size_bytes)
        if own_end > segment.end_offset:
            return end - position
        behind = max(position, indexes.position_of(own_end))
        while behind + HEADER_SIZE <= segment.size_bytes and behind < end:
            header = self._header_at(segment, behind, waiter)
            if header is None:
                return None
            if header.base_offset >= own_end:
                return behind - position
            behind += header.size_bytes
        return end - position

    def _header_at(self, segment: RemoteSegment, position: int, waiter: tuple[Partition, int]) -> BatchHeader | None:
        header_bytes = self._bytes_at(segment, position, HEADER_SIZE, waiter)
        if header_bytes is None:
            return None
        try:
            return read_header(header_bytes, 0)
        except CorruptData as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{_log_key(segment)} at {position}: {error}") from error

    def _bytes_at(
        self, segment: RemoteSegment, position: int, size: int, waiter: tuple[Partition, int]
    ) -> bytes | None:
        pieces = []
        while size > 0:
            number, start = divmod(position, WINDOW_BYTES)
            window = self._window(segment, number, waiter)
            if window is None:
                return None
            piece = window[start : start + size]
            if not piece:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{_log_key(segment)} ends before {position}.")
            pieces.append(piece)
            position += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _window(self, segment: RemoteSegment, number: int, waiter: tuple[Partition, int]) -> bytes | None:
        window = self._windows.get((segment.id, number))
        if window is None:
            self._begin(segment, number, waiter)
        return window

    def _slices(
        self,
        segment: RemoteSegment,
        position: int,
        size: int,
        needed: int,
        partition: Partition,
        offset: int,
    ) -> list[FileSlice] | None:
        """What there is of `size` bytes, `needed` at least; None when that is not there yet."""
        slices: list[FileSlice] = []
        found = 0
        while found < size:
            number, start = divmod(position + found, WINDOW_BYTES)
            if found >= needed and (segment.id, number) not in self._windows:
                break
            window = self._window(segment, number, (partition, offset))
            if window is None:
                return None
            piece = memoryview(window)[start : start + size - found]
            if not piece:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{_log_key(segment)} is shorter than it was.")
            slices.append(MemorySlice(piece))
            found += len(piece)
        self._read_ahead(segment, (position + found - 1) // WINDOW_BYTES + 1)
        return slices

    def _read_ahead(self, segment: RemoteSegment, number: int) -> None:
        if number * WINDOW_BYTES < segment.size_bytes and (segment.id, number) not in self._windows:
            self._begin(segment, number, None)

    def _aborted_in(self, run: TieredRun, partition: Partition, offset: int) -> Sequence[AbortedTransaction] | None:
        """All that have records in the run, by the markers in it and behind it; None when that cannot be told yet.

        KafkaError where a copy between it and the local log is missing: a marker in that one is not known.
        """
        segment, end_offset = run
        known = self._aborted.get((segment.id, end_offset))
        if known is not None:
            return known
        if not self._metadata.is_current(partition.topic_id, partition.index):
            return None
        log = partition.log
        segments = self._metadata.segments_of(partition.topic_id, partition.index)
        found: list[AbortedTransaction] = []
        runs = dict(tiered_runs(segments, log.leader_epochs, offset, log.local_log_start_offset))
        is_complete = False
        reached = offset
        for following, own_end in runs.items():
            reached = own_end
            if not following.has_aborted_transactions:
                continue
            indexes = self._indexes_of(following, partition, offset)
            if indexes is None:
                return None
            own = [one for one in indexes.aborted if one.last_offset < own_end]
            found += (
                one
                for one in own
                if one.last_offset >= segment.start_offset and one.first_offset < end_offset and one not in found
            )
            if any(one.last_stable_offset >= end_offset for one in own):
                is_complete = True
                break
        if not is_complete:
            if reached < log.local_log_start_offset:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"The tier has no segment of partition {log.name} with offset {reached}, and a transaction that "
                    "was aborted there is not known.",
                )
            local = partition.with_storage_errors(lambda: log.aborted_transactions(segment.start_offset, end_offset))
            found += (one for one in local if one not in found)
        self._aborted.add((segment.id, end_offset), tuple(found))
        return found

    # Loading.

    def _begin(self, segment: RemoteSegment, number: int, waiter: tuple[Partition, int] | None) -> None:
        """KafkaError when this failed a moment ago."""
        key = segment.id, number
        failure = self._failures.pop(key, None)
        if failure is not None and waiter is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
        if key not in self._loads:
            if len(self._loads) >= self._pending_max:
                return
            self._loads[key] = self._loop.create_task(self._load(key, segment))
        if waiter is not None and waiter not in self._waiters.setdefault(key, set()):
            self._waiters[key].add(waiter)
            self._waiting[waiter] += 1
            waiter[0].counters.remote_fetches += 1

    async def _load(self, key: LoadKey, segment: RemoteSegment) -> None:
        try:
            await within_quota(self._quota, self._monotonic_ms)
            _, number = key
            if number == _INDEXES:
                indexes = await self._loop.run_in_executor(self._executor, _load_indexes, self._store, segment)
                self._indexes.add(segment.id, indexes)
            else:
                job = partial(self._store.get_range, _log_key(segment), number * WINDOW_BYTES, WINDOW_BYTES)
                window = await self._loop.run_in_executor(self._executor, job)
                self._quota.record(len(window), self._monotonic_ms())
                self._windows.add(key, window)
        except (TierError, CorruptData) as error:
            logger.warning("Failed to read from the tier: segment=%s reason=%s", _log_key(segment), error)
            self._failures[key] = str(error)
            for partition in {partition for partition, _ in self._waiters.get(key, ())}:
                partition.counters.failed_remote_fetches += 1
        finally:
            del self._loads[key]
            waiters = self._waiters.pop(key, set())
            self._waiting -= Counter(waiters)
        if key in self._failures and not waiters:
            del self._failures[key]
        for partition in {partition for partition, _ in waiters}:
            self._on_loaded(partition)


def _log_key(segment: RemoteSegment) -> str:
    return log_key(*segment.partition, segment.start_offset, segment.id)


def _load_indexes(store: TierStore, segment: RemoteSegment) -> TieredIndexes:
    """In a thread. TierError, CorruptData."""
    key = indexes_key(*segment.partition, segment.start_offset, segment.id)
    parts = unpack_parts(store.get_range(key, 0, INDEXES_OBJECT_BYTES_MAX), key)
    return TieredIndexes(parts, segment.start_offset, key)


def _search(store: TierStore, segment: RemoteSegment, timestamp_ms: int, start_offset: int) -> TimestampOffset | None:
    """In a thread. TierError, CorruptData."""
    indexes = _load_indexes(store, segment)
    key = _log_key(segment)
    position = indexes.position_of(max(indexes.offset_before(timestamp_ms), start_offset))
    window = b""
    begun = position
    while position < segment.size_bytes:
        start = position - begun
        header = read_header(window, start) if len(window) - start >= HEADER_SIZE else None
        if header is None or len(window) - start < header.size_bytes:
            needed = LENGTH_OVERHEAD if header is None else header.size_bytes
            window, begun = store.get_range(key, position, max(WINDOW_BYTES, needed)), position
            if len(window) < HEADER_SIZE or len(window) < read_header(window, 0).size_bytes:
                raise CorruptData(f"{key} ends within a batch at {position}")
            continue
        if header.records_timestamp >= timestamp_ms and header.last_offset >= start_offset:
            batch = memoryview(window)[start : start + header.size_bytes]
            found = first_in_batch(header, batch, timestamp_ms, start_offset)
            if found is not None:
                return found
        position += header.size_bytes
    return None
