"""ConsumerGroupHeartbeat and ConsumerGroupDescribe of a whole node, and what other APIs tell of consumer groups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.types import GroupId, TopicName
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16, i32, i32Timedelta
from memory_node import MINUTE, World, create_topic, run
from produced_batches import produced
from waiting import ask_until

from penstock.broker.coordination.key_partitions import partition_of_key
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode
from penstock.protocol.records import Record, write_batch
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOT_SAID = i32Timedelta.parse(timedelta(milliseconds=-1))
UPGRADE = i8(1)
UNSAFE_DOWNGRADE = i8(3)


def world(offsets_partitions: int = 1) -> World:
    return World(
        offsets_topic_num_partitions=str(offsets_partitions),
        group_consumer_assignors="range,uniform",
        group_consumer_assignment_interval_ms="0",
    )


async def prepare(connection: Connection) -> None:
    """A topic, and groups that can be coordinated."""
    assert await create_topic(connection, "topic", 2) is ErrorCode.NONE
    await connection.call(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("group",)))


async def beat(connection: Connection, epoch: int, *, regex: str | None = None, member: str = "member") -> Any:
    is_joining = epoch == 0
    return await connection.call(
        ConsumerGroupHeartbeatRequest(
            group_id=GroupId("group"),
            member_id=member,
            member_epoch=i32(epoch),
            rebalance_timeout=MINUTE if is_joining else NOT_SAID,
            subscribed_topic_names=(TopicName("topic"),) if is_joining else None,
            subscribed_topic_regex=regex,
            topic_partitions=() if is_joining else None,
        )
    )


async def describe(connection: Connection, *groups: str) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=tuple(map(GroupId, groups)), include_authorized_operations=True)
    response: Any = await connection.call(request)
    return response.groups


def test_a_group_is_described_with_its_members_and_both_assignments() -> None:
    async def scenario() -> None:
        async with world().running() as (_, connection):
            await prepare(connection)
            joined = await beat(connection, 0)
            assert joined.error_code == 0
            assert joined.member_epoch == 2
            described, unknown = await describe(connection, "group", "other")
            assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
            assert described.assignor_name == "range"
            assert described.authorized_operations > 0
            (member,) = described.members
            assert (member.member_id, member.member_epoch, member.member_type) == ("member", 2, 1)
            assert member.subscribed_topic_names == ("topic",)
            assert member.subscribed_topic_regex == ""
            for assignment in (member.assignment, member.target_assignment):
                (topic,) = assignment.topic_partitions
                assert (topic.topic_name, topic.partitions) == ("topic", (0, 1))
            assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert unknown.error_message == "Group other not found."

    run(scenario)


def test_what_a_member_gives_up_it_is_shown_to_have() -> None:
    async def scenario() -> None:
        async with world().running() as (_, connection):
            await prepare(connection)
            await beat(connection, 0)
            await beat(connection, 0, member="second")
            told = await beat(connection, 2)
            assert len(told.assignment.topic_partitions[0].partitions) == 1
            (described,) = await describe(connection, "group")
            first, second = described.members
            assert described.group_state == "Reconciling"
            assert first.assignment.topic_partitions[0].partitions == (0, 1)
            assert len(first.target_assignment.topic_partitions[0].partitions) == 1
            assert second.assignment.topic_partitions == ()

    run(scenario)


def test_other_apis_tell_what_kind_of_group_it_is() -> None:
    async def scenario() -> None:
        async with world().running() as (_, connection):
            await prepare(connection)
            await beat(connection, 0)
            for states, types, expected in [
                ((), (), ["group"]),
                (("stable",), ("consumer",), ["group"]),
                (("Empty",), (), []),
                ((), ("classic",), []),
            ]:
                listed: Any = await connection.call(ListGroupsRequest(states_filter=states, types_filter=types))
                assert [group.group_id for group in listed.groups] == expected
                for group in listed.groups:
                    assert (group.group_type, group.group_state, group.protocol_type) == (
                        "consumer",
                        "Stable",
                        "consumer",
                    )
            told: Any = await connection.call(
                DescribeGroupsRequest(groups=(GroupId("group"),), include_authorized_operations=False)
            )
            assert told.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert told.groups[0].error_message == "Group group is not a classic group."
            assert told.groups[0].group_state == "Dead"
            for epoch, error in [(2, ErrorCode.NONE), (1, ErrorCode.STALE_MEMBER_EPOCH)]:
                wanted = OffsetFetchRequestGroup(
                    group_id=GroupId("group"), member_id="member", member_epoch=i32(epoch), topics=None
                )
                fetched: Any = await connection.call(OffsetFetchRequest(groups=(wanted,), require_stable=False))
                assert fetched.groups[0].error_code == error

    run(scenario)


def test_an_error_is_told_with_a_sentence() -> None:
    async def scenario() -> None:
        async with world().running() as (_, connection):
            await prepare(connection)
            refused = await beat(connection, 0, regex="(")
            assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
            assert "missing )" in refused.error_message
            unknown = await beat(connection, 5)
            assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert unknown.error_message == "Consumer group group not found."

    run(scenario)


def test_an_expression_is_resolved_beside_the_loop() -> None:
    async def scenario() -> None:
        async with world().running() as (_, connection):
            await prepare(connection)
            assert await create_topic(connection, "topic-too") is ErrorCode.NONE
            epoch = int((await beat(connection, 0, regex="topic-.*")).member_epoch)

            async def beat_again() -> Any:
                nonlocal epoch
                response = await beat(connection, epoch)
                assert response.error_code == 0
                epoch = int(response.member_epoch)
                return response.assignment

            await ask_until(
                beat_again,
                lambda assignment: assignment is not None and len(assignment.topic_partitions) == 2,
                "both topics that the expression names",
            )

    run(scenario)


def test_below_group_version_1_there_are_no_consumer_groups() -> None:
    async def scenario() -> None:
        async with world().running() as (_, connection):
            await prepare(connection)
            for level, kind, error in [
                (0, UNSAFE_DOWNGRADE, ErrorCode.UNSUPPORTED_VERSION),
                (1, UPGRADE, ErrorCode.NONE),
            ]:
                update = FeatureUpdateKey(feature="group.version", max_version_level=i16(level), upgrade_type=kind)
                updated: Any = await connection.call(
                    UpdateFeaturesRequest(timeout=MINUTE, feature_updates=(update,), validate_only=False)
                )
                assert updated.error_code == 0, updated
                assert (await beat(connection, 0)).error_code == error
                (described,) = await describe(connection, "group")
                assert described.error_code == error

    run(scenario)


@pytest.mark.parametrize(
    ("protocols", "error"),
    [
        ("classic", ErrorCode.UNSUPPORTED_VERSION),
        ("classic,share,streams", ErrorCode.UNSUPPORTED_VERSION),
        ("consumer,classic", ErrorCode.NONE),
    ],
)
def test_without_the_consumer_protocol_its_apis_are_not_supported(protocols: str, error: ErrorCode) -> None:
    async def scenario() -> None:
        async with world().running(group_coordinator_rebalance_protocols=protocols) as (_, connection):
            await prepare(connection)
            told = await beat(connection, 0)
            assert (told.error_code, told.error_message) == (error, None)
            for described in await describe(connection, "group", "group"):
                assert (described.error_code, described.error_message) == (error, None)

    run(scenario)


def test_groups_are_listed_without_those_of_a_partition_that_cannot_be_read() -> None:
    async def scenario() -> None:
        there = world(2)
        async with there.running() as (_, connection):
            await prepare(connection)
            await beat(connection, 0)
        spoil(there, 1 - partition_of_key("group", 2))
        async with there.running() as (_, connection):
            listed: Any = await ask_until(
                lambda: connection.call(ListGroupsRequest(states_filter=(), types_filter=())),
                lambda listed: listed.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "a coordinator that has read its log",
            )
            assert listed.error_code == ErrorCode.NONE
            assert [group.group_id for group in listed.groups] == ["group"]

    run(scenario)


def spoil(there: World, index: int) -> None:
    """A record without a key, which no coordinator writes."""
    log = Log.open(
        there.files,
        f"/data/__consumer_offsets-{index}",
        topic="__consumer_offsets",
        partition=index,
        topic_id=None,
        is_identified=True,
        config=LogConfig(),
        is_clean=True,
        now_ms=there.now_ms,
    )
    log.append_as_leader(
        produced(write_batch([Record(0, there.now_ms, None, b"")])), leader_epoch=0, now_ms=there.now_ms
    )
    log.flush()
    log.close()
