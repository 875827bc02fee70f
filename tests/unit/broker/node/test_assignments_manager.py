"""The controller learns in which log directory each replica is, and what fails with a directory (KIP-858)."""

from __future__ import annotations

from errno import EIO, ENOSPC
from uuid import UUID

import pytest
from memory_node import World, create_topic, describe, produce, run
from waiting import ask_until, loop_until

from penstock.broker.node import assignments_manager
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.directories import ASSIGN_REPLICAS_TO_DIRS
from penstock.quorum.metadata.image import PartitionRegistration
from penstock.quorum.metadata.records import DIRECTORY_LOST, DIRECTORY_UNASSIGNED

OK, STORAGE_ERROR = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
LEADER_NOT_AVAILABLE = ErrorCode.LEADER_NOT_AVAILABLE
TWO_DISKS = {"log_dirs": "/data,/more"}


@pytest.fixture(autouse=True)
def _retry_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments_manager, "RETRY_S", 0.01)


def registered(node: Node, index: int, topic: str = "t") -> PartitionRegistration:
    found = node.metadata.image.topics.partition(topic, index)
    assert found is not None
    return found


def directory_ids(node: Node) -> dict[str, UUID]:
    """Where partitions are, by the folders' parents."""
    known = node.metadata.image.brokers[1].directories
    return dict(zip(("/data", "/more"), known, strict=False))


async def told(node: Node, index: int, topic: str = "t") -> UUID:
    """Where the controller has the replica, once it has been told."""
    await loop_until(
        lambda: registered(node, index, topic).directories != (DIRECTORY_UNASSIGNED,), "a directory of the replica"
    )
    return registered(node, index, topic).directory_of(NodeId(1))


async def leaders(connection: Connection, topic: str = "t") -> dict[int, tuple[ErrorCode, int]]:
    partitions = (await describe(connection, topic)).topics[0].partitions
    return {int(one.partition_index): (ErrorCode(int(one.error_code)), int(one.leader_id)) for one in partitions}


def test_replicas_are_where_their_logs_are() -> None:
    async def scenario() -> None:
        world = World(**TWO_DISKS)
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t", 4) == OK
            for index in range(4):
                partition = node.parts.partitions.get_online("t", index)
                path = partition.log.directory.rpartition("/")[0]
                assert await told(node, index) == directory_ids(node)[path]
        async with world.running() as (node, connection):
            assert {(await told(node, index)) for index in range(4)} == set(directory_ids(node).values())
            assert {leader for _, leader in (await leaders(connection)).values()} == {1}

    run(scenario)


def test_partitions_of_a_failed_directory_have_no_leader_and_the_others_are_served() -> None:
    async def scenario() -> None:
        world = World(**TWO_DISKS)
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t", 4) == OK
            more = directory_ids(node)["/more"]
            lost = {index for index in range(4) if await told(node, index) == more}
            assert len(lost) == 2
            world.files.fail(under="/more", count=None)
            assert await produce(connection, "t", b"x", min(lost)) == STORAGE_ERROR
            answers = await ask_until(
                lambda: leaders(connection),
                lambda answers: all(answers[index][1] != 1 for index in lost),
                "partitions of the failed directory without a leader",
            )
            for index in range(4):
                assert answers[index] == ((LEADER_NOT_AVAILABLE, -1) if index in lost else (OK, 1))
                assert (await produce(connection, "t", b"x", index) == OK) is (index not in lost)
        world.files.heal()
        async with world.running() as (_, connection):
            assert set((await leaders(connection)).values()) == {(OK, 1)}
            for index in range(4):
                assert await produce(connection, "t", b"x", index) == OK

    run(scenario)


def test_a_replica_whose_directory_fails_as_it_is_made_is_lost() -> None:
    async def scenario() -> None:
        world = World(**TWO_DISKS)
        async with world.running() as (node, connection):
            world.files.fail("make_directory", under="/data/t", error=EIO, count=None)
            world.files.fail("make_directory", under="/more/t", error=ENOSPC, count=None)
            assert await create_topic(connection, "t") == OK
            if node.parts.partitions.is_postponed("t", 0):
                pytest.skip("the directory that is only full was chosen")
            assert await told(node, 0) == DIRECTORY_LOST
            assert (await leaders(connection))[0] == (LEADER_NOT_AVAILABLE, -1)

    run(scenario)


def test_what_there_is_no_room_for_is_told_of_once_it_is_there() -> None:
    async def scenario() -> None:
        world = World(**TWO_DISKS)
        async with world.running() as (node, connection):
            world.files.fail("make_directory", error=ENOSPC, count=None)
            assert await create_topic(connection, "t") == OK
            assert node.parts.partitions.is_postponed("t", 0)
            world.files.heal()
            node.parts.partitions.retry_offline_partitions()
            assert await told(node, 0) in directory_ids(node).values()
            assert (await leaders(connection))[0] == (OK, 1)

    run(scenario)


def test_a_refusal_is_not_the_end_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[object] = []
    queued: list[int] = []

    async def scenario() -> None:
        world = World(**TWO_DISKS)
        async with world.running() as (node, connection):
            channel = node.parts.directories._controller
            submit = channel.submit

            async def refuse_first(request: object, message: object) -> object:
                assert request is ASSIGN_REPLICAS_TO_DIRS
                if not refused:
                    refused.append(message)
                    queued.append(node.parts.directories.queued_count)
                    raise KafkaError(ErrorCode.NOT_CONTROLLER)
                return await submit(request, message)

            monkeypatch.setattr(channel, "submit", refuse_first)
            assert await create_topic(connection, "t", 2) == OK
            for index in range(2):
                assert await told(node, index) in directory_ids(node).values()
            assert queued[0] > 0
            await loop_until(lambda: node.parts.directories.queued_count == 0, "the controller was told")

    run(scenario)
    assert refused
