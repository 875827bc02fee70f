"""Large changes of the metadata are frozen, small ones are not."""

import gc
from uuid import UUID

import pytest
from typed_ids import node_ids

from penstock.broker.node import garbage
from penstock.protocol.ids import ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE
from penstock.quorum.metadata.records import PartitionRecord, TopicRecord


@pytest.mark.parametrize(("partition_count", "freeze_count"), [(10, 0), (garbage.LARGE_CHANGE, 1)])
def test_only_large_changes_are_frozen(
    partition_count: int, freeze_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[None] = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(None))
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay(TopicRecord(name="t", topic_id=TopicId(UUID(int=9))))
    for index in range(partition_count):
        delta.replay(
            PartitionRecord(
                topic_id=TopicId(UUID(int=9)),
                partition_id=index,
                replicas=node_ids(1),
                isr=node_ids(1),
                directories=(UUID(int=8),),
                leader=NodeId(1),
                leader_epoch=LeaderEpoch(0),
                partition_epoch=PartitionEpoch(0),
            )
        )
    garbage.FreezeLargeChanges().publish(delta, delta.apply(offset=0, epoch=ControllerEpoch(1), timestamp_ms=0))
    assert len(calls) == freeze_count
