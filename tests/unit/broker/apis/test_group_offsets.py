"""OffsetFetch: how an error of a group is told in each version, and in which order topics are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.offset_fetch.v10 import request as by_id
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32
from memory_node import World, create_topic, describe, ready_coordinator, run
from permission_cases import UNRESTRICTED

from penstock.broker.apis.group_offsets import GroupOffsets
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.protocol.errors import ErrorCode, KafkaError


def answer(version: int) -> Any:
    """What is answered for two partitions of a group that another node coordinates."""

    def get(_group_id: str) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    groups: Any = SimpleNamespace(coordinators=SimpleNamespace(get=get))
    request: Any = SimpleNamespace(api_version=version, context=UNRESTRICTED)
    topic = OffsetFetchRequestTopics(name=TopicName("t"), partition_indexes=(i32(0), i32(1)))
    group = OffsetFetchRequestGroup(group_id=GroupId("g"), member_id=None, member_epoch=i32(-1), topics=(topic,))
    answers: list[Any] = []
    GroupOffsets(groups, MetadataCache()).fetch(
        OffsetFetchRequest(groups=(group,), require_stable=False), request, answers.append
    )
    return answers[0].groups[0]


@pytest.mark.parametrize("version", [1, 2, 7])
def test_clients_that_look_at_partitions_alone_are_told_of_an_error(version: int) -> None:
    told = answer(version)
    assert told.error_code == ErrorCode.NOT_COORDINATOR
    assert [one.error_code for one in told.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2
    assert [one.committed_offset for one in told.topics[0].partitions] == [-1, -1]


@pytest.mark.parametrize("version", [8, 9])
def test_of_several_groups_each_has_its_error(version: int) -> None:
    told = answer(version)
    assert told.error_code == ErrorCode.NOT_COORDINATOR
    assert told.topics == ()


def test_topics_that_are_unknown_come_last() -> None:
    async def scenario() -> None:
        async with World(offsets_topic_num_partitions="1").running() as (_, connection):
            for name in ("a", "b"):
                assert await create_topic(connection, name) is ErrorCode.NONE
            await ready_coordinator(connection, "g")
            known = [topic.topic_id for topic in (await describe(connection, "b", "a")).topics]
            unknown = [UUID(int=7), UUID(int=8)]
            asked = (unknown[0], known[0], unknown[1], known[1])
            group = by_id.OffsetFetchRequestGroup(
                group_id=GroupId("g"),
                member_id=None,
                member_epoch=i32(-1),
                topics=tuple(
                    by_id.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(i32(0),)) for topic_id in asked
                ),
            )
            answer: Any = await connection.call(by_id.OffsetFetchRequest(groups=(group,), require_stable=False))
            topics = answer.groups[0].topics
            assert [topic.topic_id for topic in topics] == [*known, *unknown]
            errors = [topic.partitions[0].error_code for topic in topics]
            assert errors == [ErrorCode.NONE] * 2 + [ErrorCode.UNKNOWN_TOPIC_ID] * 2

    run(scenario)
