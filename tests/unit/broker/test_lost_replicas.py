"""A node says that it cannot open a replica's log, so that others lead (`AssignmentsManager`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import cast
from uuid import UUID

import pytest
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
from memory_node import run
from metadata_cluster import Cluster
from replicated_topics import fence
from typed_ids import node_ids
from waiting import loop_until

from penstock.broker.cluster.controller_channel import ControllerChannel
from penstock.broker.node import assignments_manager
from penstock.broker.node.assignments_manager import AssignmentsManager
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.quorum.decisions.directories import assign_replicas_to_dirs
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from penstock.quorum.metadata.image import EMPTY_IMAGE, PartitionRegistration
from penstock.quorum.metadata.records import (
    DIRECTORY_LOST,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

HERE, ELSEWHERE = UUID(int=501), UUID(int=600)
TOPIC_ID = TopicId(UUID(int=77))


class UnopenedLogs:
    """Partitions of which none has a log."""

    def __init__(self) -> None:
        self.is_looked_at = asyncio.Event()

    async def settled(self) -> None:
        self.is_looked_at.set()

    def find(self, topic: str, index: int) -> None:
        pass

    def absence(self, topic: str, index: int) -> ErrorCode:
        assert (topic, index) == ("t", 0)
        return ErrorCode.KAFKA_STORAGE_ERROR

    def is_postponed(self, topic: str, index: int) -> bool:
        assert (topic, index) == ("t", 0)
        return False


class World:
    """Broker 1, whose log of the one partition cannot be opened, and broker 2 with the other replica."""

    def __init__(self, *, isr: tuple[int, ...] = (1, 2), elr: tuple[int, ...] = (), is_online: bool = True) -> None:
        self.cluster = Cluster()
        self.logs = UnopenedLogs()
        self.asked_count = 0
        self.assignments = AssignmentsManager(
            self.logs,
            cast(ControllerChannel, self),
            node_id=NodeId(1),
            broker_epoch=lambda: BrokerEpoch(10),
            directory_id_of=lambda _: HERE,
            is_online=lambda directory_id: is_online and directory_id == HERE,
        )
        brokers = [
            RegisterBrokerRecord(
                broker_id=NodeId(broker_id), incarnation_id=UUID(int=broker_id),
                broker_epoch=BrokerEpoch(10 * broker_id), is_fenced=False, log_dirs=(directory,),
            )
            for broker_id, directory in ((1, HERE), (2, ELSEWHERE))
        ]  # fmt: skip
        partition = PartitionRecord(
            topic_id=TOPIC_ID, partition_id=0, replicas=node_ids(1, 2), isr=node_ids(*isr), elr=node_ids(*elr),
            leader=NodeId(1), leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(0),
            directories=(HERE, ELSEWHERE),
        )  # fmt: skip
        feature = FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS_VERSION, feature_level=1)
        self.cluster.replay([feature, *brokers, TopicRecord(name="t", topic_id=TOPIC_ID), partition])
        self.publish()

    @property
    def partition(self) -> PartitionRegistration:
        return self.cluster.partition("t", 0)

    def publish(self) -> None:
        delta = MetadataDelta(EMPTY_IMAGE)
        partition = self.partition
        told: list[MetadataRecord] = [
            TopicRecord(name="t", topic_id=TOPIC_ID),
            PartitionRecord(
                topic_id=TOPIC_ID, partition_id=0, replicas=partition.replicas, isr=partition.isr,
                leader=partition.leader, leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch, directories=partition.directories,
            ),
        ]  # fmt: skip
        for record in told:
            delta.replay(record)
        self.assignments.publish(delta, self.cluster.image)

    async def submit(self, _: object, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        self.asked_count += 1
        response = self.cluster.submit(assign_replicas_to_dirs, request)
        if self.cluster.records:
            self.publish()
        return response

    async def report_until(self, is_done: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.assignments.run())
        await loop_until(is_done, "what the reporter has to report")
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def test_another_leads_in_place_of_a_replica_whose_log_cannot_be_opened() -> None:
    async def main() -> None:
        world = World()
        await world.report_until(lambda: world.partition.leader == 2)
        assert world.partition.directory_of(NodeId(1)) == DIRECTORY_LOST
        assert world.partition.isr == (2,)

    run(main)


def test_it_is_said_again_until_another_replica_can_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments_manager, "LOST_AGAIN_S", 0.01)

    async def main() -> None:
        world = World(isr=(1,), elr=(2,))
        fence(world.cluster, 2)
        await world.report_until(lambda: world.asked_count >= 2)
        assert (world.partition.leader, world.partition.directory_of(NodeId(1))) == (1, HERE)
        fence(world.cluster, 2, is_fenced=False)
        await world.report_until(lambda: world.partition.leader == 2)
        asked_count = world.asked_count
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await world.assignments.run()
        assert world.asked_count == asked_count

    run(main)


def test_of_a_directory_that_has_failed_the_heartbeat_tells() -> None:
    async def main() -> None:
        world = World(is_online=False)
        await world.report_until(world.logs.is_looked_at.is_set)
        assert world.asked_count == 0

    run(main)
