"""WriteTxnMarkers, versions 1 and 2: appends the markers of a transaction coordinator to partitions led by this node.

Each partition is answered when its marker is committed. In a partition of `__consumer_offsets` the group coordinator
writes the marker and completes the pending offset commits. Version 2 adds the transaction version (KIP-1228), by which
the marker's producer epoch is checked.

A connection that is not authenticated as a node may only abort: an administrator ends a hanging transaction that way
(KIP-664). It must be allowed to alter the cluster, or CLUSTER_ACTION.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kio.static.primitive import i32

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import kio_error
from ...storage.log.rules.control_records import write_end_transaction_marker
from ..configuration.node_config import REQUEST_TIMEOUT_MS
from ..coordinators.group_coordinator import OFFSETS_TOPIC, GroupCoordinator
from ..network.handlers import Handlers
from ..network.request import Request
from ..replicas.delayed_append import DelayedAppend
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager
from .response_collector import ResponseCollector

logger = logging.getLogger(__name__)

NOT_READY: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""Group coordinator errors that a transaction coordinator does not expect: it gets NOT_LEADER_OR_FOLLOWER instead and
looks up the leader again."""


def register(
    handlers: Handlers, partitions: ReplicaManager, groups: GroupCoordinator, wall_clock_ms: Callable[[], int]
) -> None:
    writer = MarkerWriter(partitions, groups, wall_clock_ms)
    handlers.add_replying(ApiKey.WRITE_TXN_MARKERS, writer.begin, answer_error=error_response)


class MarkerWriter:
    def __init__(self, partitions: ReplicaManager, groups: GroupCoordinator, wall_clock_ms: Callable[[], int]) -> None:
        self._partitions = partitions
        self._groups = groups
        self._wall_clock_ms = wall_clock_ms

    def begin(
        self, message: WriteTxnMarkersRequest, request: Request, reply: Callable[[WriteTxnMarkersResponse], None]
    ) -> None:
        """Raises KafkaError."""
        context = request.context
        if not context.may_in_cluster(ApiKey.WRITE_TXN_MARKERS, AclOperation.ALTER, is_logged=False):
            context.require_in_cluster(ApiKey.WRITE_TXN_MARKERS, AclOperation.CLUSTER_ACTION)
        is_by_hand = context.node_id is None
        if is_by_hand and any(marker.transaction_result for marker in message.markers):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        wanted = [
            (marker, str(topic.name), int(index))
            for marker in message.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]

        def respond(codes: tuple[ErrorCode, ...]) -> None:
            if is_by_hand:
                _log_aborted([place for place, code in zip(wanted, codes, strict=True) if not code], request)
            reply(_response([(int(marker.producer_id), topic, index) for marker, topic, index in wanted], codes))

        answers: ResponseCollector[ErrorCode] = ResponseCollector(len(wanted), respond)
        for number, (marker, topic, index) in enumerate(wanted):
            settle = answers.slot(number)
            try:
                self._write(marker, topic, index, settle)
            except KafkaError as error:
                settle(error.code)

    def _write(self, marker: WritableTxnMarker, topic: str, index: int, settle: Callable[[ErrorCode], None]) -> None:
        """Raises KafkaError: then nothing was written, and `settle` is not called."""
        partition = self._partitions.find(topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic == OFFSETS_TOPIC:
            self._end_for_groups(marker, index, settle)
            return
        now_ms = self._wall_clock_ms()
        batch = write_end_transaction_marker(
            marker.producer_id,
            marker.producer_epoch,
            is_commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            now_ms=now_ms,
        )
        info = partition.append_of_coordinator(batch, now_ms, transaction_version=marker.transaction_version)
        self._settle_when_committed(partition, info.last_offset + 1, settle)
        self._partitions.complete_fetches(partition)

    def _end_for_groups(self, marker: WritableTxnMarker, index: int, settle: Callable[[ErrorCode], None]) -> None:
        try:
            self._groups.coordinators.at(index).end_transaction(
                marker.producer_id,
                marker.producer_epoch,
                is_commit=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                respond=lambda error: settle(_as_leader(error)),
            )
        except KafkaError as error:
            raise KafkaError(_as_leader(error.code), error.message) from error

    def _settle_when_committed(
        self, partition: Partition, end_offset: int, settle: Callable[[ErrorCode], None]
    ) -> None:
        operation = DelayedAppend(partition, end_offset, settle)
        self._partitions.produces.watch(operation, (partition,), REQUEST_TIMEOUT_MS)


def _as_leader(error: ErrorCode) -> ErrorCode:
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in NOT_READY else error


def _log_aborted(places: list[tuple[WritableTxnMarker, str, int]], request: Request) -> None:
    """Logs successful aborts only: a client cannot fill the log with refused ones."""
    for marker, topic, index in places:
        logger.info(
            "Aborted transaction by admin request: producer_id=%d epoch=%d partition=%s-%d peer=%s",
            marker.producer_id,
            marker.producer_epoch,
            topic,
            index,
            request.context.peer_host,
        )


def _response(places: list[tuple[int, str, int]], codes: tuple[ErrorCode, ...]) -> WriteTxnMarkersResponse:
    """Returns the response with one result for each producer, even if it had several markers."""
    results: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    for (producer_id, topic, index), code in zip(places, codes, strict=True):
        results.setdefault(producer_id, {}).setdefault(topic, {})[index] = code
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=ProducerId(producer_id),
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=TopicName(topic),
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=i32(index), error_code=kio_error(code))
                            for index, code in partitions.items()
                        ),
                    )
                    for topic, partitions in topics.items()
                ),
            )
            for producer_id, topics in results.items()
        )
    )


def error_response(request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    places = [
        (int(marker.producer_id), str(topic.name), int(index))
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    return _response(places, (error.code,) * len(places))
