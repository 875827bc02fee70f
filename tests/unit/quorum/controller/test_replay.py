"""A large snapshot that arrives is taken in beside the loop, and what comes behind it waits."""

import asyncio
from uuid import UUID

import pytest
from metadata_cluster import CLUSTER_ID
from puppet_engine import Puppet, on_a_loop, read

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import ControllerEpoch, NodeId, TopicId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import FeatureLevelRecord, TopicRecord
from penstock.quorum.metadata.snapshot_records import image_chunks
from penstock.quorum.raft.consensus import Snapshot

LARGE_TOPIC_COUNT = 1_000


def large_snapshot(end_offset: int, level: int) -> Snapshot:
    delta = MetadataDelta(MetadataImage(cluster_id=CLUSTER_ID))
    for number in range(LARGE_TOPIC_COUNT):
        delta.replay(TopicRecord(name=f"topic{number}", topic_id=TopicId(UUID(int=number + 1))))
    delta.replay(FeatureLevelRecord(name="f", feature_level=level))
    image = delta.apply(offset=end_offset - 1, epoch=ControllerEpoch(3), timestamp_ms=0)
    return Snapshot(end_offset=end_offset, epoch=ControllerEpoch(3), chunks=list(image_chunks(image)))


def tell(puppet: Puppet, snapshot: Snapshot) -> None:
    assert puppet.listener is not None
    puppet.listener.on_snapshot(snapshot)
    puppet.next_offset = snapshot.end_offset


async def wait_offset(controller: Controller, offset: int) -> None:
    for _ in range(20_000):
        if controller.image.offset >= offset:
            return
        await asyncio.sleep(0.001)
    pytest.fail(f"the image has not come to offset {offset}")


@on_a_loop
async def test_entries_behind_a_large_snapshot_are_replayed_after_it(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    tell(puppet, large_snapshot(10, 1))
    for level in range(2, 40):
        puppet.hear(FeatureLevelRecord(name="f", feature_level=level))
    assert controller.image.offset < 9, "it is not taken in at once"
    await wait_offset(controller, puppet.next_offset - 1)
    assert controller.image.features["f"] == 39
    assert len(controller.image.topics.by_id) == LARGE_TOPIC_COUNT
    puppet.hear(FeatureLevelRecord(name="f", feature_level=40))
    await wait_offset(controller, puppet.next_offset - 1)
    assert controller.image.features["f"] == 40


@on_a_loop
async def test_a_later_snapshot_replaces_one_that_is_being_taken_in(puppet: Puppet, controller: Controller) -> None:
    puppet.elect(NodeId(2))
    tell(puppet, large_snapshot(10, 1))
    puppet.hear(FeatureLevelRecord(name="f", feature_level=2))
    await asyncio.sleep(0)
    tell(puppet, large_snapshot(50, 7))
    await wait_offset(controller, 49)
    assert controller.image.features["f"] == 7


@on_a_loop
async def test_a_leader_decides_nothing_before_it_took_in_a_large_snapshot(
    puppet: Puppet, controller: Controller
) -> None:
    puppet.elect(NodeId(2))
    tell(puppet, large_snapshot(10, 1))
    puppet.elect(NodeId(1))
    puppet.hear()
    with pytest.raises(KafkaError) as caught:
        await controller.submit(read, None)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    async with asyncio.timeout(20):
        await controller.wait_active()
    assert (await controller.submit(read, None))["f"] == 1
