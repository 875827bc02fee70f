"""ListPartitionReassignments: which partitions of an image are on the move."""

from uuid import UUID

from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32
from typed_ids import node_ids

from penstock.broker.apis.partition_reassignments import list_reassignments
from penstock.protocol.ids import ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.records import PartitionRecord, TopicRecord


def an_image() -> MetadataImage:
    """Of a topic 't' whose partition 1 moves from broker 1 to broker 2."""
    delta = MetadataDelta(EMPTY_IMAGE)
    topic_id = UUID(int=7)
    delta.replay(TopicRecord(name="t", topic_id=TopicId(topic_id)))
    for index, moves in enumerate((False, True)):
        replicas = (1, 2) if moves else (1,)
        delta.replay(
            PartitionRecord(
                topic_id=TopicId(topic_id),
                partition_id=index,
                replicas=node_ids(*replicas),
                isr=node_ids(1),
                directories=tuple(UUID(int=100 + replica) for replica in replicas),
                leader=NodeId(1),
                leader_epoch=LeaderEpoch(0),
                partition_epoch=PartitionEpoch(0),
                adding_replicas=node_ids(2) if moves else (),
                removing_replicas=node_ids(1) if moves else (),
            )
        )
    return delta.apply(offset=0, epoch=ControllerEpoch(1), timestamp_ms=0)


def moving(*asked: tuple[str, tuple[int, ...]]) -> list[tuple[str, int, tuple[int, ...], tuple[int, ...]]]:
    topics = tuple(
        ListPartitionReassignmentsTopics(name=TopicName(name), partition_indexes=tuple(map(i32, indexes)))
        for name, indexes in asked
    )
    answer = list_reassignments(an_image(), ListPartitionReassignmentsRequest(topics=topics or None))
    return [
        (topic.name, partition.partition_index, partition.adding_replicas, partition.removing_replicas)
        for topic in answer.topics
        for partition in topic.partitions
    ]


def test_partitions_on_the_move_are_listed() -> None:
    assert moving() == moving(("t", (0, 1))) == [("t", 1, (2,), (1,))]


def test_those_that_stay_and_unknown_partitions_are_left_out() -> None:
    assert moving(("t", (0, 5)), ("x", (0,))) == []
