"""Offsets and lags in the names of kafka_exporter: by leaders and coordinators, over three nodes, bounded."""

from __future__ import annotations

import asyncio

import pytest
from exposed_metrics import Samples, exposed
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v9.response import OffsetCommitResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64
from memory_node import World as OneNode
from memory_node import create_topic, produce
from memory_node import run as run_one
from replicating_nodes import TOPIC, World, create, leads, produce_some, run
from waiting import ask_until, loop_until

from penstock.broker.configuration.penstock_keys import METRICS_KAFKA_EXPORTER
from penstock.broker.metrics.lag_reader import GroupLagReader, PartitionOffsetReader
from penstock.broker.metrics.metrics import Metrics
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

BROKER_RESOURCE = 4
SET = 0
GROUP = "billing"
GROUP_KEY = i8(0)
LAG = "kafka_consumergroup_lag"
COMMITTED = "kafka_consumergroup_current_offset"
END = "kafka_topic_partition_current_offset"


async def switch(connection: Connection, value: str) -> None:
    config = AlterableConfig(name=METRICS_KAFKA_EXPORTER, config_operation=i8(SET), value=value)
    resource = AlterConfigsResource(resource_type=i8(BROKER_RESOURCE), resource_name="", configs=(config,))
    await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))


async def commit(connection: Connection, topic: str, *offsets: int) -> ErrorCode:
    """Without members, as administrators do; one partition after the other."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=i32(index), committed_offset=i64(offset), committed_metadata=None)
        for index, offset in enumerate(offsets)
    )
    answer = await connection.call(
        OffsetCommitRequest(
            group_id=GroupId(GROUP),
            generation_id_or_member_epoch=i32(-1),
            member_id="",
            topics=(OffsetCommitRequestTopic(name=TopicName(topic), partitions=partitions),),
        )
    )
    assert isinstance(answer, OffsetCommitResponse)
    return ErrorCode(int(answer.topics[0].partitions[0].error_code))


async def commit_when_loaded(connection: Connection, topic: str, *offsets: int) -> None:
    await connection.call(FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=(GROUP,)))
    await ask_until(lambda: commit(connection, topic, *offsets), lambda error: error is ErrorCode.NONE)


def test_groups_and_partitions_have_series_only_while_that_is_switched_on() -> None:
    async def scenario() -> None:
        async with OneNode().running() as (node, connection):
            await create_topic(connection, "t", 2)
            for _ in range(5):
                assert await produce(connection, "t", b"x") is ErrorCode.NONE
            await commit_when_loaded(connection, "t", 2, 0)
            assert (await exposed(node)).labels(LAG) == []
            await switch(connection, "true")
            samples = await exposed(node)
            assert samples.value(COMMITTED, consumergroup=GROUP, topic="t", partition="0") == 2
            assert samples.value(f"{COMMITTED}_sum", consumergroup=GROUP, topic="t") == 2
            assert samples.value(LAG, consumergroup=GROUP, topic="t", partition="0") == 3
            assert samples.value(LAG, consumergroup=GROUP, topic="t", partition="1") == 0
            assert samples.value(f"{LAG}_sum", consumergroup=GROUP, topic="t") == 3
            assert samples.value("kafka_consumergroup_members", consumergroup=GROUP) == 0
            assert samples.value(END, topic="t", partition="0") == 5
            assert samples.value("kafka_topic_partition_oldest_offset", topic="t", partition="0") == 0
            assert samples.value("kafka_topic_partition_leader_is_preferred", topic="t", partition="0") == 1
            assert samples.value("kafka_topic_partitions", topic="t") == 2
            assert samples.value("kafka_brokers") == 1
            await switch(connection, "false")
            off = await exposed(node)
            assert [off.labels(name) for name in (LAG, COMMITTED, END, "kafka_brokers")] == [[]] * 4

    run_one(scenario)


def test_series_beyond_the_bound_are_counted() -> None:
    async def scenario() -> None:
        async with OneNode().running() as (node, connection):
            await create_topic(connection, "t", 3)
            await commit_when_loaded(connection, "t", 0, 0, 0)
            metrics = Metrics(asyncio.get_running_loop(), 1)
            lags = GroupLagReader(
                node.parts.groups,
                node.parts.partitions,
                node.parts.admin_channel,
                is_enabled=lambda: True,
                now_ms=lambda: 0,
                offsets_max=2,
            )
            metrics.add_preparation(lags.prepare)
            metrics.add_reader(lags)
            metrics.add_reader(
                PartitionOffsetReader(node.parts.partitions, node.metadata, is_enabled=lambda: True, partitions_max=1)
            )
            samples = Samples((await metrics.exposition(None))[0].decode())
            assert len(samples.labels(COMMITTED)) == len(samples.labels(LAG)) == 2
            assert samples.value("penstock_metrics_hidden_group_offsets") == 1
            assert len(samples.labels(END)) == 1
            led = samples.value("penstock_metrics_hidden_led_partitions") + 1
            assert led == len(list(node.parts.partitions.hosted))

    run_one(scenario)


async def coordinator_of(world: World) -> int:
    """The broker that coordinates the group."""
    async with world.asking(1) as connection:

        async def find() -> int:
            answer = await connection.call(FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=(GROUP,)))
            assert isinstance(answer, FindCoordinatorResponse)
            return int(answer.coordinators[0].node_id)

        return await ask_until(find, lambda node_id: node_id in world.nodes)


@pytest.mark.thorough
def test_a_coordinator_asks_the_leader_and_each_series_is_told_once() -> None:
    async def scenario(world: World) -> None:
        coordinator = await coordinator_of(world)
        # Not node 1, which is the controller.
        leader = next(one for one in (2, 3) if one != coordinator)
        async with world.asking(leader) as connection:
            await create(connection, leader)
            await switch(connection, "true")
            await loop_until(lambda: leads(world, leader), "the leader leads")
            await produce_some(connection, 7)
        async with world.asking(coordinator) as connection:
            await commit_when_loaded(connection, TOPIC, 4)
        labels = {"topic": TOPIC, "partition": "0"}
        told = {node_id: await exposed(node) for node_id, node in world.nodes.items()}
        assert told[coordinator].value(LAG, consumergroup=GROUP, **labels) == 3
        assert told[leader].value(END, **labels) == 7
        for node_id, samples in told.items():
            assert bool(samples.labels(LAG)) is (node_id == coordinator)
            assert (labels in samples.labels(END)) is (node_id == leader)
            assert samples.value("kafka_brokers") == 3
        await world.stop(leader)
        # Answers of leaders are kept for a second.
        last = await ask_until(lambda: exposed(world.nodes[coordinator]), lambda samples: not samples.labels(LAG))
        assert last.value(COMMITTED, consumergroup=GROUP, **labels) == 4

    run(scenario)
