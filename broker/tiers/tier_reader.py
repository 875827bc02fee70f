"""Reads below the start of the local log: from memory, or later, once a thread has fetched it from the tier.

Kafka: `RemoteLogReader`, `RemoteLogManager.read`.

The loop never waits. A read that finds what it needs in memory is answered at once; else it begins to load what is
missing (`tier_loader.py`), and the partition's waiting fetches look again when that is there. A read is answered from
one window, and from what follows it in memory; the next window is loaded ahead of its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from ...protocol.batches import HEADER_SIZE, BatchHeader, read_header
from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...storage.log.file_slice import FileSlice, MemorySlice
from ...storage.log.rules.aborted_transaction import AbortedTransaction
from ...storage.tiers.tiered_indexes import TieredIndexes
from ..replicas.partition import Partition
from .metadata_log import MetadataLog
from .rules.remote_segment import RemoteSegment
from .rules.tier_cache import TierCache
from .rules.tier_plan import TieredRun, find_readable, tiered_runs
from .rules.tier_windows import Window
from .tier_loader import INDEXES_BYTES_MAX, TierLoader, Waiter, key_of

PLACES_MAX: Final = 1000
"""Offsets that are waited for, of which is remembered where they are."""


class TierRead(NamedTuple):
    slices: Sequence[FileSlice]
    size: int
    aborted: Sequence[tuple[int, int]]
    """Producer id and first offset of the aborted transactions with records in them."""


class TierReader:
    """Serves fetches; a port of `fetching/fetch_read.py`."""

    def __init__(self, loader: TierLoader, metadata: MetadataLog, *, max_wait_ms: Callable[[], int]) -> None:
        self._loader = loader
        self._metadata = metadata
        self._max_wait_ms = max_wait_ms
        # Transactions that were aborted with records in a segment, up to where it has the log's own: final, as all of
        # it was stable when it was copied.
        self._aborted: TierCache[tuple[UUID, int], tuple[AbortedTransaction, ...]] = TierCache(
            lambda: INDEXES_BYTES_MAX, lambda some: 64 + 160 * len(some)
        )
        # How far a search for an offset in a segment has come when it lacked a window: what it has seen may be gone
        # when that is there.
        self._places: TierCache[tuple[UUID, int], int] = TierCache(lambda: PLACES_MAX, lambda _: 1)
        # Offset and position of the batch in each segment with which the last read began: the next one need not look
        # for its own from the start of a segment that has no index.
        self._begun: TierCache[UUID, tuple[int, int]] = TierCache(lambda: PLACES_MAX, lambda _: 1)

    @property
    def max_wait_ms(self) -> int:
        """How long a fetch waits for the tier (`remote.fetch.max.wait.ms`)."""
        return self._max_wait_ms()

    @property
    def pending_count(self) -> int:
        return self._loader.pending_count

    def is_loading(self, partition: Partition, offset: int) -> bool:
        """Whether what `read` lacked when it was last asked is still on its way."""
        return self._loader.is_waiting((partition, offset))

    def read(
        self, partition: Partition, offset: int, max_bytes: int, *, min_one_batch: bool, with_aborted: bool
    ) -> TierRead | None:
        """Batches from the one with `offset` on, as `Log.read`; None when it has to be asked again.

        KafkaError OFFSET_OUT_OF_RANGE when the tier does not have the offset, KAFKA_STORAGE_ERROR when it failed.
        """
        run = self._find(partition, offset)
        if run is None:
            return None
        waiter = partition, offset
        segment = run.segment
        indexes = self._loader.indexes_of(segment, waiter)
        if indexes is None:
            return None
        place = self._locate(segment, indexes, waiter)
        if place is None:
            return None
        window, position, batch_bytes = place
        end = min(position + max_bytes, segment.size_bytes)
        if run.end_offset <= segment.end_offset:
            # Another lineage's records may follow in it.
            end = _own_end(run, indexes, window, position, min(end, window.end))
        if end - position < batch_bytes:
            if not min_one_batch:
                return TierRead((), 0, ())
            end = position + batch_bytes
        aborted: Sequence[tuple[int, int]] = ()
        if with_aborted:
            overlapping = self._aborted_in(run, partition, offset)
            if overlapping is None:
                return None
            aborted = [(one.producer_id, one.first_offset) for one in overlapping if one.last_offset >= offset]
        slices = self._slices(segment, indexes, window, position, end)
        size = sum(piece.size for piece in slices)
        partition.counters.remote_fetch_bytes += size
        return TierRead(slices, size, aborted)

    async def close(self) -> None:
        await self._loader.close()

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

    def _locate(self, segment: RemoteSegment, indexes: TieredIndexes, waiter: Waiter) -> tuple[Window, int, int] | None:
        """The window with the batch that has the offset, the batch's position in the segment and its size."""
        _, offset = waiter
        place = segment.id, offset
        position = self._places.get(place)
        if position is None:
            position = indexes.position_of(offset)
            begun_offset, begun = self._begun.get(segment.id) or (0, 0)
            if begun_offset <= offset:
                position = max(position, begun)
        while position + HEADER_SIZE <= segment.size_bytes:
            window = self._loader.window_with(segment, position, HEADER_SIZE, waiter)
            if window is None:
                self._places.add(place, position)
                return None
            header = _header_at(segment, window, position)
            end = position + header.size_bytes
            if header.last_offset >= offset:
                if end > segment.size_bytes:
                    break
                window = self._loader.window_with(segment, position, header.size_bytes, waiter)
                if window is None:
                    self._places.add(place, position)
                    return None
                self._begun.add(segment.id, (header.base_offset, position))
                return window, position, header.size_bytes
            if end >= window.end:
                self._loader.note_read(window, window.end)
            position = end
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{key_of(segment)} has no batch with offset {offset} to its end."
        )

    def _slices(
        self, segment: RemoteSegment, indexes: TieredIndexes, window: Window, position: int, end: int
    ) -> list[FileSlice]:
        """What is in memory of the bytes from `position`, in `window`, to `end`."""
        slices: list[FileSlice] = []
        following: Window | None = window
        while following is not None and position < end:
            window = following
            piece = window.data[position - window.start : end - window.start]
            slices.append(MemorySlice(piece))
            position += len(piece)
            self._loader.note_read(window, position)
            following = self._loader.window_at(segment, position)
        # So that it is there when this window is read.
        next_start = indexes.last_position_before(window.end)
        if next_start > window.start:
            self._loader.read_ahead(segment, next_start, window)
        return slices

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
            indexes = self._loader.indexes_of(following, (partition, offset))
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


def _header_at(segment: RemoteSegment, window: Window, position: int) -> BatchHeader:
    try:
        return read_header(window.data, position - window.start)
    except CorruptData as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{key_of(segment)} at {position}: {error}") from error


def _own_end(run: TieredRun, indexes: TieredIndexes, window: Window, position: int, end: int) -> int:
    """Where the run's records end in the window, at `end` at the latest; a batch begins at `position`."""
    behind = max(position, indexes.position_of(run.end_offset))
    while behind + HEADER_SIZE <= end:
        header = _header_at(run.segment, window, behind)
        if header.base_offset >= run.end_offset:
            return behind
        behind += header.size_bytes
    return end
