"""`/v3/…/lags` and `lag-summary`: how far a group is behind the partitions in which it has committed offsets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from kio.schema.offset_fetch.v10.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.offset_fetch.v10.response import OffsetFetchResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32
from msgspec import Struct

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.groups import ConsumerGroupLagSummary, ConsumerLag, ConsumerLagList
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import MetadataImage
from ...cluster.rules.offset_questions import OffsetTime, Place
from ..operation import Call, Content, HttpError, Operation
from ..rules.kafka_answers import check
from . import group_descriptions, links, offsets, pages
from .answers import sentence
from .group_descriptions import GroupDescription, GroupMember

_PATH: Final = "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}"
_TAG: Final = "Consumer lag"
NO_MEMBER_EPOCH: Final = -1
PLACES_MAX: Final = 1_000
"""Partitions whose ends are asked for at once."""
COMMITTED_ASKED_MAX: Final = 400
"""Partitions of one OffsetFetch: their answer is made and read in one turn, about 3 ms."""


class Lag(Struct, frozen=True, kw_only=True):
    """Of one partition; `end` is the high watermark, or why it is not known, `member` the one that has it."""

    place: Place
    committed: int
    end: offsets.Found
    member: GroupMember | None

    @property
    def records(self) -> int | None:
        return None if isinstance(self.end, KafkaError) else max(self.end - self.committed, 0)


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, tuple[str, int])
    group = await group_descriptions.describe(call, call.path["consumer_group_id"])

    async def items() -> AsyncIterator[tuple[object, object]]:
        async for lag in _lags(call, group, after=last):
            yield lag.place, _resource(call, cluster_id, group, lag)

    return await pages.page(call, "KafkaConsumerLagList", items(), cluster_id, "consumer-groups", group.id, "lags")


async def _get(call: Call) -> ConsumerLag:
    cluster_id = links.cluster_id(call)
    group = await group_descriptions.describe(call, call.path["consumer_group_id"])
    place = (call.path["topic_name"], call.path["partition_id"])
    async for lag in _lags(call, group, only=place):
        if isinstance(lag.end, KafkaError):
            raise lag.end
        return _resource(call, cluster_id, group, lag)
    raise HttpError(404, "Not Found", f"Group {group.id} has committed nothing in partition {place[0]}-{place[1]}.")


async def _summarize(call: Call) -> ConsumerGroupLagSummary:
    cluster_id = links.cluster_id(call)
    group = await group_descriptions.describe(call, call.path["consumer_group_id"])
    most: Lag | None = None
    total = unknown = 0
    async for lag in pages.in_turns(_lags(call, group)):
        if lag.records is None:
            unknown += 1
            continue
        total += lag.records
        if most is None or lag.records > (most.records or 0):
            most = lag
    if most is None:
        reason = "of no partition is the lag known" if unknown else "it has committed no offsets"
        raise HttpError(404, "Not Found", f"Group {group.id} has no lag: {reason}.")
    own = (cluster_id, "consumer-groups", group.id)
    topic_name, partition_id = most.place
    member = most.member
    return ConsumerGroupLagSummary(
        metadata=links.metadata(call, *own, "lag-summary"),
        cluster_id=cluster_id,
        consumer_group_id=group.id,
        max_lag_consumer_id="" if member is None else member.id,
        max_lag_instance_id=None if member is None else member.instance_id,
        max_lag_client_id="" if member is None else member.client_id,
        max_lag_topic_name=topic_name,
        max_lag_partition_id=partition_id,
        max_lag=most.records or 0,
        total_lag=total,
        unknown_partitions=unknown,
        max_lag_consumer=links.related(call, *own, "consumers", *(() if member is None else (member.id,))),
        max_lag_partition=links.related(call, cluster_id, "topics", topic_name, "partitions", partition_id),
    )


async def _lags(
    call: Call, group: GroupDescription, *, after: Place | None = None, only: Place | None = None
) -> AsyncIterator[Lag]:
    """By topic and partition, from behind `after` on."""
    image = call.node.image
    committed = await _committed(call, image, group, only)
    # Sorting thousands is a turn of its own.
    await asyncio.sleep(0)
    owners = {place: member for member in group.members for place in member.partitions}
    places = sorted(
        place for place in committed if (after is None or place > after) and (only is None or place == only)
    )
    for start in range(0, len(places), PLACES_MAX):
        some: Sequence[Place] = places[start : start + PLACES_MAX]
        ends = await offsets.of_leaders(call, image, some, OffsetTime.LATEST)
        for place in some:
            yield Lag(place=place, committed=committed[place], end=ends[place], member=owners.get(place))


async def _committed(call: Call, image: MetadataImage, group: GroupDescription, only: Place | None) -> dict[Place, int]:
    """Offsets of topics that are gone are left out."""
    committed: dict[Place, int] = {}
    async for topics in pages.in_turns(_asked(image, only)):
        request = OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id=GroupId(group.id), member_id=None, member_epoch=i32(NO_MEMBER_EPOCH), topics=topics
                ),
            ),
            require_stable=False,
        )
        answer = await call.node.ask_broker(group.coordinator_id, request, OffsetFetchResponse, call.context)
        (of_group,) = answer.groups
        check(of_group.error_code, None)
        for fetched in of_group.topics:
            topic = None if fetched.topic_id is None else image.topics.by_id.get(fetched.topic_id)
            if topic is None:
                continue
            for partition in fetched.partitions:
                index = int(partition.partition_index)
                if int(partition.error_code) == ErrorCode.NONE and partition.committed_offset >= 0:
                    committed[topic.name, index] = int(partition.committed_offset)
        # A coordinator that is this node answers within the turn.
        await asyncio.sleep(0)
    return committed


def _asked(image: MetadataImage, only: Place | None) -> Iterator[tuple[OffsetFetchRequestTopics, ...] | None]:
    """What is asked for in one request each. None stands for all that is committed, which is answered in one turn of
    the coordinator: where there are many partitions, some after the other are asked for."""
    if only is not None:
        topic = image.topics.by_name.get(only[0])
        if topic is not None:
            yield (OffsetFetchRequestTopics(topic_id=topic.topic_id, partition_indexes=(i32(only[1]),)),)
        return
    if image.topics.partition_count <= PLACES_MAX:
        yield None
        return
    some: list[OffsetFetchRequestTopics] = []
    size = 0
    for topic in image.topics.by_id.values():
        for start in range(0, len(topic.partitions), COMMITTED_ASKED_MAX):
            indexes = range(start, min(start + COMMITTED_ASKED_MAX, len(topic.partitions)))
            some.append(OffsetFetchRequestTopics(topic_id=topic.topic_id, partition_indexes=tuple(map(i32, indexes))))
            size += len(indexes)
            if size >= COMMITTED_ASKED_MAX:
                yield tuple(some)
                some, size = [], 0
    if some:
        yield tuple(some)


def _resource(call: Call, cluster_id: str, group: GroupDescription, lag: Lag) -> ConsumerLag:
    topic_name, partition_id = lag.place
    member = lag.member
    is_known = not isinstance(lag.end, KafkaError)
    return ConsumerLag(
        metadata=links.metadata(
            call, cluster_id, "consumer-groups", group.id, "lags", topic_name, "partitions", partition_id
        ),
        cluster_id=cluster_id,
        consumer_group_id=group.id,
        topic_name=topic_name,
        partition_id=partition_id,
        current_offset=lag.committed,
        log_end_offset=lag.end if is_known and isinstance(lag.end, int) else None,
        lag=lag.records,
        consumer_id="" if member is None else member.id,
        instance_id=None if member is None else member.instance_id,
        client_id="" if member is None else member.client_id,
        reason=sentence(lag.end) if isinstance(lag.end, KafkaError) else None,
    )


OPERATIONS: Final = (
    Operation(
        name="listConsumerLags",
        method="GET",
        path=_PATH + "/lags",
        tag=_TAG,
        summary="The lag of a group in each partition in which it has committed an offset",
        run=_list,
        query=PageQuery,
        answer=ConsumerLagList,
    ),
    Operation(
        name="getConsumerLag",
        method="GET",
        path=_PATH + "/lags/{topic_name}/partitions/{partition_id}",
        tag=_TAG,
        summary="The lag of a group in one partition",
        run=_get,
        answer=ConsumerLag,
    ),
    Operation(
        name="getConsumerGroupLagSummary",
        method="GET",
        path=_PATH + "/lag-summary",
        tag=_TAG,
        summary="The largest and the total lag of a group",
        run=_summarize,
        answer=ConsumerGroupLagSummary,
    ),
)
