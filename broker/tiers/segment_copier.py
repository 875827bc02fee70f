"""Copies one closed segment to the tier, and deletes one there; the metadata topic is told before and after.

Kafka: `RemoteLogManager.RLMCopyTask.copyLogSegment`, `deleteRemoteLogSegment`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ...protocol.ids import LeaderEpoch, NodeId
from ...protocol.structs import replace
from ...storage.log.leader_epochs import encode_leader_epochs
from ...storage.log.rules.file_names import TRANSACTION_INDEX
from ...storage.log.segment import Segment
from ...storage.log.segment_scan import BadBatch
from ...storage.tiers.rules.segment_objects import indexes_key, log_key, partition_prefix
from ...storage.tiers.rules.tier_store import TierError, TierStore
from ..replicas.partition import CHECK_BYTES, Partition
from ..replication.rules.replication_quota import ReplicationQuota
from .byte_rate import within_quota
from .metadata_log import MetadataLog, tier_partition_of
from .rules.remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition
from .segment_upload import DamagedIndexError, SegmentSource, upload

logger = logging.getLogger(__name__)

SEGMENT_BYTES_MAX: Final = 2**31 - 1
"""Of a copy: Kafka's metadata have its size as 32 bits."""


class SegmentCopier:
    def __init__(
        self,
        store: TierStore,
        metadata: MetadataLog,
        executor: Executor,
        *,
        node_id: NodeId,
        quota: ReplicationQuota,
        loop: asyncio.AbstractEventLoop,
        wall_clock_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
        random: Random,
    ) -> None:
        """`quota` is that of `remote.log.manager.copy.max.bytes.per.second`."""
        self._store = store
        self._metadata = metadata
        self._executor = executor
        self._node_id = node_id
        self._quota = quota
        self._loop = loop
        self._wall_clock_ms = wall_clock_ms
        self._monotonic_ms = monotonic_ms
        self._random = random
        # Copies that were begun and did not end: tried again under the same id.
        self._unfinished: dict[TierPartition, RemoteSegment] = {}

    async def copy(self, partition: Partition, segment: Segment, epoch: LeaderEpoch) -> None:
        """As the leader of `epoch`. TierError, KafkaError, OSError: the next call for the segment goes on with it.

        While it waits for its quota the segment may go, or the leadership: then it does nothing. A copy whose upload
        ends after the leadership is not finished: records may have been cut off meanwhile.
        """
        log, counters = partition.log, partition.counters
        await self._wait_for_quota()
        if not leads(partition, epoch) or partition.log is not log or segment not in log.inactive_segments:
            return
        source = SegmentSource(
            log,
            segment.file,
            segment.size_bytes,
            log.config.index_interval_bytes,
            dict(log.tier_parts(segment)),
            encode_leader_epochs(log.leader_epochs.entries_in(0, log.segment_end_offset(segment))),
        )
        remote = self._begin(partition, segment, has_aborted=TRANSACTION_INDEX in source.paths)
        counters.remote_copies += 1
        try:
            await self._metadata.publish([remote])
            began_ms = self._monotonic_ms()
            await self._loop.run_in_executor(self._executor, upload, self._store, remote, source)
            self._quota.record(source.size_bytes, self._monotonic_ms())
            if not leads(partition, epoch) or partition.log is not log:
                # The next leader copies the same records, and deletes this copy once it has.
                await self._metadata.catch_up(remote.partition.topic_id, remote.partition.partition_index)
                await self._delete_if_given_up(remote)
                return
            await self._metadata.publish([self._changed(remote, SegmentState.COPY_SEGMENT_FINISHED)])
            if await self._delete_if_given_up(remote):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another leader has given this copy up")
        except CorruptData as error:
            counters.failed_remote_copies += 1
            if partition.log is log:
                _see_to(partition, segment, error)
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        except (TierError, KafkaError, OSError):
            counters.failed_remote_copies += 1
            raise
        self._unfinished.pop(remote.partition, None)
        counters.remote_copy_bytes += source.size_bytes
        logger.info(
            "Copied segment to the tier: partition=%s offset=%d end=%d bytes=%d milliseconds=%d",
            log.name,
            remote.start_offset,
            remote.end_offset,
            remote.size_bytes,
            self._monotonic_ms() - began_ms,
        )

    async def delete(self, segments: list[RemoteSegment]) -> None:
        """Of one partition. TierError, KafkaError: what is left is in a state from which the next call goes on."""
        started = [self._changed(one, SegmentState.DELETE_SEGMENT_STARTED) for one in segments]
        await self._metadata.publish(started)
        await self._loop.run_in_executor(self._executor, self._store.delete, _keys_of(segments))
        await self._metadata.publish([self._changed(one, SegmentState.DELETE_SEGMENT_FINISHED) for one in segments])

    async def delete_strays(self, partition: TierPartition) -> None:
        """What a partition of a deleted topic has left without a word: the copy of a leader that did not know yet.

        TierError.
        """
        prefix = partition_prefix(*partition)
        await self._loop.run_in_executor(self._executor, _delete_all, self._store, prefix)

    def _begin(self, partition: Partition, segment: Segment, *, has_aborted: bool) -> RemoteSegment:
        log = partition.log
        end_offset = log.segment_end_offset(segment)
        key = tier_partition_of(partition)
        remote = RemoteSegment(
            partition=key,
            id=UUID(int=self._random.getrandbits(128), version=4),
            start_offset=segment.base_offset,
            end_offset=end_offset - 1,
            max_timestamp_ms=segment.largest_timestamp,
            broker_id=self._node_id,
            event_ms=self._wall_clock_ms(),
            size_bytes=segment.size_bytes,
            leader_epochs=log.leader_epochs.entries_in(segment.base_offset, end_offset),
            state=SegmentState.COPY_SEGMENT_STARTED,
            has_aborted_transactions=has_aborted,
        )
        begun = self._unfinished.get(key)
        if begun is not None and replace(begun, id=remote.id, event_ms=remote.event_ms) == remote:
            known = self._known(begun)
            if known is None or known.state is SegmentState.COPY_SEGMENT_STARTED:
                return begun
        self._unfinished[key] = remote
        return remote

    def _known(self, segment: RemoteSegment) -> RemoteSegment | None:
        key = segment.partition
        return self._metadata.segments_of(key.topic_id, key.partition_index).get(segment.id)

    async def _delete_if_given_up(self, segment: RemoteSegment) -> bool:
        """Whether another leader has begun to delete this copy: parts of it may have come after that. TierError.

        Where none has, and one does later, it finds all of the copy.
        """
        known = self._known(segment)
        if known is not None and known.state in (SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED):
            return False
        self._unfinished.pop(segment.partition, None)
        await self._loop.run_in_executor(self._executor, self._store.delete, _keys_of([segment]))
        return True

    def _changed(self, segment: RemoteSegment, state: SegmentState) -> SegmentUpdate:
        return SegmentUpdate(
            partition=segment.partition,
            id=segment.id,
            broker_id=self._node_id,
            event_ms=self._wall_clock_ms(),
            state=state,
        )

    async def _wait_for_quota(self) -> None:
        await within_quota(self._quota, self._monotonic_ms)


def leads(partition: Partition, epoch: LeaderEpoch) -> bool:
    state = partition.state
    return partition.error is ErrorCode.NONE and state.is_leader and state.leader_epoch == epoch


def _see_to(partition: Partition, segment: Segment, error: CorruptData) -> None:
    """What of the segment was found damaged on its way up."""
    log = partition.log
    if isinstance(error, BadBatch):
        # Replicas would drop their own intact records for this copy.
        partition.check(max(error.offset or 0, log.log_start_offset), CHECK_BYTES)
    elif isinstance(error, DamagedIndexError) and segment in log.inactive_segments:
        # The segment could not be read from the tier, or not all of it be found.
        partition.with_storage_errors(partial(segment.rebuild_misleading_index, error))


def _keys_of(segments: Sequence[RemoteSegment]) -> list[str]:
    return [key_of(*one.partition, one.start_offset, one.id) for one in segments for key_of in (log_key, indexes_key)]


def _delete_all(store: TierStore, prefix: str) -> None:
    """In a thread. TierError."""
    store.delete(list(store.keys(prefix)))
