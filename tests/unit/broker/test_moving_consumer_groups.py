"""A group of the consumer protocol whose coordinator moves between every two requests, from node to node of three."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta
from moving_coordinators import GROUP, TOPIC, World, run

from penstock.protocol.errors import ErrorCode

PARTITION_COUNT = 4
ALL = frozenset(range(PARTITION_COUNT))
JOIN = 0
LEAVE = -1
REBALANCE_TIMEOUT = i32Timedelta.parse(timedelta(minutes=5))


class Consumer:
    """Does as it is told; each method is one request."""

    def __init__(self, world: World, member_id: str) -> None:
        self.world = world
        self.member_id = member_id
        self.epoch = JOIN
        self.epochs: list[int] = []
        self.owned: frozenset[int] = frozenset()
        self._topic_id: UUID | None = None

    async def _ask(self, epoch: int) -> Any:
        owned = tuple(i32(partition) for partition in sorted(self.owned))
        answer = await self.world.ask_coordinator(
            ConsumerGroupHeartbeatRequest(
                group_id=GroupId(GROUP),
                member_id=self.member_id,
                member_epoch=i32(epoch),
                rebalance_timeout=REBALANCE_TIMEOUT,
                subscribed_topic_names=(TopicName(TOPIC),),
                subscribed_topic_regex=None,
                topic_partitions=(TopicPartitions(topic_id=self._topic_id, partitions=owned),) if owned else (),
            ),
            lambda answer: answer.error_code,
        )
        assert ErrorCode(int(answer.error_code)) is ErrorCode.NONE, answer
        return answer

    async def beat(self) -> None:
        answer = await self._ask(self.epoch)
        self.epoch = int(answer.member_epoch)
        self.epochs.append(self.epoch)
        topics = answer.assignment.topic_partitions
        self._topic_id = topics[0].topic_id if topics else self._topic_id
        self.owned = frozenset(int(partition) for topic in topics for partition in topic.partitions)

    async def leave(self) -> None:
        answer = await self._ask(LEAVE)
        assert int(answer.member_epoch) == LEAVE
        self.epoch, self.owned = JOIN, frozenset()

    async def commit(self, offset: int) -> ErrorCode:
        return await self.world.commit(self.member_id, self.epoch, offset)


async def settle(consumers: Sequence[Consumer]) -> None:
    """Until no member's assignment changes any more."""
    for _ in range(10):
        before = [(consumer.epoch, consumer.owned) for consumer in consumers]
        for consumer in consumers:
            await consumer.beat()
            # At every moment.
            owned = [partition for one in consumers for partition in one.owned]
            assert len(owned) == len(set(owned)), owned
        if before == [(consumer.epoch, consumer.owned) for consumer in consumers]:
            return
    raise AssertionError("the members do not settle")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_answered_holds_for_the_next_coordinator(seed: int) -> None:
    async def scenario(world: World) -> None:
        world.is_moving = True
        epochs = []
        offset = 0
        for life in range(3):
            consumer = Consumer(world, f"member-{life}")
            await consumer.beat()
            assert consumer.owned == ALL
            for _ in range(2):
                await consumer.beat()
                assert await consumer.commit(offset + 1) is ErrorCode.NONE
                offset += 1
                assert await world.committed() == offset
            assert consumer.owned == ALL
            assert len(set(consumer.epochs)) == 1
            epochs.append(consumer.epoch)
            await consumer.leave()
            assert await world.committed() == offset
        assert epochs == sorted(set(epochs))

    run(scenario, seed=seed, partition_count=PARTITION_COUNT)


@pytest.mark.thorough
def test_partitions_change_hands_while_the_coordinator_does() -> None:
    async def scenario(world: World) -> None:
        world.is_moving = True
        first, second = Consumer(world, "first"), Consumer(world, "second")
        await first.beat()
        assert first.owned == ALL
        await second.beat()
        # Nothing is let go yet.
        assert second.owned == frozenset()
        await settle([first, second])
        assert [len(first.owned), len(second.owned)] == [2, 2]
        assert first.owned | second.owned == ALL
        assert first.epoch == second.epoch
        # An older epoch is good for what the member has had since then, and for nothing else (KIP-1251).
        before = first.epochs[0]
        assert before < first.epoch
        assert await world.commit("first", before, 1, partition=min(first.owned)) is ErrorCode.NONE
        assert await world.commit("first", before, 1, partition=min(second.owned)) is ErrorCode.STALE_MEMBER_EPOCH
        await second.leave()
        await settle([first])
        assert first.owned == ALL
        assert first.epochs == sorted(first.epochs)

    run(scenario, partition_count=PARTITION_COUNT)


@pytest.mark.thorough
def test_three_members_share_and_one_leaves() -> None:
    async def scenario(world: World) -> None:
        consumers = [Consumer(world, f"member-{number}") for number in range(3)]
        world.is_moving = True
        for number, consumer in enumerate(consumers, start=1):
            await consumer.beat()
            await settle(consumers[:number])
        assert sorted(len(consumer.owned) for consumer in consumers) == [1, 1, 2]
        leaving = consumers.pop(0)
        await leaving.leave()
        await settle(consumers)
        assert [len(consumer.owned) for consumer in consumers] == [2, 2]

    run(scenario, partition_count=PARTITION_COUNT)
