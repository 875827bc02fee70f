"""Loads indexes and windows of logs from the tier into memory, in threads, and wakes the fetches that wait for them.

Kafka: `RemoteStorageThreadPool`, `RemoteIndexCache`.

Windows that are waited for have bounded room (`rules/tier_windows.py`): loads beyond it wait in their order. Loads
beyond `remote.log.reader.max.pending.tasks` are not begun: the client asks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...storage.tiers.rules.segment_objects import indexes_key, log_key, unpack_parts
from ...storage.tiers.rules.tier_store import TierError, TierStore
from ...storage.tiers.tiered_indexes import TieredIndexes
from ..replicas.partition import Partition
from ..replication.rules.replication_quota import ReplicationQuota
from .byte_rate import within_quota
from .rules.remote_segment import RemoteSegment
from .rules.tier_cache import TierCache
from .rules.tier_windows import TierWindows, Window

logger = logging.getLogger(__name__)

WINDOW_BYTES: Final = 4 * 1024 * 1024
"""Of a log, loaded at once: large enough for a store that takes 50 ms to begin."""
WINDOWS_BYTES: Final = 64 * 1024 * 1024
"""Of windows in memory."""
PATIENCE_MS: Final = 250
"""How long a window stays for a reader that does not go on: consumers ask again within milliseconds."""
INDEXES_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of indexes in memory, whatever `remote.log.index.file.cache.total.size.bytes` says beyond: Kafka's are files."""
INDEXES_OBJECT_BYTES_MAX: Final = 256 * 1024 * 1024
FAILURES_MAX: Final = 1000
"""Remembered for readers that ask again; some never do."""
_INDEXES: Final = -1
"""In place of the position of a window."""

Waiter: TypeAlias = tuple[Partition, int]
"""A partition, and the offset that its fetches wait for."""


class _Load:
    __slots__ = ("end", "segment", "start", "task", "waiters")

    def __init__(self, segment: RemoteSegment, start: int, size: int) -> None:
        self.segment = segment
        self.start = start
        self.end = start + size
        self.waiters: set[Waiter] = set()
        # None while there is no room.
        self.task: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[UUID, int]:
        return self.segment.id, self.start

    @property
    def is_of_window(self) -> bool:
        return self.start != _INDEXES


class TierLoader:
    def __init__(
        self,
        store: TierStore,
        executor: Executor,
        *,
        pending_max: int,
        index_bytes_max: Callable[[], int],
        quota: ReplicationQuota,
        on_loaded: Callable[[Partition], None],
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], int],
        window_bytes: int = WINDOW_BYTES,
        windows_bytes: int = WINDOWS_BYTES,
    ) -> None:
        """`quota` is that of `remote.log.manager.fetch.max.bytes.per.second`; `on_loaded` completes fetches."""
        self._store = store
        self._executor = executor
        self._pending_max = pending_max
        self._quota = quota
        self._on_loaded = on_loaded
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._window_bytes = window_bytes
        self._indexes: TierCache[UUID, TieredIndexes] = TierCache(
            lambda: min(index_bytes_max(), INDEXES_BYTES_MAX), lambda one: one.memory_bytes
        )
        self._windows = TierWindows(limit_bytes=windows_bytes, patience_ms=PATIENCE_MS)
        self._loads: dict[tuple[UUID, int], _Load] = {}
        self._queued: deque[_Load] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._waiting: Counter[Waiter] = Counter()
        self._failures: OrderedDict[Waiter, str] = OrderedDict()

    @property
    def pending_count(self) -> int:
        return len(self._loads)

    def is_waiting(self, waiter: Waiter) -> bool:
        return waiter in self._waiting

    def indexes_of(self, segment: RemoteSegment, waiter: Waiter) -> TieredIndexes | None:
        """None while they are on their way. KafkaError when they could not be loaded a moment ago."""
        indexes = self._indexes.get(segment.id)
        if indexes is None:
            self._begin(segment, _INDEXES, 0, waiter)
        return indexes

    def window_with(self, segment: RemoteSegment, position: int, size: int, waiter: Waiter) -> Window | None:
        """The window with `size` bytes from `position`, where a batch begins. None and KafkaError as `indexes_of`."""
        window = self._windows.find(segment.id, position)
        if window is not None:
            if position + size <= window.end:
                return window
            # The last batch in it is cut off.
            self.note_read(window, window.end)
        self._begin(segment, position, max(size, self._window_bytes), waiter)
        return None

    def window_at(self, segment: RemoteSegment, position: int) -> Window | None:
        """The window with the byte at `position`, if it is there."""
        return self._windows.find(segment.id, position)

    def note_read(self, window: Window, end: int) -> None:
        """A reader has got what the window has up to `end`, a position in the segment's log."""
        if self._windows.use(window, end, self._monotonic_ms()):
            self._begin_queued()

    def read_ahead(self, segment: RemoteSegment, position: int, window: Window) -> None:
        """Load what follows `window`, from `position` in it on, where a batch begins, if there is room."""
        if window.end < segment.size_bytes and self._windows.find(segment.id, window.end) is None:
            self._begin(segment, position, self._window_bytes, None)

    async def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._queued.clear()
        tasks = [load.task for load in self._loads.values() if load.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, segment: RemoteSegment, position: int, size: int, waiter: Waiter | None) -> None:
        failure = None if waiter is None else self._failures.pop(waiter, None)
        if failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
        size = max(0, min(size, segment.size_bytes - position)) if position != _INDEXES else 0
        load = self._find(segment, position, size)
        if load is None:
            if len(self._loads) >= self._pending_max or (waiter is None and self._queued):
                return
            load = _Load(segment, position, size)
            if self._queued or not self._start(load, is_ahead=waiter is None):
                if waiter is None:
                    return
                self._queued.append(load)
                self._retry_later()
            self._loads[load.key] = load
        if waiter is not None and waiter not in load.waiters:
            load.waiters.add(waiter)
            self._waiting[waiter] += 1
            waiter[0].counters.remote_fetches += 1

    def _find(self, segment: RemoteSegment, position: int, size: int) -> _Load | None:
        """One under way that brings this."""
        found = self._loads.get((segment.id, position))
        if found is not None or position == _INDEXES:
            return found
        for load in self._loads.values():
            if load.segment.id == segment.id and 0 <= load.start <= position and position + size <= load.end:
                return load
        return None

    def _start(self, load: _Load, *, is_ahead: bool = False) -> bool:
        """False when there is no room."""
        if load.is_of_window and not self._windows.reserve(
            load.end - load.start, self._monotonic_ms(), is_ahead=is_ahead
        ):
            return False
        load.task = self._loop.create_task(self._load(load))
        return True

    def _begin_queued(self) -> None:
        while self._queued and self._start(self._queued[0]):
            self._queued.popleft()
        self._retry_later()

    def _retry_later(self) -> None:
        """A reader may never come back for a window that it has room for."""
        if self._queued and self._retry is None:
            self._retry = self._loop.call_later(PATIENCE_MS / 1000, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        self._begin_queued()

    async def _load(self, load: _Load) -> None:
        failure: str | None = None
        window: Window | None = None
        try:
            await within_quota(self._quota, self._monotonic_ms)
            if load.is_of_window:
                job = partial(self._store.get_range, key_of(load.segment), load.start, load.end - load.start)
                data = await self._loop.run_in_executor(self._executor, job)
                self._quota.record(len(data), self._monotonic_ms())
                if len(data) < load.end - load.start:
                    raise CorruptData(f"it ends at {load.start + len(data)}, not {load.segment.size_bytes}")
                window = Window(load.segment.id, load.start, data, self._monotonic_ms())
            else:
                indexes = await self._loop.run_in_executor(self._executor, load_indexes, self._store, load.segment)
                self._indexes.add(load.segment.id, indexes)
        except (TierError, CorruptData) as error:
            logger.warning("Failed to read from the tier: segment=%s reason=%s", key_of(load.segment), error)
            failure = f"{key_of(load.segment)}: {error}"
        except Exception as error:
            # A plug-in's store, or a bug: the waiting fetches fail, and the next request tries again.
            logger.exception("Failed to read from the tier: segment=%s", key_of(load.segment))
            failure = f"{key_of(load.segment)}: {error}"
        finally:
            del self._loads[load.key]
            self._waiting -= Counter(load.waiters)
            if load.is_of_window:
                self._windows.release(load.end - load.start)
        if window is not None:
            self._windows.add(window, is_ahead=not load.waiters)
        partitions = {partition for partition, _ in load.waiters}
        if failure is not None:
            self._failures.update(dict.fromkeys(load.waiters, failure))
            while len(self._failures) > FAILURES_MAX:
                self._failures.popitem(last=False)
            for partition in partitions:
                partition.counters.failed_remote_fetches += 1
        for partition in partitions:
            self._on_loaded(partition)
        self._begin_queued()


def key_of(segment: RemoteSegment) -> str:
    """Of its log."""
    return log_key(*segment.partition, segment.start_offset, segment.id)


def load_indexes(store: TierStore, segment: RemoteSegment) -> TieredIndexes:
    """In a thread. TierError, CorruptData."""
    key = indexes_key(*segment.partition, segment.start_offset, segment.id)
    parts = unpack_parts(bytes(store.get_range(key, 0, INDEXES_OBJECT_BYTES_MAX)), key)
    return TieredIndexes(parts, segment.start_offset, key)
