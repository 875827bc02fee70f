"""The tier's tasks for the partitions of this node. Kafka: `RemoteLogManager`.

Every `remote.log.manager.task.interval.ms`, and when a segment has been copied:

    every replica      learns how far the tier has its log, which lets local retention delete
    the leader         copies closed segments below the last stable offset, moves the log start by retention, deletes
    the leader of a    deletes what deleted topics have left; a topic that this node does not know is asked for first
    metadata partition

A partition has one such task at a time; what fails is tried again in the next round, and nothing else waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch, TopicId
from ...storage.log.segment import Segment
from ...storage.tiers.rules.tier_store import TierError
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from .metadata_log import MetadataLog
from .rules.remote_segments import RemoteSegments
from .rules.tier_plan import Retention, expire, known_log_start, recovered_epochs, tiered_end
from .segment_copier import SEGMENT_BYTES_MAX, SegmentCopier, leads

logger = logging.getLogger(__name__)

DELETED_AT_ONCE: Final = 100
"""Segments whose deletion is told in one record batch."""
SAY_AGAIN_S: Final = 60.0
STARTED_PER_TURN: Final = 10
"""Partitions that are tended in one turn of the loop: each looks at all of its segments in the tier."""


class RemoteLogManager:
    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataLog,
        copier: SegmentCopier,
        *,
        interval_ms: int,
        copies_max: int,
        expirations_max: int,
        confirm_metadata: Callable[[], Awaitable[None]],
        loop: asyncio.AbstractEventLoop,
        steady_clock_ms: Callable[[], int],
    ) -> None:
        """`confirm_metadata` returns when this node's image is no older than the call; KafkaError if it cannot tell."""
        self._replicas = replicas
        self._metadata = metadata
        self._copier = copier
        self._interval_ms = interval_ms
        self._copies = asyncio.Semaphore(copies_max)
        self._expirations = asyncio.Semaphore(expirations_max)
        self._confirm_metadata = confirm_metadata
        self._loop = loop
        self._steady_clock_ms = steady_clock_ms
        self._tasks: dict[object, asyncio.Task[None]] = {}
        # The leader epoch in which all metadata of a partition were replayed: a part of them may have copies that are
        # gone since.
        self._caught_up: dict[Partition, LeaderEpoch] = {}
        self._said_s: dict[object, float] = {}

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._metadata.run())
                tasks.create_task(self._run_rounds())
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run_rounds(self) -> None:
        while True:
            await self.begin_round()
            await asyncio.sleep(self._interval_ms / 1000)

    async def begin_round(self) -> None:
        hosted = list(self._replicas.hosted)
        tiered = [partition for partition in hosted if partition.log.config.remote_storage_enable]
        enabled = set(tiered)
        self._caught_up = {one: epoch for one, epoch in self._caught_up.items() if one in enabled}
        for number, partition in enumerate(tiered):
            if number % STARTED_PER_TURN == 0:
                await asyncio.sleep(0)
            self._note_tiered(partition)
            self._start(partition, self._tend(partition))
        for partition in hosted:
            log = partition.log
            if not log.config.remote_storage_enable:
                log.note_tiered(0)
                if log.log_start_offset < log.local_log_start_offset:
                    self._give_up_tier(partition)
        if self._metadata.topic is None:
            if tiered:
                await self._metadata.ensure_topic()
        else:
            self._start("orphans", self._delete_orphans())

    def _start(self, key: object, work: Awaitable[None]) -> None:
        if key in self._tasks:
            assert asyncio.iscoroutine(work)
            work.close()
            return

        async def guarded() -> None:
            try:
                await work
            except (TierError, KafkaError, OSError) as error:
                self._say(key, error)
            except Exception:
                logger.exception("Task of tiered storage failed, it is tried again: key=%s", key)
            finally:
                del self._tasks[key]

        self._tasks[key] = self._loop.create_task(guarded())

    def _say(self, key: object, error: Exception) -> None:
        """The first failure, and then some of them: an outage may last for hours."""
        now_s = self._loop.time()
        name = key.log.name if isinstance(key, Partition) else str(key)
        is_news = now_s - self._said_s.get(key, -SAY_AGAIN_S) >= SAY_AGAIN_S
        if is_news:
            self._said_s = {one: at for one, at in self._said_s.items() if now_s - at < SAY_AGAIN_S}
            self._said_s[key] = now_s
        logger.log(
            logging.WARNING if is_news else logging.DEBUG,
            "Tiered storage does not go on, it is tried again: partition=%s reason=%s",
            name,
            error,
        )

    # One partition.

    def _segments(self, partition: Partition) -> RemoteSegments:
        return self._metadata.segments_of(partition.topic_id, partition.index)

    def _note_tiered(self, partition: Partition) -> None:
        log = partition.log
        if partition in self._caught_up and partition.error is ErrorCode.NONE and log.damage is None:
            start_offset, end_offset = log.local_log_start_offset, log.log_end_offset
            log.note_tiered(tiered_end(self._segments(partition), log.leader_epochs, start_offset, end_offset))

    async def _tend(self, partition: Partition) -> None:
        state, log = partition.state, partition.log
        epoch = state.leader_epoch
        if self._caught_up.get(partition) != epoch:
            await self._metadata.catch_up(partition.topic_id, partition.index)
            self._caught_up[partition] = epoch
            self._recover_epochs(partition)
            # Reads of the tier may have waited to know what is there.
            self._replicas.complete_fetches(partition)
        if not leads(partition, epoch):
            return
        self._note_tiered(partition)
        if leads(partition, epoch) and log.log_start_offset < log.local_log_start_offset:
            start = known_log_start(self._segments(partition), log.log_start_offset, log.local_log_start_offset)
            self._move_log_start(partition, start)
        failure: Exception | None = None
        if log.config.copies_to_tier:
            try:
                async with self._copies:
                    await self._copy_all(partition, epoch)
            except (TierError, KafkaError, OSError) as error:
                # Retention goes on: nothing says that the segment can ever be copied.
                failure = error
        async with self._expirations:
            await self._expire(partition, epoch)
        if failure is not None:
            raise failure

    def _recover_epochs(self, partition: Partition) -> None:
        """No batch on this disk tells the epochs of what only the tier has: a damaged checkpoint loses them."""
        log = partition.log
        start_offset, end_offset = log.log_start_offset, log.local_log_start_offset
        if start_offset >= end_offset or log.leader_epochs.epoch_of(start_offset) is not None:
            return
        first = log.leader_epochs.earliest_epoch() or (partition.state.leader_epoch, end_offset)
        found = recovered_epochs(self._segments(partition), start_offset, *first)
        if found:
            log.leader_epochs.replace_below(first[1], found)
            logger.warning("Recovered leader epochs from the tier: partition=%s epochs=%s", log.name, list(found))

    async def _copy_all(self, partition: Partition, epoch: LeaderEpoch) -> None:
        while leads(partition, epoch) and partition.log.config.copies_to_tier:
            segment = _next_to_copy(partition)
            if segment is None:
                return
            await self._copier.copy(partition, segment, epoch)
            before = partition.log.tiered_end_offset
            self._note_tiered(partition)
            if partition.log.tiered_end_offset <= before:
                # Not readable in this log's epochs: it is tried again in the next round.
                return

    async def _expire(self, partition: Partition, epoch: LeaderEpoch) -> None:
        log = partition.log
        if not leads(partition, epoch):
            return
        config = log.config
        retention = Retention(-1, -1)
        if config.deletes_by_retention:
            retention = Retention(config.retention_ms, config.retention_bytes)
        expiry = expire(
            self._segments(partition),
            log.leader_epochs,
            retention,
            log_start_offset=log.log_start_offset,
            tiered_end_offset=min(log.tiered_end_offset, partition.state.high_watermark),
            untiered_bytes=log.size_from(log.tiered_end_offset),
            now_ms=self._steady_clock_ms(),
        )
        self._move_log_start(partition, expiry.log_start_offset)
        for first in range(0, len(expiry.segments), DELETED_AT_ONCE):
            if not leads(partition, epoch):
                return
            some = list(expiry.segments[first : first + DELETED_AT_ONCE])
            partition.counters.remote_deletes += len(some)
            try:
                await self._copier.delete(some)
            except (TierError, KafkaError):
                partition.counters.failed_remote_deletes += len(some)
                raise

    def _move_log_start(self, partition: Partition, offset: int) -> None:
        if offset > partition.log.log_start_offset:
            partition.with_storage_errors(lambda: partition.log.increment_log_start_offset(offset))
            self._replicas.on_retention(partition.topic, partition.index)

    def _give_up_tier(self, partition: Partition) -> None:
        """Tiered storage was switched off for the topic: the log starts on this disk."""
        self._move_log_start(partition, partition.log.local_log_start_offset)

    # What topics have left.

    async def _delete_orphans(self) -> None:
        await self._metadata.catch_up_led()
        candidates = [key for key, _ in self._metadata.led_here() if self._is_orphan(*key)]
        if not candidates:
            return
        # A topic may be so new that this node does not know it yet.
        await self._confirm_metadata()
        for key, segments in list(self._metadata.led_here()):
            if key not in candidates or not self._is_orphan(*key):
                continue
            left = list(segments)
            logger.info(
                "Deleting segments of a topic without tiered storage: topic=%s partition=%d segments=%d",
                left[0].partition.topic if left else key[0],
                key[1],
                len(left),
            )
            if left and key[0] not in self._replicas.image.topics.by_id:
                # First: once the metadata are gone, nothing leads here again.
                await self._copier.delete_strays(left[0].partition)
            for first in range(0, len(left), DELETED_AT_ONCE):
                await self._copier.delete(left[first : first + DELETED_AT_ONCE])

    def _is_orphan(self, topic_id: TopicId, _index: int) -> bool:
        topic = self._replicas.image.topics.by_id.get(topic_id)
        return topic is None or self._replicas.has_switched_off_tier(topic.name)


def _next_to_copy(partition: Partition) -> Segment | None:
    """The first closed segment that the tier does not have up to its end, if all of it is stable.

    None of a damaged log: an intact replica is to lead.
    """
    log = partition.log
    if partition.damage is not None or log.damage is not None:
        return None
    stable_offset = log.last_stable_offset(partition.state.high_watermark)
    for segment in log.inactive_segments:
        end_offset = log.segment_end_offset(segment)
        if end_offset > max(log.tiered_end_offset, log.log_start_offset):
            is_whole = end_offset <= stable_offset and 0 < segment.size_bytes <= SEGMENT_BYTES_MAX
            return segment if is_whole else None
    return None
