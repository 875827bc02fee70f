"""Markers of decided transactions as one WriteTxnMarkers request, and what was answered."""

from __future__ import annotations

from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import WriteTxnMarkersResponse
from kio.static.primitive import i8, i16, i32

from ....protocol.errors import ErrorCode
from ....protocol.messages import Response
from ...transactions.markers import MarkerOrder, Marks
from ...transactions.transaction import TransactionPartition


def errors_of(answer: Response) -> dict[tuple[int, str, int], ErrorCode]:
    """By producer id, topic and partition. Raises ValueError for a code that this node does not know."""
    assert isinstance(answer, WriteTxnMarkersResponse)
    return {
        (int(marker.producer_id), str(topic.name), int(partition.partition_index)): ErrorCode(int(partition.error_code))
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


def marker_request(marks: Marks) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=tuple(_marker(order, partitions) for order, partitions in marks.items()))


def _marker(order: MarkerOrder, partitions: set[TransactionPartition]) -> WritableTxnMarker:
    indexes: dict[str, list[i32]] = {}
    for topic, index in sorted(partitions):
        indexes.setdefault(topic, []).append(i32(index))
    transaction = order.transaction
    return WritableTxnMarker(
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=i16(transaction.producer_epoch),
        transaction_result=order.is_commit,
        topics=tuple(
            WritableTxnMarkerTopic(name=TopicName(topic), partition_indexes=tuple(numbers))
            for topic, numbers in indexes.items()
        ),
        coordinator_epoch=i32(order.coordinator_epoch),
        transaction_version=i8(transaction.client_version),
    )
