"""What clients with few permissions are told of topics, and may do with them: codes and fields of Apache Kafka."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from authorized_node import ALICE, AuthorizedNode, authorized_node
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest, TopicRequest
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from memory_node import run
from produce_requests import produce_request

from penstock.protocol.acls import AclOperation, PermissionType, ResourceType, operation_bits
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, write_batch

TOPIC = ResourceType.TOPIC
NOT_TOLD = -(2**31)
NO_TIME = i32Timedelta.parse(timedelta(0))
MINUTE = i32Timedelta.parse(timedelta(minutes=1))
OK, UNKNOWN, DENIED = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED


def asked(*names: str, creates: bool = False, operations: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names),
        allow_auto_topic_creation=creates,
        include_topic_authorized_operations=operations,
    )


def told(answer: Any) -> list[tuple[str | None, int, int]]:
    return [(topic.name, topic.error_code, topic.topic_authorized_operations) for topic in answer.topics]


def test_metadata_tell_of_topics_that_may_be_described() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            topic_id = await node.create_topic("open")
            hidden_id = await node.create_topic("hidden")
            await node.allow(TOPIC, "open", AclOperation.READ)
            everything: Any = await node.ask(replace(asked(), topics=None))
            assert told(everything) == [("open", OK, NOT_TOLD)]
            named = await node.ask(asked("open", "hidden", "missing", operations=True))
            bits = operation_bits([AclOperation.READ, AclOperation.DESCRIBE])
            assert told(named) == [("open", OK, bits), ("hidden", DENIED, NOT_TOLD), ("missing", DENIED, NOT_TOLD)]
            assert [topic.topic_id for topic in named.topics] == [topic_id, None, None]
            ids = tuple(
                MetadataRequestTopic(topic_id=wanted, name=None) for wanted in (topic_id, hidden_id, UUID(int=7))
            )
            by_id = await node.ask(replace(asked(), topics=ids))
            assert [(topic.name, topic.error_code) for topic in by_id.topics] == [
                ("open", OK), (None, DENIED), (None, ErrorCode.UNKNOWN_TOPIC_ID),
            ]  # fmt: skip
            # What is kept for one client is not another's.
            await node.allow(TOPIC, "hidden", AclOperation.DESCRIBE, principal="User:bob")
            assert told(await node.ask(replace(asked(), topics=None), "User:bob")) == [("hidden", OK, NOT_TOLD)]
            assert told(await node.ask(replace(asked(), topics=None))) == [("open", OK, NOT_TOLD)]

    run(scenario)


def test_metadata_create_topics_for_those_who_may() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            await node.allow(TOPIC, "*", AclOperation.DESCRIBE)
            await node.allow(TOPIC, "mine", AclOperation.CREATE)
            await node.create_topic("present")
            answer = await node.ask(asked("present", "mine", "other", creates=True))
            assert [(topic.name, topic.error_code) for topic in answer.topics] == [
                ("present", OK), ("mine", OK), ("other", DENIED),
            ]  # fmt: skip
            assert "other" not in node.node.metadata.image.topics.by_name
            assert told(await node.ask(asked("other"))) == [("other", UNKNOWN, NOT_TOLD)]
            await node.allow_in_cluster(AclOperation.CREATE)
            assert told(await node.ask(asked("other", creates=True))) == [("other", OK, NOT_TOLD)]

    run(scenario)


def test_partitions_are_described_to_those_who_may() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            for name in ("a", "b"):
                await node.create_topic(name)
            await node.allow(TOPIC, "b", AclOperation.ALTER)
            request = DescribeTopicPartitionsRequest(
                topics=tuple(TopicRequest(name=TopicName(name)) for name in ("a", "b", "c")), cursor=None
            )
            bits = operation_bits([AclOperation.ALTER, AclOperation.DESCRIBE])
            assert told(await node.ask(request)) == [("b", OK, bits), ("a", DENIED, NOT_TOLD), ("c", DENIED, NOT_TOLD)]
            assert told(await node.ask(replace(request, topics=()))) == [("b", OK, bits)]

    run(scenario)


def test_the_cluster_s_operations_are_told_to_those_who_may_describe_it() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=True, endpoint_type=i8(1), include_fenced_brokers=False
            )
            assert (await node.ask(request)).cluster_authorized_operations == 0
            await node.allow_in_cluster(AclOperation.DESCRIBE, AclOperation.CREATE)
            bits = operation_bits([AclOperation.DESCRIBE, AclOperation.CREATE])
            assert (await node.ask(request)).cluster_authorized_operations == bits

    run(scenario)


BATCH = write_batch([Record(offset=0, timestamp_ms=0, key=None, value=b"v", headers=())])


async def produced(node: AuthorizedNode, topic_id: TopicId, principal: str = ALICE) -> int:
    answer = await node.ask(produce_request(topic_id, 0, BATCH), principal)
    return int(answer.responses[0].partition_responses[0].error_code)


def fetch_of(*topic_ids: TopicId) -> FetchRequest:
    return FetchRequest(
        max_wait=NO_TIME,
        min_bytes=i32(1),
        session_id=i32(0),
        session_epoch=i32(-1),
        topics=tuple(
            FetchTopic(
                topic_id=topic_id,
                partitions=(FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1000)),),
            )
            for topic_id in topic_ids
        ),
        forgotten_topics_data=(),
        rack_id="",
    )


def test_records_are_written_and_read_by_those_who_may() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            mine, other = await node.create_topic("mine"), await node.create_topic("other")
            assert await produced(node, mine) == DENIED
            await node.allow(TOPIC, "mine", AclOperation.WRITE)
            assert await produced(node, mine) == OK
            assert await produced(node, other) == DENIED
            assert await produced(node, other, "User:admin") == OK

            async def fetched() -> list[tuple[int, bool]]:
                answer = await node.ask(fetch_of(mine, other))
                return [
                    (partition.error_code, bool(partition.records))
                    for topic in answer.responses
                    for partition in topic.partitions
                ]

            assert await fetched() == [(DENIED, False)] * 2
            await node.allow(TOPIC, "mine", AclOperation.READ)
            assert await fetched() == [(OK, True), (DENIED, False)]
            await node.allow(TOPIC, "*", AclOperation.ALL, permission=PermissionType.DENY)
            assert await fetched() == [(DENIED, False)] * 2
            assert await produced(node, mine) == DENIED

    run(scenario)


def test_offsets_are_told_to_those_who_may_describe_the_topic() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            for name in ("mine", "other"):
                await node.create_topic(name)
            await node.allow(TOPIC, "mine", AclOperation.DESCRIBE)
            answer = await node.ask(
                ListOffsetsRequest(
                    replica_id=BrokerId(-1),
                    isolation_level=i8(0),
                    topics=tuple(
                        ListOffsetsTopic(
                            name=TopicName(name),
                            partitions=(ListOffsetsPartition(partition_index=i32(0), timestamp=i64(-1)),),
                        )
                        for name in ("mine", "other", "missing")
                    ),
                    timeout=MINUTE,
                )
            )
            codes = [(topic.name, topic.partitions[0].error_code) for topic in answer.topics]
            assert codes == [("mine", OK), ("other", DENIED), ("missing", DENIED)]

    run(scenario)


def creation(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
            )
            for name in names
        ),
        timeout=MINUTE,
    )


def test_topics_are_created_by_those_who_may() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            await node.allow(TOPIC, "a", AclOperation.CREATE)
            await node.allow(TOPIC, "b", AclOperation.CREATE, AclOperation.DESCRIBE_CONFIGS)
            answer = await node.ask(creation("a", "b", "c", "d", "d"))
            results = {topic.name: topic for topic in answer.topics}
            assert {name: topic.error_code for name, topic in results.items()} == {
                "a": OK, "b": OK, "c": DENIED, "d": ErrorCode.INVALID_REQUEST,
            }  # fmt: skip
            assert results["c"].error_message == "Authorization failed."
            assert (results["a"].topic_config_error_code, results["a"].num_partitions) == (DENIED, -1)
            assert not results["a"].configs
            assert (results["b"].topic_config_error_code, results["b"].num_partitions) == (OK, 1)
            assert results["b"].configs
            await node.allow_in_cluster(AclOperation.CREATE)
            assert [topic.error_code for topic in (await node.ask(creation("c"))).topics] == [OK]

    run(scenario)


def test_topics_are_deleted_and_grown_by_those_who_may() -> None:
    async def scenario() -> None:
        async with authorized_node() as node:
            ids = {name: await node.create_topic(name) for name in ("mine", "seen", "hidden")}
            await node.allow(TOPIC, "mine", AclOperation.DELETE, AclOperation.ALTER)
            await node.allow(TOPIC, "seen", AclOperation.DESCRIBE)
            await node.allow(TOPIC, "absent", AclOperation.DESCRIBE)
            grown = await node.ask(
                CreatePartitionsRequest(
                    topics=tuple(
                        CreatePartitionsTopic(name=TopicName(name), count=i32(2), assignments=None)
                        for name in ("mine", "seen")
                    ),
                    timeout=MINUTE,
                    validate_only=False,
                )
            )
            assert [(result.name, result.error_code) for result in grown.results] == [("mine", OK), ("seen", DENIED)]

            async def deleted(*topics: DeleteTopicState) -> list[tuple[str | None, int]]:
                answer = await node.ask(DeleteTopicsRequest(topics=topics, timeout=MINUTE))
                return [(result.name, result.error_code) for result in answer.responses]

            def named(name: str) -> DeleteTopicState:
                return DeleteTopicState(name=TopicName(name), topic_id=None)

            assert await deleted(
                *(DeleteTopicState(name=None, topic_id=ids[name]) for name in ("seen", "hidden")),
            ) == [(None, DENIED), ("seen", DENIED)]
            assert await deleted(*map(named, ("mine", "seen", "hidden", "absent", "unknown"))) == [
                ("absent", UNKNOWN), ("hidden", DENIED), ("mine", OK), ("seen", DENIED), ("unknown", DENIED),
            ]  # fmt: skip
            assert sorted(node.node.metadata.image.topics.by_name) == ["hidden", "seen"]
            await node.allow_in_cluster(AclOperation.DELETE)
            assert await deleted(named("hidden")) == [("hidden", OK)]

    run(scenario)
