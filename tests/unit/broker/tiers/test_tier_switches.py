"""Configs of tiered storage: what is switched on and off, stopped and refused (KIP-405, KIP-950)."""

from __future__ import annotations

import pytest
from memory_node import World, create_topic, run
from memory_tier import MemoryTier
from tiered_node import ONE_SEGMENT, PER_SEGMENT, TOPIC, TieredWorld, alter, log_of, offset_for, read_offsets, write
from waiting import loop_until

from penstock.broker.configuration.node_config import load
from penstock.protocol.errors import ConfigError, ErrorCode


def test_copying_can_be_stopped_and_what_is_up_there_is_read(tier: MemoryTier) -> None:
    """KIP-950: `remote.log.copy.disable`."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 9, "local retention")
            assert await alter(connection, remote_log_copy_disable="true") is ErrorCode.INVALID_CONFIG
            changed = await alter(connection, remote_log_copy_disable="true", local_retention_bytes="-2")
            assert changed is ErrorCode.NONE
            for _ in range(3 * PER_SEGMENT):
                await write(world, connection)
            assert await read_offsets(connection, 0, 19) == list(range(19))
            assert tier.logs() == [0, 3, 6]

    run(scenario)


def test_switching_the_tier_off_asks_for_deletion_and_deletes(tier: MemoryTier) -> None:
    """KIP-950: `remote.log.delete.on.disable`."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            log = log_of(node)
            await loop_until(lambda: log.local_log_start_offset == 9, "local retention")
            assert await alter(connection, remote_storage_enable="false") is ErrorCode.INVALID_CONFIG
            changed = await alter(connection, remote_storage_enable="false", remote_log_delete_on_disable="true")
            assert changed is ErrorCode.NONE
            await loop_until(lambda: not tier.objects, "an empty tier")
            await loop_until(lambda: log.log_start_offset == 9, "the log starts on the disk")
            assert await offset_for(connection, -2) == 9

    run(scenario)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"cleanup_policy": "compact"}, ErrorCode.INVALID_CONFIG),
        ({"retention_ms": "10", "local_retention_ms": "11"}, ErrorCode.INVALID_CONFIG),
        ({"retention_bytes": "10", "local_retention_bytes": "-1"}, ErrorCode.INVALID_CONFIG),
        ({"retention_ms": "10", "local_retention_ms": "10"}, ErrorCode.NONE),
    ],
)
def test_configs_that_cannot_be_together_are_refused(
    tier: MemoryTier, configs: dict[str, str], expected: ErrorCode
) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.running() as (_, connection):
            assert await create_topic(connection, TOPIC, 1, remote_storage_enable="true", **configs) is expected

    run(scenario)


def test_a_node_without_its_tier_does_not_start(tier: MemoryTier) -> None:
    """Else its logs would start on its disk, and what the tier has would be deleted."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(1):
            pass
        node = world.node(remote_log_storage_system_enable="false")
        with pytest.raises(ConfigError, match="You have to delete all topics"):
            await node.start()

    run(scenario)


def test_topics_have_no_tier_where_the_node_has_none() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            assert await create_topic(connection, TOPIC, remote_storage_enable="true") is ErrorCode.INVALID_CONFIG

    run(scenario)


def test_a_tier_without_a_url_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"remote.log.storage.url must say where the tier is"):
        load({"remote.log.storage.system.enable": "true"})
