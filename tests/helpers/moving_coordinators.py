"""Three nodes in memory, and a coordinator that moves from node to node, between any two requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import cycle
from random import Random
from typing import Any

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.offset_commit.v10.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v10.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.types import BrokerId, GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import create_topic, run_then_stop
from waiting import ask_until

from penstock.broker.configuration.node_config import load
from penstock.broker.coordinators.group_coordinator import OFFSETS_TOPIC
from penstock.broker.coordinators.transaction_coordinator import TRANSACTIONS_TOPIC
from penstock.broker.node.server import Node
from penstock.client.connection import connect
from penstock.protocol.errors import ErrorCode
from penstock.quorum.metadata.image import PartitionRegistration
from penstock.storage.disk.memory_files import MemoryFiles

GROUP = "group"
TOPIC = "flights"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
"""By the types of keys in FindCoordinator."""
NODES = (1, 2, 3)
MINUTE = i32Timedelta.parse(timedelta(minutes=1))
TRY_AGAIN = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)


class World:
    """Three nodes, the first a controller too; whatever is coordinated is all in one partition of `internal_topic`."""

    def __init__(self, seed: int, partition_count: int, internal_topic: str = OFFSETS_TOPIC) -> None:
        self.random = Random(seed)
        self._partition_count = partition_count
        self._internal_topic = internal_topic
        self.nodes: dict[int, Node] = {}
        self.disks = {node_id: MemoryFiles() for node_id in NODES}
        self.is_moving = False
        self._leaders = cycle(NODES)

    async def start(self) -> None:
        controller_port = 0
        for node_id in NODES:
            properties = {
                "node.id": str(node_id),
                "process.roles": "broker,controller" if node_id == 1 else "broker",
                "listeners": "PLAINTEXT://127.0.0.1:0" + (",CONTROLLER://127.0.0.1:0" if node_id == 1 else ""),
                "controller.quorum.voters": f"1@127.0.0.1:{controller_port or 1}",
                "cluster.secret": "hush",
                "log.dirs": "/data",
                "offsets.topic.num.partitions": "1",
                "transaction.state.log.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "1",
                "group.consumer.assignment.interval.ms": "0",
            }
            node = self.nodes[node_id] = Node(
                load(properties),
                self.disks[node_id],
                loop=asyncio.get_running_loop(),
                wall_clock_ms=lambda: 1_700_000_000_000,
                random=self.random,
            )
            await node.start()
            controller_port = controller_port or node.bound_ports["CONTROLLER"]
        key_type = i8(INTERNAL_TOPICS.index(self._internal_topic))
        await self.ask(1, FindCoordinatorRequest(key_type=key_type, coordinator_keys=(GROUP,)))
        async with await connect("127.0.0.1", self.nodes[1].bound_ports["PLAINTEXT"]) as connection:
            assert await create_topic(connection, TOPIC, self._partition_count) is ErrorCode.NONE

    async def stop(self) -> None:
        for node_id in sorted(self.nodes, reverse=True):
            await self.nodes[node_id].stop()

    async def ask(self, node_id: int, request: Any) -> Any:
        async with await connect("127.0.0.1", self.nodes[node_id].bound_ports["PLAINTEXT"]) as connection:
            return await connection.call(request)

    def partition(self) -> PartitionRegistration:
        """Of the coordinator."""
        partition = self.nodes[1].metadata.image.topics.partition(self._internal_topic, 0)
        assert partition is not None
        return partition

    def leader(self) -> int:
        return self.partition().leader

    async def move(self) -> None:
        """Let the next node lead the partition of the coordinator."""
        leader = next(one for one in self._leaders if one != self.leader())
        replicas = (leader, *(one for one in NODES if one != leader))
        moved = ReassignablePartition(partition_index=i32(0), replicas=tuple(map(BrokerId, replicas)))
        await self.ask(
            1,
            AlterPartitionReassignmentsRequest(
                timeout=MINUTE, topics=(ReassignableTopic(name=TopicName(self._internal_topic), partitions=(moved,)),)
            ),
        )
        wanted = TopicPartitions(topic=TopicName(self._internal_topic), partitions=(i32(0),))
        elect = ElectLeadersRequest(election_type=i8(0), topic_partitions=(wanted,), timeout=MINUTE)
        await ask_until(lambda: self.ask(1, elect), lambda _: self.leader() == leader, f"node {leader} as the leader")

    async def ask_coordinator(self, request: Any, error_of: Callable[[Any], int]) -> Any:
        """As a client does: finds out who coordinates, and asks again while that changes."""
        if self.is_moving:
            await self.move()
        return await ask_until(
            lambda: self.ask(self.leader(), request),
            lambda answer: ErrorCode(int(error_of(answer))) not in TRY_AGAIN,
            "a coordinator that answers",
        )

    async def commit(self, member_id: str, epoch: int, offset: int, *, partition: int = 0) -> ErrorCode:
        """`epoch` is a generation or a member epoch."""
        place = OffsetCommitRequestPartition(
            partition_index=i32(partition), committed_offset=i64(offset), committed_metadata=None
        )
        topic_id = self.nodes[1].metadata.image.topics.by_name[TOPIC].topic_id
        answer = await self.ask_coordinator(
            OffsetCommitRequest(
                group_id=GroupId(GROUP),
                generation_id_or_member_epoch=i32(epoch),
                member_id=member_id,
                topics=(OffsetCommitRequestTopic(topic_id=topic_id, partitions=(place,)),),
            ),
            lambda answer: answer.topics[0].partitions[0].error_code,
        )
        return ErrorCode(int(answer.topics[0].partitions[0].error_code))

    async def init_producer_id(self) -> int:
        """The epoch that the coordinator gives."""
        answer = await self.ask_coordinator(
            InitProducerIdRequest(
                transactional_id=TransactionalId(GROUP),
                transaction_timeout=MINUTE,
                producer_id=ProducerId(-1),
                producer_epoch=i16(-1),
            ),
            lambda answer: answer.error_code,
        )
        assert ErrorCode(int(answer.error_code)) is ErrorCode.NONE
        return int(answer.producer_epoch)

    async def committed(self) -> int:
        topic_id = self.nodes[1].metadata.image.topics.by_name[TOPIC].topic_id
        topics = (OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(i32(0),)),)
        answer = await self.ask_coordinator(
            OffsetFetchRequest(
                groups=(
                    OffsetFetchRequestGroup(
                        group_id=GroupId(GROUP), member_id=None, member_epoch=i32(-1), topics=topics
                    ),
                ),
                require_stable=True,
            ),
            lambda answer: answer.groups[0].error_code,
        )
        return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def run(
    scenario: Callable[[World], Awaitable[None]],
    *,
    seed: int = 1,
    partition_count: int = 1,
    internal_topic: str = OFFSETS_TOPIC,
) -> None:
    world = World(seed, partition_count, internal_topic)

    async def whole() -> None:
        await world.start()
        await scenario(world)

    run_then_stop(whole, world.stop)
