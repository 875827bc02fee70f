"""A partition whose closed segments go to a tier in memory: its log on a disk, and what copies and reads the tier.

The log may move between two log directories (`MovingDisk`). The metadata of what the tier has are a list of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import NamedTuple, TypeVar, cast

from memory_tier import MemoryTier
from moving_disk import KEY, MovingDisk
from node_disk import TOPIC_ID

from penstock.broker.replicas.partition import Partition
from penstock.broker.replicas.replica_manager import ReplicaManager
from penstock.broker.replicas.rules.topic_counters import TopicCounters
from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.broker.tiers.metadata_log import MetadataLog
from penstock.broker.tiers.remote_log_manager import RemoteLogManager
from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentUpdate
from penstock.broker.tiers.rules.remote_segments import RemoteSegments
from penstock.broker.tiers.segment_copier import SegmentCopier
from penstock.broker.tiers.tier_loader import TierLoader
from penstock.broker.tiers.tier_reader import TierRead, TierReader
from penstock.broker.tiers.timestamp_search import TimestampSearch
from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.batches import HEADER_SIZE, read_header
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId, TopicId
from penstock.storage.directories.log_closing import start_offset_to_checkpoint
from penstock.storage.directories.rules.checkpoints import LOG_START_OFFSETS
from penstock.storage.log.log import Log

T = TypeVar("T")

WINDOW_BYTES = 500
"""Of the tier's logs, loaded at a time: less than a segment, at times less than a batch."""


class Metadata:
    """What the metadata topic has: it outlives processes, and a write to it may fail before it is there, or after."""

    topic = object()

    def __init__(self) -> None:
        self.events: list[RemoteSegment | SegmentUpdate] = []
        self.segments = RemoteSegments()
        self.failure: str | None = None

    def replay(self) -> None:
        self.segments = RemoteSegments()
        for event in self.events:
            self.segments.apply(event)

    def segments_of(self, _topic_id: TopicId, _index: int) -> RemoteSegments:
        return self.segments

    def is_current(self, _topic_id: TopicId, _index: int) -> bool:
        return True

    def led_here(self) -> Iterator[object]:
        return iter(())

    async def catch_up(self, _topic_id: TopicId, _index: int) -> None:
        await asyncio.sleep(0)

    async def catch_up_led(self) -> None:
        await asyncio.sleep(0)

    async def publish(self, events: Sequence[RemoteSegment | SegmentUpdate]) -> None:
        await asyncio.sleep(0)
        if self.failure == "before":
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "the metadata cannot be written")
        self.events += events
        for event in events:
            self.segments.apply(event)
        if self.failure == "after":
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the metadata may have been written")


@dataclass(slots=True)
class Leadership:
    is_leader: bool = True
    leader_epoch: int = 0
    high_watermark: int = 0


class Hosted:
    """The part of a partition that tiered storage uses, in its moving log's stead."""

    topic, index, topic_id = KEY[0], KEY[1], TopicId(TOPIC_ID)
    error = ErrorCode.NONE
    damage = None

    def __init__(self, it: MovingDisk) -> None:
        self._it = it
        self.counters = TopicCounters()
        self.state = Leadership()

    @property
    def log(self) -> Log:
        return self._it.log

    def check(self, offset: int, _size: int) -> None:
        raise AssertionError(f"a copy found damage at {offset} that was repaired before")

    def with_storage_errors(self, use: Callable[[], T]) -> T:
        return use()


class Chunk(NamedTuple):
    """What one fetch gives: whole batches from the one with `start_offset` on."""

    start_offset: int
    end_offset: int
    batches: Sequence[bytes]
    aborted: Sequence[tuple[int, int]] | None
    """Producer id and first offset of the aborted transactions that a consumer is told; None when the disk has them."""


class TieredPartition:
    """`random` decides what an outage of the tier, and a loss of power, hit."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.it = MovingDisk(loop)
        self.disk = self.it.disk
        self.files = self.disk.files
        self.tier = MemoryTier()
        self.metadata = Metadata()
        self.hosted = Hosted(self.it)
        self.manager: RemoteLogManager
        self.reader: TierReader
        self.search: TimestampSearch

    @property
    def log(self) -> Log:
        return self.it.log

    @property
    def high_watermark(self) -> int:
        return self.hosted.state.high_watermark

    # The process

    def start(self) -> None:
        """Its logs are loaded, and one may be damaged: `start_tiering` comes when that is repaired."""
        self.it.start()
        self.metadata.replay()

    def start_tiering(self) -> None:
        quota = ReplicationQuota(window_count=11, window_ms=1000)
        metadata = cast("MetadataLog", self.metadata)
        executor = cast("object", None)
        copier = SegmentCopier(
            self.tier,
            metadata,
            executor,  # type: ignore[arg-type]
            node_id=NodeId(1),
            quota=quota,
            loop=self.loop,
            wall_clock_ms=lambda: self.disk.now_ms,
            monotonic_ms=self.monotonic_ms,
            random=self.random,
        )
        replicas = SimpleNamespace(
            hosted=[self.hosted],
            complete_fetches=lambda _partition: None,
            on_retention=lambda _topic, _index: None,
        )

        async def confirm() -> None:
            pass

        self.manager = RemoteLogManager(
            cast("ReplicaManager", replicas),
            metadata,
            copier,
            interval_ms=1000,
            copies_max=1,
            expirations_max=1,
            confirm_metadata=confirm,
            loop=self.loop,
            steady_clock_ms=lambda: self.disk.now_ms,
        )
        loader = TierLoader(
            self.tier,
            executor,  # type: ignore[arg-type]
            pending_max=10,
            index_bytes_max=lambda: 1 << 20,
            quota=quota,
            on_loaded=lambda _partition: None,
            loop=self.loop,
            monotonic_ms=self.monotonic_ms,
            window_bytes=WINDOW_BYTES,
            windows_bytes=3 * WINDOW_BYTES,
        )
        self.reader = TierReader(loader, metadata, max_wait_ms=lambda: 1)
        self.search = TimestampSearch(
            self.tier,
            metadata,
            executor,  # type: ignore[arg-type]
            searches_max=1,
            timeout_ms=lambda: 1000,
            quota=quota,
            loop=self.loop,
            monotonic_ms=self.monotonic_ms,
        )

    def monotonic_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def end_tasks(self) -> None:
        async def end() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.loop.run(end())

    # What the node does by itself

    def go_on_tiering(self, seconds: float) -> None:
        self.loop.run(self.manager.begin_round())
        self.it.wait(seconds)

    def apply_local_retention(self) -> None:
        log = self.log
        lasting = self.checkpoint_log_start()
        while log.delete_old_segments(self.high_watermark, self.disk.now_ms, lasting_start_offset=lasting):
            pass
        for path in log.take_removable_files(self.disk.now_ms):
            with suppress(FileNotFoundError):
                # Its folder was renamed meanwhile.
                self.files.remove(path)

    def checkpoint_log_start(self) -> int:
        """What is written, or has been: a node lets no segment go for a later start."""
        directory = self.disk.manager.directories.directory_of(self.log.directory)
        if directory is None:
            return 0
        offset = start_offset_to_checkpoint(self.log)
        if offset is not None:
            directory.write_offsets(LOG_START_OFFSETS, {KEY: offset})
        return directory.checkpointed[LOG_START_OFFSETS].get(KEY, 0)

    # Reading

    def chunks_from(self, offset: int, max_bytes: int) -> Iterator[Chunk]:
        """All batches from the one with `offset` on, as a consumer fetches them that is given `max_bytes` at a time."""
        log = self.log
        while offset < log.log_end_offset:
            aborted: Sequence[tuple[int, int]] | None = None
            if offset < log.local_log_start_offset:
                tiered = self._read_tier(offset, max_bytes)
                data = b"".join(piece.read(0, piece.size) for piece in tiered.slices)
                aborted = tiered.aborted
            else:
                local = log.read(offset, max_bytes=max_bytes, end_offset=log.log_end_offset, min_one_batch=True)
                data = b"".join(piece.read(0, piece.size) for piece in local.slices)
            batches, end_offset = whole_batches(data)
            assert batches, f"a read at {offset} of {log.log_end_offset} gives {len(data)} bytes"
            yield Chunk(offset, end_offset, batches, aborted)
            offset = end_offset

    def _read_tier(self, offset: int, max_bytes: int) -> TierRead:
        partition = cast("Partition", self.hosted)
        for _ in range(100):
            found = self.reader.read(partition, offset, max_bytes, min_one_batch=True, with_aborted=True)
            if found is not None:
                return found
            self.it.wait(0.01)
        raise AssertionError(f"the tier has nothing at {offset}")

    def find_by_time(self, timestamp_ms: int) -> int | None:
        """The first offset with that timestamp or a larger one: where ListOffsets looks."""
        log = self.log
        found = None
        if log.log_start_offset < log.local_log_start_offset:
            found = self.loop.run(self.search.find_by_timestamp(cast("Partition", self.hosted), timestamp_ms))
        if found is None:
            found = log.offset_for_timestamp(timestamp_ms, log.log_end_offset)
        return None if found is None else found.offset

    def without_outage(self, use: Callable[[], T]) -> T:
        fails, self.tier.fails = self.tier.fails, lambda _call, _key: False
        try:
            return use()
        finally:
            self.tier.fails = fails


def whole_batches(data: bytes) -> tuple[list[bytes], int]:
    """Those that `data` begins with, and the offset behind them."""
    batches: list[bytes] = []
    position = end_offset = 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        if position + header.size_bytes > len(data):
            break
        batches.append(data[position : position + header.size_bytes])
        position += header.size_bytes
        end_offset = header.next_offset
    return batches, end_offset
