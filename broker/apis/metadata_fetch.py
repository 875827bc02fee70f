"""Fetch 12 to 18 and FetchSnapshot 0 to 1 of the metadata log, for observers of the quorum (KIP-595).

Any voter serves committed records only; they never change, so observers never truncate. A fetch at the end of the log
waits for more.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kio.schema.fetch.v18.request import FetchPartition, FetchRequest
from kio.schema.fetch.v18.response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from kio.schema.fetch_snapshot.v1 import response as snapshot_answer
from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest, PartitionSnapshot
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i32, i64

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NO_NODE, ControllerEpoch
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.controller.controller import Controller
from ...quorum.metadata.metadata_log import METADATA_TOPIC, METADATA_TOPIC_ID
from ...quorum.raft.consensus import Consensus
from ...quorum.voter.snapshots import Snapshots
from ..network.handlers import Handlers
from ..network.request import RequestContext

_NOTHING: Final = Records(b"")


class MetadataFetchHandler:
    """Serves the controller's log; `snapshots` is the snapshot store of the same folder."""

    def __init__(
        self,
        controller: Controller,
        snapshots: Snapshots,
        *,
        consensus: Consensus,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._controller = controller
        self._snapshots = snapshots
        self._consensus = consensus
        self._loop = loop

    async def fetch(self, request: FetchRequest, context: RequestContext) -> FetchResponse:
        self._check(request.cluster_id, context)
        try:
            (topic,) = request.topics
            (asked,) = topic.partitions
        except ValueError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Only the metadata log can be fetched here.") from None
        if topic.topic_id != METADATA_TOPIC_ID or asked.partition != 0:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        answer = self._answer(asked, request.max_bytes)
        has_news = (
            answer.error_code
            or answer.records
            or answer.snapshot_id.end_offset >= 0
            or answer.diverging_epoch.end_offset >= 0
        )
        if not has_news and await self._wait(request.max_wait.total_seconds()):
            answer = self._answer(asked, request.max_bytes)
        return FetchResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            responses=(FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(answer,)),),
        )

    async def fetch_snapshot(
        self, request: FetchSnapshotRequest, context: RequestContext
    ) -> snapshot_answer.FetchSnapshotResponse:
        self._check(request.cluster_id, context)
        try:
            (topic,) = request.topics
            (asked,) = topic.partitions
        except ValueError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Only the metadata log has snapshots.") from None
        if topic.name != METADATA_TOPIC or asked.partition != 0:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        size_bytes, data = await self._loop.run_in_executor(None, self._read_snapshot, asked, int(request.max_bytes))
        partition = snapshot_answer.PartitionSnapshot(
            index=i32(0),
            error_code=kio_error(ErrorCode.NONE),
            snapshot_id=snapshot_answer.SnapshotId(
                end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch
            ),
            current_leader=snapshot_answer.LeaderIdAndEpoch(leader_id=self._leader_id(), leader_epoch=self._epoch()),
            size=i64(size_bytes),
            position=asked.position,
            unaligned_records=Records(data),
        )
        return snapshot_answer.FetchSnapshotResponse(
            throttle_time=NO_THROTTLE,
            error_code=kio_error(ErrorCode.NONE),
            topics=(snapshot_answer.TopicSnapshot(name=TopicName(METADATA_TOPIC), partitions=(partition,)),),
        )

    def _check(self, cluster_id: str | None, context: RequestContext) -> None:
        if context.node_id is None:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        own = self._controller.image.cluster_id
        if cluster_id is not None and own is not None and cluster_id != own:
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)

    async def _wait(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._controller.wait_growth()
        except TimeoutError:
            return False
        return True

    def _answer(self, asked: FetchPartition, max_bytes: int) -> PartitionData:
        if self._consensus.leader_id is None:
            # Without a leader this voter may be partitioned from the quorum and lag: the observer tries another voter.
            return self._partition(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self._controller.log
        offset = int(asked.fetch_offset)
        if offset < log.start_offset or (offset == log.start_offset and offset and asked.last_fetched_epoch < 0):
            return self._partition(
                snapshot_id=SnapshotId(end_offset=i64(log.snapshot.end_offset), epoch=i32(log.snapshot.epoch))
            )
        if offset > log.end_offset:
            # Another voter was ahead of this one: the records that it served are committed and will arrive here too.
            return self._partition()
        if (
            offset
            and asked.last_fetched_epoch >= 0
            and log.epoch_before(offset) != ControllerEpoch(asked.last_fetched_epoch)
        ):
            return self._partition(
                diverging_epoch=EpochEndOffset(epoch=i32(log.epoch_before(offset)), end_offset=i64(0))
            )
        return self._partition(records=Records(log.read(offset, min(max_bytes, int(asked.partition_max_bytes)))))

    def _partition(
        self,
        *,
        records: Records = _NOTHING,
        snapshot_id: SnapshotId | None = None,
        diverging_epoch: EpochEndOffset | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> PartitionData:
        log = self._controller.log
        return PartitionData(
            partition_index=i32(0),
            error_code=kio_error(error),
            high_watermark=i64(log.end_offset),
            last_stable_offset=i64(log.end_offset),
            log_start_offset=i64(log.start_offset),
            diverging_epoch=diverging_epoch or EpochEndOffset(),
            current_leader=LeaderIdAndEpoch(leader_id=self._leader_id(), leader_epoch=self._epoch()),
            snapshot_id=snapshot_id or SnapshotId(),
            aborted_transactions=None,
            records=records,
        )

    def _read_snapshot(self, asked: PartitionSnapshot, max_bytes: int) -> tuple[int, bytes]:
        path = self._snapshots.path(asked.snapshot_id.end_offset, ControllerEpoch(asked.snapshot_id.epoch))
        size_bytes = self._snapshots.size_bytes(path)
        if size_bytes is None:
            raise KafkaError(ErrorCode.SNAPSHOT_NOT_FOUND)
        if not 0 <= asked.position < size_bytes:
            raise KafkaError(ErrorCode.POSITION_OUT_OF_RANGE)
        return size_bytes, self._snapshots.read_bytes(path, asked.position, min(max_bytes, size_bytes - asked.position))

    def _leader_id(self) -> BrokerId:
        leader_id = self._consensus.leader_id
        return BrokerId(NO_NODE if leader_id is None else leader_id)

    def _epoch(self) -> i32:
        return i32(self._consensus.epoch)


def register(handlers: Handlers, handler: MetadataFetchHandler) -> None:
    handlers.add_message(ApiKey.FETCH, handler.fetch, answer_error=fetch_error, overlaps=True)
    handlers.add_message(ApiKey.FETCH_SNAPSHOT, handler.fetch_snapshot, answer_error=fetch_snapshot_error)


def fetch_error(_request: FetchRequest, error: KafkaError) -> FetchResponse:
    return FetchResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code), responses=())


def fetch_snapshot_error(_request: FetchSnapshotRequest, error: KafkaError) -> snapshot_answer.FetchSnapshotResponse:
    return snapshot_answer.FetchSnapshotResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code), topics=())
