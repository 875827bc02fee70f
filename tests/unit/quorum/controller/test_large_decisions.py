"""Decisions about many partitions are made beside the loop: what they may not change about the order of things."""

import asyncio
import threading
from collections.abc import Callable
from uuid import UUID

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.update_features.v2.request import UpdateFeaturesRequest
from kio.static.primitive import i8, i16, i32, i64
from metadata_cluster import Cluster
from puppet_engine import Puppet, activate, on_a_loop, read
from replicated_topics import make_topic
from waiting import loop_until

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.controller.controller import Controller
from penstock.quorum.decisions.context import ControllerResult, DecisionContext
from penstock.quorum.decisions.decision_cost import INLINE_MAX, weight
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import FeatureLevelRecord

LARGE = CreateTopicsRequest(
    topics=(
        CreatableTopic(
            name=TopicName("t"),
            num_partitions=i32(INLINE_MAX + 1),
            replication_factor=i16(1),
            assignments=(),
            configs=(),
        ),
    )
)


def assignments(count: int) -> AssignReplicasToDirsRequest:
    partitions = tuple(PartitionData(partition_index=i32(index)) for index in range(count))
    directory = DirectoryData(id_=UUID(int=1), topics=(TopicData(topic_id=UUID(int=2), partitions=partitions),))
    return AssignReplicasToDirsRequest(broker_id=BrokerId(1), broker_epoch=i64(1), directories=(directory,))


def moves(count: int) -> AlterPartitionReassignmentsRequest:
    partitions = tuple(ReassignablePartition(partition_index=i32(index), replicas=None) for index in range(count))
    return AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TopicName("t"), partitions=partitions),))


def min_insync_replicas(value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="min.insync.replicas", config_operation=i8(0), value=value)
    resource = AlterConfigsResource(resource_type=i8(4), resource_name="", configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


class HeldDecision:
    """Writes a feature level when the test lets it go on; `offsets` are those it was made for."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(
        self, _image: MetadataImage, _request: CreateTopicsRequest, context: DecisionContext
    ) -> ControllerResult[int]:
        self.offsets.append(context.next_offset)
        self.has_begun.set()
        assert self.may_end.wait(20)
        return ControllerResult(records=(FeatureLevelRecord(name="f", feature_level=7),), response=7)

    async def begun(self, controller: Controller) -> "asyncio.Task[int]":
        task = asyncio.ensure_future(controller.submit(self, LARGE))
        assert await asyncio.get_running_loop().run_in_executor(None, self.has_begun.wait, 20)
        return task


def test_creating_many_partitions_is_no_light_decision() -> None:
    assert weight(MetadataImage(), LARGE) > INLINE_MAX


def test_what_may_concern_any_partition_is_no_light_decision_where_there_are_many() -> None:
    cluster = Cluster()
    cluster.add_brokers(1)
    make_topic(cluster, "t", *[(1,)] * (INLINE_MAX + 1))
    for request in (
        UnregisterBrokerRequest(broker_id=BrokerId(1)),
        UpdateFeaturesRequest(feature_updates=(), validate_only=False),
        min_insync_replicas("2"),
        moves(INLINE_MAX + 1),
        assignments(INLINE_MAX + 1),
    ):
        assert weight(cluster.image, request) > INLINE_MAX
    assert weight(cluster.image, assignments(1)) <= INLINE_MAX


async def commit_until(puppet: Puppet, is_decided: Callable[[], bool]) -> None:
    def is_done() -> bool:
        puppet.commit()
        return is_decided()

    await loop_until(is_done, "the answer to the decision", interval_s=0)


@on_a_loop
async def test_others_wait_for_a_large_decision_and_build_on_it(puppet: Puppet, controller: Controller) -> None:
    activate(puppet)
    held = HeldDecision()
    large = await held.begun(controller)
    small = asyncio.ensure_future(controller.submit(read, None))
    other = HeldDecision()
    other.may_end.set()
    next_large = asyncio.ensure_future(controller.submit(other, LARGE))
    await asyncio.sleep(0)
    assert not small.done()
    assert not other.offsets
    held.may_end.set()
    assert await asyncio.get_running_loop().run_in_executor(None, other.has_begun.wait, 20)
    await commit_until(puppet, next_large.done)
    assert await large == 7
    assert (await small)["f"] == 7
    assert held.offsets[0] < other.offsets[0]


@on_a_loop
async def test_a_large_decision_is_made_anew_when_another_entry_took_its_offset(
    puppet: Puppet, controller: Controller
) -> None:
    activate(puppet)
    held = HeldDecision()
    large = await held.begun(controller)
    puppet.hear()
    held.may_end.set()
    await commit_until(puppet, large.done)
    first, second = held.offsets
    assert second == first + 1 == controller.image.offset


@on_a_loop
async def test_a_large_decision_of_a_lost_leadership_is_not_proposed(puppet: Puppet, controller: Controller) -> None:
    activate(puppet)
    held = HeldDecision()
    large = await held.begun(controller)
    puppet.elect(NodeId(2))
    held.may_end.set()
    with pytest.raises(KafkaError) as caught:
        await large
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert not puppet.waiting


@on_a_loop
async def test_a_caller_that_gives_up_does_not_stop_a_large_decision(puppet: Puppet, controller: Controller) -> None:
    activate(puppet)
    held = HeldDecision()
    large = await held.begun(controller)
    large.cancel()
    looking = asyncio.ensure_future(controller.submit(read, None))
    held.may_end.set()
    await commit_until(puppet, looking.done)
    assert (await looking)["f"] == 7
