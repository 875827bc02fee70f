"""The log has a line for each topic that comes or goes, and one for all that one change does to others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import UUID

import pytest
from typed_ids import node_ids

from penstock.broker.replicas.rules import change_lines
from penstock.broker.replicas.rules.change_lines import log_changes
from penstock.protocol.ids import ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from penstock.quorum.metadata.records import (
    DIRECTORY_UNASSIGNED,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ALL = node_ids(1, 2, 3)


class Topics:
    """The topics of a cluster as they change."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self._image: MetadataImage = EMPTY_IMAGE

    def change(self, *records: MetadataRecord) -> list[str]:
        """The lines of one change."""
        delta = MetadataDelta(self._image)
        for record in records:
            delta.replay(record)
        self._caplog.clear()
        log_changes(delta)
        self._image = delta.apply(offset=self._image.offset + 1, epoch=ControllerEpoch(1), timestamp_ms=0)
        return list(self._caplog.messages)


@pytest.fixture
def topics(caplog: pytest.LogCaptureFixture) -> Iterator[Topics]:
    with caplog.at_level(logging.INFO, change_lines.__name__):
        topics = Topics(caplog)
        topics.change()
        yield topics


def created(number: int, partition_count: int) -> list[MetadataRecord]:
    return [
        TopicRecord(name=f"t{number}", topic_id=TopicId(UUID(int=number))),
        *(
            PartitionRecord(
                topic_id=TopicId(UUID(int=number)),
                partition_id=index,
                replicas=ALL,
                isr=ALL,
                leader=NodeId(1),
                leader_epoch=LeaderEpoch(0),
                partition_epoch=PartitionEpoch(0),
                directories=(DIRECTORY_UNASSIGNED,) * 3,
            )
            for index in range(partition_count)
        ),
    ]


def left(number: int, partition_count: int) -> list[MetadataRecord]:
    """Broker 1 is gone."""
    return [
        PartitionChangeRecord(
            topic_id=TopicId(UUID(int=number)), partition_id=index, isr=node_ids(2, 3), leader=NodeId(2)
        )
        for index in range(partition_count)
    ]


def test_each_topic_that_comes_or_goes_is_named(topics: Topics) -> None:
    assert topics.change(*created(1, 2), *created(2, 3)) == [
        "Created topic: topic=t1 partitions=2",
        "Created topic: topic=t2 partitions=3",
    ]
    assert topics.change(RemoveTopicRecord(topic_id=TopicId(UUID(int=2)))) == ["Deleted topic: topic=t2 partitions=3"]


def test_a_broker_that_leaves_is_one_line_however_many_topics_it_has_replicas_of(topics: Topics) -> None:
    topics.change(*(record for number in range(50) for record in created(number + 1, 2)))
    assert topics.change(*(record for number in range(50) for record in left(number + 1, 2))) == [
        "Partitions changed: topics=50 partitions=100 leader=1->2 isr=1,2,3->2,3"
    ]


def test_a_start_is_one_line_however_many_topics_there_are(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, change_lines.__name__):
        lines = Topics(caplog).change(*(record for number in range(50) for record in created(number + 1, 2)))
    assert lines == ["Partitions changed: topics=50 partitions=100 leader=1 isr=1,2,3"]


def test_what_became_of_each_partition_is_a_detail(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    topics.change(*created(1, 2))
    caplog.set_level(logging.DEBUG, change_lines.__name__)
    assert topics.change(*left(1, 2)) == [
        "Partitions changed: topic=t1 partitions=2 leader=1->2 isr=1,2,3->2,3",
        "Partition changed: topic=t1 partition=0 leader=2 leader_epoch=1 isr=2,3",
        "Partition changed: topic=t1 partition=1 leader=2 leader_epoch=1 isr=2,3",
    ]
    assert topics.change() == []


def test_partitions_that_changed_alike_are_told_once_and_many_ways_not_at_all(topics: Topics) -> None:
    topics.change(*created(1, 10))

    def moved(index: int, leader: int, *isr: int) -> MetadataRecord:
        return PartitionChangeRecord(
            topic_id=TopicId(UUID(int=1)), partition_id=index, isr=node_ids(*isr), leader=NodeId(leader)
        )

    assert topics.change(moved(0, 1, 1, 2), moved(1, 2, 1, 2, 3), moved(2, 1, 1, 2)) == [
        "Partitions changed: topic=t1 partitions=3 isr=1,2,3->1,2; leader=1->2"
    ]
    many = [moved(3, 2, 2), moved(4, 3, 3), moved(5, 1, 1), moved(6, 2, 1, 2)]
    assert topics.change(*many) == ["Partitions changed: topic=t1 partitions=4"]
