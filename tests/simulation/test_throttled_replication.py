"""A replica is moved under a throttle, and goes on at full speed when that is removed (KIP-73)."""

from __future__ import annotations

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32
from memory_node import MINUTE, produce
from replicating_nodes import TOPIC, World, create, run
from waiting import loop_until

from penstock.broker.replication.rules.replication_quota import ReplicationQuota
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

SET, DELETE = i8(0), i8(1)
TOPIC_RESOURCE, BROKER_RESOURCE = i8(2), i8(4)
RATE = "1000"
# More than one fetch takes.
BATCHES, BATCH_BYTES = 12, 250_000
LEADER, NEW = 2, 3
ANSWERS = 3


async def alter(connection: Connection, kind: i8, name: str, key: str, value: str | None) -> None:
    config = AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))
    response = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert ErrorCode(int(response.responses[0].error_code)) is ErrorCode.NONE


async def reassign(connection: Connection, *replicas: int) -> None:
    partition = ReassignablePartition(partition_index=i32(0), replicas=tuple(map(BrokerId, replicas)))
    topic = ReassignableTopic(name=TopicName(TOPIC), partitions=(partition,))
    response = await connection.call(AlterPartitionReassignmentsRequest(timeout=MINUTE, topics=(topic,)))
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    assert ErrorCode(int(response.responses[0].partitions[0].error_code)) is ErrorCode.NONE


def log_end(world: World) -> int:
    partition = world.hosted(NEW)
    return 0 if partition is None else partition.log.log_end_offset


@pytest.mark.parametrize(("role", "node_id"), [("leader", LEADER), ("follower", NEW)])
def test_a_move_is_slow_while_it_is_throttled_and_fast_afterwards(
    role: str, node_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_back = 0
    is_exceeded = ReplicationQuota.is_exceeded

    def count(quota: ReplicationQuota, now_ms: int) -> bool:
        nonlocal held_back
        found = is_exceeded(quota, now_ms)
        held_back += found
        return found

    monkeypatch.setattr(ReplicationQuota, "is_exceeded", count)

    async def scenario(world: World) -> None:
        async with world.asking(LEADER) as leader, world.asking(node_id) as throttled:
            await create(leader, LEADER)
            for _ in range(BATCHES):
                assert await produce(leader, TOPIC, bytes(BATCH_BYTES)) is ErrorCode.NONE
            await alter(throttled, BROKER_RESOURCE, str(node_id), f"{role}.replication.throttled.rate", RATE)
            key = f"{role}.replication.throttled.replicas"
            await alter(leader, TOPIC_RESOURCE, TOPIC, key, f"0:{node_id}")
            await reassign(leader, LEADER, NEW)
            await loop_until(lambda: log_end(world) > 0, "first records")
            held_back_before = held_back
            await loop_until(lambda: held_back >= held_back_before + ANSWERS, "answers without records")
            assert 0 < log_end(world) < BATCHES
            await alter(leader, TOPIC_RESOURCE, TOPIC, key, None)
            await alter(throttled, BROKER_RESOURCE, str(node_id), f"{role}.replication.throttled.rate", None)
            await world.wait_in_sync(LEADER, NEW)
        await world.wait_equal(LEADER, NEW)

    run(scenario)
