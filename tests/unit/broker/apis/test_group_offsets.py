"""OffsetFetch: how an error of a group is told in each version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from penstock.broker.apis.group_offsets import GroupOffsets
from penstock.broker.metadata_view import MetadataView
from penstock.protocol.errors import ErrorCode, KafkaError


def answer(version: int) -> Any:
    """What is answered for two partitions of a group that another node coordinates."""

    def get(_group_id: str) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    groups: Any = SimpleNamespace(coordinators=SimpleNamespace(get=get))
    request: Any = SimpleNamespace(api_version=version)
    topic = OffsetFetchRequestTopics(name=TopicName("t"), partition_indexes=(i32(0), i32(1)))
    group = OffsetFetchRequestGroup(group_id=GroupId("g"), member_id=None, member_epoch=i32(-1), topics=(topic,))
    answers: list[Any] = []
    GroupOffsets(groups, MetadataView()).fetch(
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
