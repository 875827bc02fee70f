"""A group of the classic protocol whose coordinator moves between every two requests, from node to node of three."""

from __future__ import annotations

import asyncio
from errno import EMFILE

import pytest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.types import GroupId
from kio.static.primitive import i32
from moving_coordinators import GROUP, INTERNAL_TOPICS, MINUTE, NODES, World, run
from waiting import ask_until, loop_until

from penstock.broker.coordinators import coordinator_context
from penstock.broker.coordinators.group_coordinator import OFFSETS_TOPIC
from penstock.broker.node import assignments_manager
from penstock.protocol.errors import ErrorCode


class Consumer:
    """Follows the rules of a consumer; each method is one request, or several until the group has taken it in."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.member_id = ""
        self.generation = -1
        self.synced_generations: list[int] = []

    async def take_part(self) -> None:
        while True:
            await self.join()
            answer = await self.world.ask_coordinator(
                SyncGroupRequest(
                    group_id=GroupId(GROUP),
                    generation_id=i32(self.generation),
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=(SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all"),),
                ),
                lambda answer: answer.error_code,
            )
            error = ErrorCode(int(answer.error_code))
            if error is ErrorCode.NONE:
                assert answer.assignment == b"all"
                self.synced_generations.append(self.generation)
                return
            self._on_refusal(error)
            # A group can only be joined where the coordinator stays for three requests.
            self.world.is_moving = False

    async def join(self) -> None:
        while True:
            answer = await self.world.ask_coordinator(
                JoinGroupRequest(
                    group_id=GroupId(GROUP),
                    session_timeout=MINUTE,
                    rebalance_timeout=MINUTE,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
                    reason=None,
                ),
                lambda answer: answer.error_code,
            )
            error = ErrorCode(int(answer.error_code))
            self.member_id = answer.member_id
            if error is ErrorCode.NONE:
                self.generation = answer.generation_id
                return
            if error is not ErrorCode.MEMBER_ID_REQUIRED:
                self._on_refusal(error)
                self.world.is_moving = False

    def _on_refusal(self, error: ErrorCode) -> None:
        assert error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION), error
        self.member_id = ""

    async def heartbeat(self) -> ErrorCode:
        answer = await self.world.ask_coordinator(
            HeartbeatRequest(group_id=GroupId(GROUP), generation_id=i32(self.generation), member_id=self.member_id),
            lambda answer: answer.error_code,
        )
        return ErrorCode(int(answer.error_code))

    async def commit(self, offset: int) -> ErrorCode:
        return await self.world.commit(self.member_id, self.generation, offset)

    async def leave(self) -> None:
        member = MemberIdentity(member_id=self.member_id, group_instance_id=None, reason=None)
        answer = await self.world.ask_coordinator(
            LeaveGroupRequest(group_id=GroupId(GROUP), members=(member,)), lambda answer: answer.error_code
        )
        assert int(answer.members[0].error_code) == 0
        self.member_id = ""


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_answered_holds_for_the_next_coordinator(seed: int) -> None:
    async def scenario(world: World) -> None:
        consumer = Consumer(world)
        offset = 0
        for _ in range(3):
            world.is_moving = True
            await consumer.take_part()
            world.is_moving = True
            for _ in range(3):
                assert await consumer.heartbeat() is ErrorCode.NONE
                assert await consumer.commit(offset + 1) is ErrorCode.NONE
                offset += 1
                assert await world.committed() == offset
            await consumer.leave()
            assert await world.committed() == offset
        # Each generation that was ever assigned is later than the one before.
        assert consumer.synced_generations == sorted(set(consumer.synced_generations))

    run(scenario, seed=seed)


async def until_rebalance(consumer: Consumer) -> None:
    await ask_until(consumer.heartbeat, lambda error: error is ErrorCode.REBALANCE_IN_PROGRESS, "word of the rebalance")


def test_a_rebalance_goes_on_with_the_next_coordinator() -> None:
    async def scenario(world: World) -> None:
        first, second = Consumer(world), Consumer(world)
        await first.take_part()
        joining = asyncio.create_task(second.join())
        await until_rebalance(first)
        await world.move()
        # A member that waited is told, and joins the group again as it was written last.
        await until_rebalance(first)
        await asyncio.gather(first.join(), joining)
        assert first.generation == second.generation == 2
        assert first.member_id != second.member_id

    run(scenario)


@pytest.mark.parametrize("internal_topic", INTERNAL_TOPICS)
def test_coordinator_that_cannot_read_its_log_is_replaced_by_an_in_sync_replica_and_keeps_its_log(
    monkeypatch: pytest.MonkeyPatch, internal_topic: str
) -> None:
    monkeypatch.setattr(coordinator_context, "RESIGN_AFTER_S", 0.5)
    monkeypatch.setattr(assignments_manager, "LOST_AGAIN_S", 0.1)

    async def scenario(world: World) -> None:
        if internal_topic == OFFSETS_TOPIC:
            assert await world.commit("", -1, 42) is ErrorCode.NONE
        else:
            assert await world.init_producer_id() == 0
        before = world.leader()
        victim = next(one for one in NODES[1:] if one != before)
        world.disks[victim].fail("read", under=f"/data/{internal_topic}-0/", error=EMFILE, count=None)
        while world.leader() != victim:
            await world.move()
        await loop_until(lambda: world.leader() != victim, "another leader")
        if internal_topic == OFFSETS_TOPIC:
            assert await world.committed() == 42
        else:
            assert await world.init_producer_id() == 1
        world.disks[victim].heal()
        await loop_until(lambda: set(world.partition().isr) == set(NODES), "the replica in sync again")
        partition = world.nodes[victim].parts.partitions.find(internal_topic, 0)
        assert partition is not None
        assert partition.damage is None

    run(scenario, internal_topic=internal_topic)
