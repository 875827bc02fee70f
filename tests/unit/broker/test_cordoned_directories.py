"""A whole node with cordoned log directories: where logs are made, what requests are told (KIP-1066)."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32
from memory_node import World, create_topic, run
from waiting import loop_until

from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.client.connection import Connection
from penstock.protocol.errors import ConfigError, ErrorCode

DATA, MORE = "/data", "/more"
BROKER = 4


async def cordon(connection: Connection, value: str) -> ErrorCode:
    config = AlterableConfig(name="cordoned.log.dirs", config_operation=i8(0), value=value)
    resource = AlterConfigsResource(resource_type=i8(BROKER), resource_name="1", configs=(config,))
    answer: Any = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    return ErrorCode(int(answer.responses[0].error_code))


async def alter(connection: Connection, path: str, topic: str) -> ErrorCode:
    wanted = AlterReplicaLogDirTopic(name=TopicName(topic), partitions=(i32(0),))
    answer: Any = await connection.call(
        AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(wanted,)),))
    )
    return ErrorCode(int(answer.results[0].partitions[0].error_code))


async def cordoned(connection: Connection) -> dict[str, bool]:
    answer: Any = await connection.call(DescribeLogDirsRequest(topics=None))
    return {one.log_dir: one.is_cordoned for one in answer.results}


def path_of(node: Node, topic: str, index: int = 0) -> str:
    return node.parts.partitions.get_online(topic, index).log.directory.rpartition("/")[0]


async def told(node: Node, count: int) -> None:
    await loop_until(
        lambda: len(node.metadata.image.brokers[1].cordoned_directories) == count, "what the controller was told"
    )


def test_new_replicas_go_where_nothing_is_cordoned() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "before", 2) == ErrorCode.NONE
            assert {path_of(node, "before", index) for index in range(2)} == {DATA, MORE}
            assert await cordon(connection, MORE) == ErrorCode.NONE
            await told(node, 1)
            assert await cordoned(connection) == {DATA: False, MORE: True}
            assert await create_topic(connection, "after", 4) == ErrorCode.NONE
            assert {path_of(node, "after", index) for index in range(4)} == {DATA}
            # Those that are there stay.
            assert {path_of(node, "before", index) for index in range(2)} == {DATA, MORE}
            assert await alter(connection, MORE, "after") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert await alter(connection, MORE, "not-here-yet") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        async with world.running() as (node, connection):
            await told(node, 1)
            assert await cordoned(connection) == {DATA: False, MORE: True}
            assert await cordon(connection, "") == ErrorCode.NONE
            await told(node, 0)
            assert await alter(connection, MORE, "after") == ErrorCode.NONE

    run(scenario)


def test_a_node_with_all_directories_cordoned_takes_no_topic() -> None:
    async def scenario() -> None:
        world = World(log_dirs=f"{DATA},{MORE}", cordoned_log_dirs="*")
        async with world.running() as (node, connection):
            await told(node, 2)
            assert await create_topic(connection, "t") == ErrorCode.INVALID_REPLICATION_FACTOR
            assert await cordon(connection, DATA) == ErrorCode.NONE
            await told(node, 1)
            assert await create_topic(connection, "t") == ErrorCode.NONE
            assert path_of(node, "t") == MORE
            assert await cordon(connection, "/nowhere") != ErrorCode.NONE

    run(scenario)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("/nowhere", "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries: /nowh"),
        ("*,/data", "When cordoned.log.dirs is set to *, it must not contain other values"),
    ],
)
def test_what_cannot_be_cordoned_is_refused_at_the_start(value: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence.replace("*", r"\*")):
        load({"log.dirs": "/data", "cordoned.log.dirs": value})


def test_a_slash_at_the_end_makes_no_difference() -> None:
    assert load({"log.dirs": "/data/,/more", "cordoned.log.dirs": "/data,/more/"}).cordoned_log_dirs == (DATA, MORE)
