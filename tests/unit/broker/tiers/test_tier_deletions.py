"""Deletion in the tier: by retention, with deleted records, and with the topic (KIP-405)."""

from __future__ import annotations

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName
from memory_node import MINUTE, run
from memory_tier import MemoryTier
from tiered_node import (
    ONE_SEGMENT,
    PER_SEGMENT,
    TOPIC,
    TieredWorld,
    alter,
    delete_records,
    fetch,
    log_of,
    read_offsets,
    write,
)
from waiting import loop_until

from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import kio_error


def test_retention_goes_on_where_a_copy_fails(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 9, "local retention")
            tier.fails = lambda call, _key: call == "put"
            for _ in range(PER_SEGMENT):
                await write(world, connection)
            await loop_until(lambda: world.failed_copies(node) > 2, "copies that fail")
            await delete_records(connection, 7)
            await loop_until(lambda: tier.logs() == [6], "deletion")

    run(scenario)


def test_retention_by_size_deletes_in_the_tier_and_moves_the_log_start(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(6, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 18, "local retention")
            size = sum(len(content) for key, content in tier.objects.items() if key.endswith(".log")) // 6
            assert await alter(connection, retention_bytes=str(3 * size)) is ErrorCode.NONE
            await loop_until(lambda: tier.logs() == [12, 15] or tier.logs() == [9, 12, 15], "retention")
            await loop_until(lambda: log_of(node).log_start_offset == tier.logs()[0], "the log start")
            assert (await fetch(connection, 0)).error_code == kio_error(ErrorCode.OFFSET_OUT_OF_RANGE)
            start = log_of(node).log_start_offset
            assert await read_offsets(connection, start, 19) == list(range(start, 19))

    run(scenario)


def test_records_that_were_deleted_before_they_were_copied_leave_no_gap(tier: MemoryTier) -> None:
    """The log start lasts before a segment goes for it: else the log would begin with the tier's, and miss the next."""
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.losing_power() as (node, connection):
            await world.fill(connection, 2, **ONE_SEGMENT, flush_messages="1")
            log = log_of(node)
            await loop_until(lambda: log.tiered_end_offset == 6, "copies")
            tier.fails = lambda _call, _key: True
            for _ in range(3 * PER_SEGMENT):
                await write(world, connection)
            await delete_records(connection, 14)
            await loop_until(lambda: log.first_segment_base_offset == 12, "deletion")
        tier.fails = lambda _call, _key: False
        async with world.running() as (node, connection):
            assert log_of(node).log_start_offset == 14
            assert await read_offsets(connection, 14, 16) == [14, 15]

    run(scenario)


def test_deleted_records_leave_the_tier(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(4, **ONE_SEGMENT) as (node, connection):
            await loop_until(lambda: log_of(node).local_log_start_offset == 12, "local retention")
            await delete_records(connection, 7)
            await loop_until(lambda: tier.logs() == [6, 9], "deletion")
            assert (await read_offsets(connection, 7, 13))[-6:] == list(range(7, 13))

    run(scenario)


def test_deleting_the_topic_empties_the_tier_after_an_outage_too(tier: MemoryTier) -> None:
    world = TieredWorld(tier)

    async def scenario() -> None:
        async with world.tiered(3) as (_, connection):
            await loop_until(lambda: len(tier.logs()) == 3, "copies")
            # A leader that did not know of the next one's deletion came late with this.
            tier.objects[min(tier.objects).replace("/0/", "/0/late-")] = b""
            tier.fails = lambda call, _key: call == "delete"
            topic = DeleteTopicState(name=TopicName(TOPIC), topic_id=None)
            await connection.call(DeleteTopicsRequest(topics=(topic,), timeout=MINUTE))
            await loop_until(lambda: any(call == "delete" for call, _ in tier.calls), "a deletion that fails")
        assert len(tier.logs()) == 3
        tier.fails = lambda _call, _key: False
        async with world.running():
            await loop_until(lambda: not tier.objects, "an empty tier")

    run(scenario)
