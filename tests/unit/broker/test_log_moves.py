"""A whole node whose logs move between its log directories: requests, metadata, failures, starts (KIP-113, KIP-858)."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i32
from memory_node import World, create_topic, describe, end_offset, produce, run
from waiting import ask_until, loop_until

from penstock.broker.node import assignments_manager
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NodeId
from penstock.storage.directories import log_mover

OK = ErrorCode.NONE
DATA, MORE = "/data", "/more"


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments_manager, "RETRY_S", 0.01)
    monkeypatch.setattr(log_mover, "_LOOK_S", 0.02)
    monkeypatch.setattr(log_mover, "_RETRY_S", 0.02)


async def alter(connection: Connection, path: str, topic: str = "t") -> ErrorCode:
    wanted = AlterReplicaLogDirTopic(name=TopicName(topic), partitions=(i32(0),))
    answer: Any = await connection.call(
        AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(wanted,)),))
    )
    return ErrorCode(int(answer.results[0].partitions[0].error_code))


async def places(connection: Connection) -> dict[str, list[tuple[bool, int]]]:
    """Of all logs: whether they are future ones, and their lags, by their directory."""
    answer: Any = await connection.call(DescribeLogDirsRequest(topics=None))
    return {
        one.log_dir: [(part.is_future_key, part.offset_lag) for topic in one.topics for part in topic.partitions]
        for one in answer.results
    }


def path_of(node: Node, topic: str = "t") -> str:
    return node.parts.partitions.get_online(topic, 0).log.directory.rpartition("/")[0]


def other(path: str) -> str:
    return MORE if path == DATA else DATA


def directory_id(node: Node, path: str) -> UUID:
    (found,) = [one.id for one in node.directories if one.path == path]
    return found


def assigned(node: Node) -> UUID:
    registration = node.metadata.image.topics.partition("t", 0)
    assert registration is not None
    return registration.directory_of(NodeId(1))


async def moved(node: Node, path: str) -> None:
    await loop_until(
        lambda: path_of(node) == path and assigned(node) == directory_id(node, path), "the log in the other directory"
    )


def test_a_log_moves_under_produce_and_stays_moved() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}")
        async with world.running() as (node, connection):
            sent, target = await move_under_produce(node, connection)
            assert (await places(connection))[target] == [(False, 0)]
            assert (await places(connection))[other(target)] == []
            # It is there already.
            assert await alter(connection, target) == OK
        async with world.running() as (node, connection):
            assert path_of(node) == target
            assert await end_offset(connection, "t") == sent

    run(scenario)


def test_a_loss_of_power_right_after_a_move_loses_nothing_that_was_synced() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}", metadata_log_dir="/meta")
        async with world.losing_power() as (node, connection):
            sent, target = await move_under_produce(node, connection, flush_messages="1")
        async with world.running() as (node, connection):
            assert await end_offset(connection, "t") == sent
            await moved(node, target)

    run(scenario)


async def move_under_produce(node: Node, connection: Connection, flush_messages: str = "10000") -> tuple[int, str]:
    """How many records there are, and where."""
    assert await create_topic(connection, "t", flush_messages=flush_messages) == OK
    for number in range(60):
        assert await produce(connection, "t", b"%d" % number) == OK
    target = other(path_of(node))
    assert await alter(connection, target) == OK
    sent = 60
    while path_of(node) != target:
        assert await produce(connection, "t", b"%d" % sent) == OK
        sent += 1
    await moved(node, target)
    assert await produce(connection, "t", b"last") == OK
    assert await end_offset(connection, "t") == sent + 1
    return sent + 1, target


def test_a_move_is_shown_throttled_and_cancelled() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}")
        async with world.running() as (node, connection):
            node.parts.configs.in_effect = {"replica.alter.log.dirs.io.max.bytes.per.second": "0"}
            assert await create_topic(connection, "t") == OK
            assert await produce(connection, "t", b"x" * 100) == OK
            source = path_of(node)
            target = other(source)
            assert await alter(connection, target) == OK
            assert await places(connection) == {source: [(False, 0)], target: [(True, 1)]}
            await asyncio.sleep(0)
            assert await alter(connection, source) == OK
            assert await places(connection) == {source: [(False, 0)], target: []}
            assert await alter(connection, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
            assert await alter(connection, target, "none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert assigned(node) in (directory_id(node, source), UUID(int=0))

    run(scenario)


def test_a_directory_that_fails_under_a_move_leaves_the_log_where_it_is() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t") == OK
            for number in range(20):
                assert await produce(connection, "t", b"%d" % number) == OK
            source = path_of(node)
            world.files.fail(under=other(source), count=None, skip=3)
            assert await alter(connection, other(source)) == OK
            await loop_until(lambda: len(node.directories.online) == 1, "the directory offline")
            assert await produce(connection, "t", b"more") == OK
            assert await alter(connection, other(source)) == ErrorCode.KAFKA_STORAGE_ERROR
            assert (path_of(node), await end_offset(connection, "t")) == (source, 21)
        world.files.heal()
        async with world.running() as (node, connection):
            # The operator's request has outlived it, in the folder of the copy.
            await moved(node, other(source))
            assert await end_offset(connection, "t") == 21

    run(scenario)


# A directory that comes back


async def leader(connection: Connection) -> int:
    return int((await describe(connection, "t")).topics[0].partitions[0].leader_id)


async def failed(world: World) -> str:
    """A node whose directory with the only log has failed: which one."""
    async with world.running() as (node, connection):
        assert await create_topic(connection, "t") == OK
        assert await produce(connection, "t", b"kept") == OK
        path = path_of(node)
        await loop_until(lambda: assigned(node) == directory_id(node, path), "the directory of the replica")
        world.files.fail(under=path, count=None)
        assert await produce(connection, "t", b"lost") == ErrorCode.KAFKA_STORAGE_ERROR
        await ask_until(lambda: leader(connection), lambda found: found == -1, "no leader")
    return path


def test_a_directory_that_is_mounted_again_has_its_replicas_at_the_next_start() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}", metadata_log_dir="/meta")
        path = await failed(world)
        async with world.running() as (node, connection):
            # Still away: the node serves what it has, and makes nothing anew.
            assert [one.path for one in node.directories.online] == [other(path)]
            assert await leader(connection) == -1
        world.files.heal()
        async with world.running() as (node, connection):
            assert await leader(connection) == 1
            assert (path_of(node), await end_offset(connection, "t")) == (path, 1)
            assert await produce(connection, "t", b"more") == OK

    run(scenario)


def test_an_empty_disk_in_its_place_does_not_pass_for_the_records() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}", metadata_log_dir="/meta")
        path = await failed(world)
        world.files.heal()
        world.files.remove_tree(path)
        async with world.running() as (node, connection):
            assert len(node.directories.online) == 2
            # The only replica is empty: none leads until an operator decides.
            assert await leader(connection) == -1
            assert await produce(connection, "t", b"x") != OK

    run(scenario)


def test_files_that_are_missing_in_a_repaired_directory_are_not_made_up() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}", metadata_log_dir="/meta")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t", flush_messages="1") == OK
            assert await produce(connection, "t", b"kept") == OK
            folder = node.parts.partitions.get_online("t", 0).log.directory
            path = path_of(node)
            await loop_until(lambda: assigned(node) == directory_id(node, path), "the directory of the replica")
        world.files.remove(f"{folder}/{'0' * 20}.log")
        async with world.running() as (node, connection):
            assert await produce(connection, "t", b"x") == ErrorCode.KAFKA_STORAGE_ERROR
            assert node.parts.partitions.offline_count == 1

    run(scenario)
