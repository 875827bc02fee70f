"""What a client must be allowed for each API of groups, and what it does not see: `KafkaApis` of Apache Kafka 4.3.1."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_commit.v9 import request as commit_by_name
from kio.schema.offset_commit.v10 import request as commit_by_id
from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kio.schema.offset_fetch.v9 import request as fetch_by_name
from kio.schema.offset_fetch.v10 import request as fetch_by_id
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import create_topic, describe, ready_coordinator, run
from permission_cases import (
    Administrator,
    Case,
    Codes,
    Permission,
    check_case,
    cluster,
    group,
    guarded_node,
    of_partitions,
    top_level,
    topic,
    transactional_id,
)

from penstock.broker.security.authorizer import LOGGER
from penstock.client.connection import Connection
from penstock.protocol.acls import AclOperation
from penstock.protocol.errors import ErrorCode

NONE = ErrorCode.NONE
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_ID
READ, WRITE, DESCRIBE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DELETE
MINUTE = i32Timedelta.parse(timedelta(minutes=1))
G, MISSING = GroupId("g"), UUID(int=7)
NAMES = ("a", "b", "missing")
READS_GROUP: Permission = group(READ, "g")


def of_group(answer: Any) -> Codes:
    """Of the one group: its error, or those of its partitions."""
    (only,) = answer.groups
    code = ErrorCode(int(only.error_code))
    return [code] if code else [ErrorCode(int(one.error_code)) for each in only.topics for one in each.partitions]


def of_coordinators(answer: Any) -> Codes:
    return [ErrorCode(int(one.error_code)) for one in answer.coordinators]


def of_results(answer: Any) -> Codes:
    return [ErrorCode(int(one.error_code)) for one in answer.results]


def of_groups(answer: Any) -> Codes:
    return [ErrorCode(int(one.error_code)) for one in answer.groups]


def commit_named(_ids: dict[str, UUID]) -> Case:
    one = commit_by_name.OffsetCommitRequestPartition(
        partition_index=i32(0), committed_offset=i64(1), committed_metadata=""
    )
    request = commit_by_name.OffsetCommitRequest(
        group_id=G,
        member_id="",
        topics=tuple(
            commit_by_name.OffsetCommitRequestTopic(name=TopicName(name), partitions=(one,)) for name in NAMES
        ),
    )
    return Case(
        request=request,
        codes_of=of_partitions,
        refused=[GROUP] * 3,
        steps=[
            (group(DESCRIBE, "g"), [GROUP] * 3),
            (READS_GROUP, [TOPIC] * 3),
            (topic(DESCRIBE, "a"), [TOPIC] * 3),
            (topic(READ, "a"), [NONE, TOPIC, TOPIC]),
            (topic(READ, "missing"), [NONE, TOPIC, UNKNOWN]),
        ],
    )


def commit_identified(ids: dict[str, UUID]) -> Case:
    one = commit_by_id.OffsetCommitRequestPartition(
        partition_index=i32(0), committed_offset=i64(1), committed_metadata=""
    )
    request = commit_by_id.OffsetCommitRequest(
        group_id=G,
        member_id="",
        topics=tuple(
            commit_by_id.OffsetCommitRequestTopic(topic_id=topic_id, partitions=(one,))
            for topic_id in (ids["a"], ids["b"], MISSING)
        ),
    )
    return Case(
        request=request,
        codes_of=of_partitions,
        refused=[GROUP] * 3,
        steps=[(READS_GROUP, [TOPIC, TOPIC, UNKNOWN_ID]), (topic(READ, "b"), [TOPIC, NONE, UNKNOWN_ID])],
    )


def fetch_named(_ids: dict[str, UUID]) -> Case:
    wanted = fetch_by_name.OffsetFetchRequestGroup(
        group_id=G,
        topics=tuple(
            fetch_by_name.OffsetFetchRequestTopics(name=TopicName(name), partition_indexes=(i32(0),))
            for name in ("b", "a")
        ),
    )
    return Case(
        request=fetch_by_name.OffsetFetchRequest(groups=(wanted,)),
        codes_of=of_group,
        refused=[GROUP],
        steps=[
            (topic(DESCRIBE, "a"), [GROUP]),
            # Those that are seen come first.
            (group(DESCRIBE, "g"), [NONE, TOPIC]),
            (topic(READ, "b"), [NONE, NONE]),
        ],
    )


def fetch_identified(ids: dict[str, UUID]) -> Case:
    wanted = fetch_by_id.OffsetFetchRequestGroup(
        group_id=G,
        topics=tuple(
            fetch_by_id.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(i32(0),))
            for topic_id in (ids["a"], ids["b"], MISSING)
        ),
    )
    return Case(
        request=fetch_by_id.OffsetFetchRequest(groups=(wanted,)),
        codes_of=of_group,
        refused=[GROUP],
        steps=[(READS_GROUP, [TOPIC, TOPIC, UNKNOWN_ID]), (topic(DESCRIBE, "b"), [TOPIC, NONE, UNKNOWN_ID])],
    )


def delete_offsets(_ids: dict[str, UUID]) -> Case:
    one = OffsetDeleteRequestPartition(partition_index=i32(0))
    request = OffsetDeleteRequest(
        group_id=G,
        topics=tuple(OffsetDeleteRequestTopic(name=TopicName(name), partitions=(one,)) for name in NAMES),
    )
    return Case(
        request=request,
        codes_of=lambda answer: top_level(answer) if answer.error_code else of_partitions(answer),
        refused=[GROUP],
        steps=[
            (READS_GROUP, [GROUP]),
            (group(DELETE, "g"), [TOPIC] * 3),
            (topic(READ, "a"), [NONE, TOPIC, TOPIC]),
            (topic(READ, "missing"), [NONE, TOPIC, UNKNOWN]),
        ],
    )


def commit_in_transaction(_ids: dict[str, UUID]) -> Case:
    one = TxnOffsetCommitRequestPartition(partition_index=i32(0), committed_offset=i64(1), committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=TransactionalId("t"),
        group_id=G,
        producer_id=ProducerId(1),
        producer_epoch=i16(0),
        topics=tuple(TxnOffsetCommitRequestTopic(name=TopicName(name), partitions=(one,)) for name in NAMES),
    )
    return Case(
        request=request,
        codes_of=of_partitions,
        refused=[TRANSACTION] * 3,
        steps=[
            (transactional_id(DESCRIBE, "t"), [TRANSACTION] * 3),
            (transactional_id(WRITE, "t"), [GROUP] * 3),
            (READS_GROUP, [TOPIC] * 3),
            (topic(READ, "missing"), [TOPIC, TOPIC, UNKNOWN]),
            # The coordinator's answer: there is no such transaction.
            (topic(READ, "a"), [ErrorCode.INVALID_PRODUCER_ID_MAPPING, TOPIC, UNKNOWN]),
        ],
    )


def join(_ids: dict[str, UUID]) -> Case:
    request = JoinGroupRequest(
        group_id=G,
        session_timeout=MINUTE,
        rebalance_timeout=MINUTE,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    return Case(
        request=request,
        codes_of=top_level,
        refused=[GROUP],
        steps=[(group(DESCRIBE, "g"), [GROUP]), (READS_GROUP, [ErrorCode.MEMBER_ID_REQUIRED])],
    )


def sync(_ids: dict[str, UUID]) -> Case:
    request = SyncGroupRequest(
        group_id=G,
        generation_id=i32(1),
        member_id="m",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
    )
    return Case(
        request=request,
        codes_of=top_level,
        refused=[GROUP],
        steps=[(group(DESCRIBE, "g"), [GROUP]), (READS_GROUP, [ErrorCode.UNKNOWN_MEMBER_ID])],
    )


def sync_without_protocol(_ids: dict[str, UUID]) -> Case:
    request = SyncGroupRequest(
        group_id=G, generation_id=i32(1), member_id="m", protocol_type=None, protocol_name=None, assignments=()
    )
    wrong = [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    return Case(request=request, codes_of=top_level, refused=wrong, steps=[(READS_GROUP, wrong)])


def heartbeat(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=HeartbeatRequest(group_id=G, generation_id=i32(1), member_id="m"),
        codes_of=top_level,
        refused=[GROUP],
        steps=[(group(DESCRIBE, "g"), [GROUP]), (READS_GROUP, [ErrorCode.UNKNOWN_MEMBER_ID])],
    )


def leave(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=LeaveGroupRequest(group_id=G, members=()),
        codes_of=top_level,
        refused=[GROUP],
        steps=[(group(DESCRIBE, "g"), [GROUP]), (READS_GROUP, [NONE])],
    )


def find_groups(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("g", "h", "g")),
        codes_of=of_coordinators,
        refused=[GROUP] * 3,
        steps=[(group(DESCRIBE, "g"), [NONE, GROUP, NONE]), (group(DELETE, "h"), [NONE] * 3)],
    )


def find_group_in_old_version(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("g",)),
        version=2,
        codes_of=of_coordinators,
        refused=[GROUP],
        steps=[(READS_GROUP, [NONE])],
    )


def find_transactional_id(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=FindCoordinatorRequest(key_type=i8(1), coordinator_keys=("t",)),
        codes_of=of_coordinators,
        refused=[TRANSACTION],
        steps=[(group(DESCRIBE, "t"), [TRANSACTION]), (transactional_id(WRITE, "t"), [NONE])],
    )


def find_share_group(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=FindCoordinatorRequest(key_type=i8(2), coordinator_keys=("g",)),
        codes_of=of_coordinators,
        refused=[ErrorCode.CLUSTER_AUTHORIZATION_FAILED],
        steps=[(cluster(AclOperation.CLUSTER_ACTION), [ErrorCode.COORDINATOR_NOT_AVAILABLE])],
    )


def describe_groups(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=DescribeGroupsRequest(groups=(G, GroupId("h")), include_authorized_operations=False),
        codes_of=of_groups,
        refused=[GROUP] * 2,
        steps=[(group(DESCRIBE, "h"), [GROUP, ErrorCode.GROUP_ID_NOT_FOUND])],
    )


def describe_consumer_groups(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=ConsumerGroupDescribeRequest(group_ids=(G, GroupId("h")), include_authorized_operations=False),
        codes_of=of_groups,
        refused=[GROUP] * 2,
        steps=[(group(DESCRIBE, "h"), [GROUP, ErrorCode.GROUP_ID_NOT_FOUND])],
    )


def delete_groups(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=DeleteGroupsRequest(groups_names=(G, GroupId("h"))),
        codes_of=of_results,
        refused=[GROUP] * 2,
        steps=[(group(READ, "g"), [GROUP] * 2), (group(DELETE, "h"), [GROUP, ErrorCode.GROUP_ID_NOT_FOUND])],
    )


def join_of_consumer(*names: str, expression: str | None = None, member_id: str = "m") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=G,
        member_id=member_id,
        member_epoch=i32(0),
        rebalance_timeout=MINUTE,
        subscribed_topic_names=tuple(map(TopicName, names)),
        subscribed_topic_regex=expression,
        topic_partitions=(),
    )


def heartbeat_of_consumer(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=join_of_consumer("a", "missing"),
        codes_of=top_level,
        refused=[GROUP],
        steps=[
            (topic(READ, "a"), [GROUP]),
            (READS_GROUP, [TOPIC]),
            (topic(DESCRIBE, "missing"), [NONE]),
        ],
    )


def wrong_heartbeat_of_consumer(_ids: dict[str, UUID]) -> Case:
    return Case(
        request=join_of_consumer(member_id=""),
        codes_of=top_level,
        refused=[GROUP],
        steps=[(READS_GROUP, [ErrorCode.INVALID_REQUEST])],
    )


CASES: list[Callable[[dict[str, UUID]], Case]] = [
    commit_named,
    commit_identified,
    fetch_named,
    fetch_identified,
    delete_offsets,
    commit_in_transaction,
    join,
    sync,
    sync_without_protocol,
    heartbeat,
    leave,
    find_groups,
    find_group_in_old_version,
    find_transactional_id,
    find_share_group,
    describe_groups,
    describe_consumer_groups,
    delete_groups,
    heartbeat_of_consumer,
    wrong_heartbeat_of_consumer,
]


async def ask(connection: Connection, request: Any) -> Any:
    return await connection.call(request)


async def prepare(administrator: Administrator, connection: Connection) -> dict[str, UUID]:
    """Create topics and the coordinators' topics, and commit offsets of a and b."""
    await administrator.allow(
        cluster(AclOperation.CREATE), group(READ, "g"), topic(READ, "a"), topic(READ, "b"), transactional_id(WRITE, "t")
    )
    for name in ("a", "b"):
        assert await create_topic(connection, name) is NONE
    described: Any = await describe(connection, "a", "b")
    ids: dict[str, UUID] = {one.name: one.topic_id for one in described.topics}
    for key_type, key in ((0, "g"), (1, "t")):
        await ready_coordinator(connection, key, key_type)
    answer: Any = await connection.call(commit_identified(ids).request)
    assert of_partitions(answer) == [NONE, NONE, UNKNOWN_ID]
    return ids


@pytest.mark.parametrize("make_case", CASES, ids=lambda make_case: make_case.__name__)
def test_each_request_needs_its_permissions(make_case: Callable[[dict[str, UUID]], Case]) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            ids = await prepare(administrator, connection)
            await check_case(make_case(ids), administrator, connection)

    run(scenario)


@pytest.mark.parametrize("key_type", [0, 1])
def test_a_refused_search_for_a_coordinator_has_a_sentence_before_version_4(key_type: int) -> None:
    sentences = ["Group authorization failed.", "Transactional Id authorization failed."]

    async def scenario() -> None:
        async with guarded_node() as (_, _, connection):
            request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=("g",))
            told: Any = await connection.call(request)
            assert [one.error_message for one in told.coordinators] == [""]
            connection.versions = {**connection.versions, request.__api_key__: (3, 3)}
            told = await connection.call(request)
            assert [one.error_message for one in told.coordinators] == [sentences[key_type]]

    run(scenario)


def test_a_refused_search_for_a_coordinator_creates_no_topic() -> None:
    async def scenario() -> None:
        async with guarded_node() as (node, administrator, connection):
            request = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("g",))
            assert of_coordinators(await connection.call(request)) == [GROUP]
            assert "__consumer_offsets" not in node.metadata.image.topics.by_name
            await administrator.allow(READS_GROUP)
            assert of_coordinators(await connection.call(request)) == [NONE]
            assert "__consumer_offsets" in node.metadata.image.topics.by_name

    run(scenario)


@pytest.mark.parametrize("version", [9, 10])
def test_all_offsets_of_a_group_are_those_of_topics_that_may_be_described(version: int) -> None:
    messages: dict[int, Any] = {9: fetch_by_name, 10: fetch_by_id}

    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            ids = await prepare(administrator, connection)
            await administrator.forbid_all()
            await administrator.allow(group(DESCRIBE, "g"))
            module = messages[version]
            request = module.OffsetFetchRequest(groups=(module.OffsetFetchRequestGroup(group_id=G, topics=None),))
            (seen,) = (await ask(connection, request)).groups
            assert (seen.error_code, seen.topics) == (NONE, ())
            await administrator.allow(topic(DESCRIBE, "b"))
            (seen,) = (await ask(connection, request)).groups
            assert [one.name if version == 9 else one.topic_id for one in seen.topics] == [
                "b" if version == 9 else ids["b"]
            ]

    run(scenario)


def test_listed_are_groups_that_may_be_described_or_all_with_the_cluster(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await prepare(administrator, connection)
            await administrator.forbid_all()
            caplog.set_level(logging.INFO, LOGGER)
            caplog.clear()

            async def listed() -> list[str]:
                answer: Any = await connection.call(ListGroupsRequest())
                assert answer.error_code == NONE
                return [one.group_id for one in answer.groups]

            assert await listed() == []
            assert not caplog.records, "what is left out of a list is no denial"
            await administrator.allow(group(DESCRIBE, "g"))
            assert await listed() == ["g"]
            await administrator.forbid_all()
            await administrator.allow(cluster(DESCRIBE))
            assert await listed() == ["g"]

    run(scenario)


@pytest.mark.parametrize("is_consumer_group", [False, True])
def test_a_description_has_what_the_client_may_do(*, is_consumer_group: bool) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await prepare(administrator, connection)
            request: Any = DescribeGroupsRequest(groups=(G,), include_authorized_operations=True)
            if is_consumer_group:
                await connection.call(join_of_consumer("a"))
                request = ConsumerGroupDescribeRequest(group_ids=(G,), include_authorized_operations=True)
            (told,) = (await ask(connection, request)).groups
            assert told.authorized_operations == 1 << READ | 1 << DESCRIBE
            await administrator.allow(group(AclOperation.ALL, "g"))
            (told,) = (await ask(connection, request)).groups
            assert told.authorized_operations == sum(1 << operation for operation in (3, 6, 8, 10, 11))

    run(scenario)


def test_a_consumer_group_with_a_topic_that_may_not_be_described_is_hidden() -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await prepare(administrator, connection)
            joined: Any = await connection.call(join_of_consumer("a", "b"))
            assert joined.error_code == NONE
            request = ConsumerGroupDescribeRequest(group_ids=(G,), include_authorized_operations=False)
            (told,) = (await ask(connection, request)).groups
            assert (told.error_code, len(told.members)) == (NONE, 1)
            await administrator.forbid_all()
            await administrator.allow(READS_GROUP, topic(DESCRIBE, "a"))
            (told,) = (await ask(connection, request)).groups
            assert told.error_code == TOPIC
            assert (
                told.error_message == "The group has described topic(s) that the client is not authorized to describe."
            )
            assert (told.members, told.group_state) == ((), "")

    run(scenario)


@pytest.mark.parametrize("permissions", [[], [READS_GROUP]])
def test_a_refused_member_is_told_the_code_alone(permissions: list[Permission]) -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            await administrator.allow(*permissions)
            told: Any = await connection.call(join_of_consumer("a"))
            assert told.error_code == (TOPIC if permissions else GROUP)
            assert (told.error_message, told.member_epoch, told.assignment) == (None, 0, None)

    run(scenario)


def test_a_regular_expression_matches_topics_that_the_member_may_describe() -> None:
    async def scenario() -> None:
        async with guarded_node() as (_, administrator, connection):
            ids = await prepare(administrator, connection)
            await administrator.forbid_all()
            await administrator.allow(READS_GROUP, topic(DESCRIBE, "b"))
            answer: Any = await connection.call(join_of_consumer(expression="[ab]"))
            assert answer.error_code == NONE
            while answer.assignment is None or not answer.assignment.topic_partitions:
                beat = ConsumerGroupHeartbeatRequest(
                    group_id=G, member_id="m", member_epoch=answer.member_epoch, topic_partitions=None
                )
                answer = await connection.call(beat)
                await asyncio.sleep(0)
            assert [one.topic_id for one in answer.assignment.topic_partitions] == [ids["b"]]

    run(scenario)
