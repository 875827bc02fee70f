"""`/v1/topics`: topics and partitions with offsets and sizes, for a page that draws them and computes rates."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.list_offsets.v11.response import ListOffsetsResponse

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.topic_overview import PartitionOverview, TopicOverview, TopicOverviewList, TopicsQuery
from ....quorum.decisions.topic_names import INTERNAL_TOPICS
from ....quorum.metadata.image import PartitionRegistration, TopicImage
from ....quorum.metadata.records import NO_LEADER
from ...cluster.rules.offset_questions import OffsetTime, Place, known_offsets, offsets_question
from ..broker_answers import BROKER_TIMEOUT_S, ask_brokers, ask_log_dirs, sizes_in
from ..operation import Call, HttpError, Operation
from ..turns import Turns

PAGE_SIZE_MAX: Final = 1_000
ASKED_MAX: Final = 5_000
"""Partitions whose leaders are asked for one answer; a page ends with the topic that reaches it."""


class _Known(NamedTuple):
    """What leaders told, by partition."""

    high_watermarks: Mapping[Place, int]
    log_starts: Mapping[Place, int]
    sizes: Mapping[Place, int]
    unanswered: Sequence[str]


_NOTHING: Final = _Known({}, {}, {}, ())


async def _list(call: Call) -> TopicOverviewList:
    query: TopicsQuery = call.query
    if not 1 <= query.page_size <= PAGE_SIZE_MAX:
        raise HttpError(400, "Bad Request", f"page_size is from 1 to {PAGE_SIZE_MAX}, not {query.page_size}.")
    asked_ms = call.node.wall_clock_ms()
    if query.topic is not None:
        return await _one_topic(call, query, asked_ms)
    page, following = await _page(call, query)
    places = {(topic.name, index): one for topic in page for index, one in enumerate(topic.partitions)}
    known = await _ask_leaders(call, places) if query.offsets else _NOTHING
    turns = Turns()
    topics = [_topic(topic, known) async for topic in turns.over(page)]
    return TopicOverviewList(asked_ms=asked_ms, topics=topics, next=following, unanswered=list(known.unanswered))


async def _page(call: Call, query: TopicsQuery) -> tuple[list[TopicImage], str | None]:
    """The topics of a page, and the token of the next one."""
    by_name = call.node.image.topics.by_name
    names = sorted(name for name in by_name if query.include_internal or name not in INTERNAL_TOPICS)
    start = 0 if query.page_token is None else bisect_right(names, query.page_token)
    page: list[TopicImage] = []
    count = 0
    for name in names[start : start + query.page_size]:
        page.append(by_name[name])
        count += len(by_name[name].partitions)
        if count >= ASKED_MAX:
            break
    return page, page[-1].name if start + len(page) < len(names) else None


async def _one_topic(call: Call, query: TopicsQuery, asked_ms: int) -> TopicOverviewList:
    topic = call.node.image.topics.by_name.get(query.topic or "")
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {query.topic!r} does not exist.")
    token = query.page_token
    if token is not None and not (token.isascii() and token.isdecimal() and len(token) <= 9):
        raise HttpError(400, "Bad Request", f"page_token is the index of a partition here, not {token!r}.")
    start = 0 if token is None else int(token) + 1
    shown = list(enumerate(topic.partitions))[start : start + query.page_size]
    places = {(topic.name, index): one for index, one in shown}
    known = await _ask_leaders(call, places) if query.offsets else _NOTHING
    overview = _topic(topic, known)
    overview.partitions = [_partition(topic.name, index, one, known) for index, one in shown]
    following = str(shown[-1][0]) if shown and start + len(shown) < len(topic.partitions) else None
    return TopicOverviewList(asked_ms=asked_ms, topics=[overview], next=following, unanswered=list(known.unanswered))


async def _ask_leaders(call: Call, places: Mapping[Place, PartitionRegistration]) -> _Known:
    by_leader: dict[int, dict[str, list[int]]] = {}
    turns = Turns()
    async for (topic, index), one in turns.over(places.items()):
        if one.leader != NO_LEADER:
            by_leader.setdefault(int(one.leader), {}).setdefault(topic, []).append(index)
    highs: dict[Place, int] = {}
    starts: dict[Place, int] = {}
    sizes: dict[Place, int] = {}
    unanswered: dict[int, str] = {}

    async def ask(leader: int, indexes: Mapping[str, Sequence[int]]) -> None:
        wanted = [(topic, index) for topic, some in indexes.items() for index in some]
        for time, offsets in ((OffsetTime.LATEST, highs), (OffsetTime.EARLIEST, starts)):
            question = offsets_question(wanted, time, timeout_ms=round(1000 * BROKER_TIMEOUT_S))
            answers, failures = await ask_brokers(call, (leader,), question, ListOffsetsResponse)
            unanswered.update(failures)
            if failures:
                return
            offsets.update(known_offsets(answers[leader]))
        logs, failures = await ask_log_dirs(call, (leader,), indexes)
        unanswered.update(failures)
        if leader in logs:
            sizes.update(sizes_in(logs[leader]))

    await asyncio.gather(*(ask(leader, indexes) for leader, indexes in by_leader.items()))
    reasons = [f"Broker {broker_id}: {reason}" for broker_id, reason in sorted(unanswered.items())]
    return _Known(highs, starts, sizes, reasons)


def _topic(topic: TopicImage, known: _Known) -> TopicOverview:
    highs = [known.high_watermarks.get((topic.name, index)) for index in range(len(topic.partitions))]
    starts = [known.log_starts.get((topic.name, index)) for index in range(len(topic.partitions))]
    sizes = [known.sizes.get((topic.name, index)) for index in range(len(topic.partitions))]
    readable = [
        high - start for high, start in zip(highs, starts, strict=True) if high is not None and start is not None
    ]
    return TopicOverview(
        name=topic.name,
        topic_id=str(UUID(int=topic.topic_id.int)),
        is_internal=topic.name in INTERNAL_TOPICS,
        partition_count=len(topic.partitions),
        replication_factor=max((len(one.replicas) for one in topic.partitions), default=0),
        leaderless_count=sum(one.leader == NO_LEADER for one in topic.partitions),
        under_replicated_count=sum(len(one.isr) < len(one.replicas) for one in topic.partitions),
        moving_count=sum(bool(one.adding_replicas or one.removing_replicas) for one in topic.partitions),
        is_complete=None not in (*highs, *starts, *sizes),
        high_watermarks=_sum(highs),
        records=sum(readable) if readable else None,
        size_bytes=_sum(sizes),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _partition(topic: str, index: int, one: PartitionRegistration, known: _Known) -> PartitionOverview:
    place = (topic, index)
    return PartitionOverview(
        partition=index,
        leader=None if one.leader == NO_LEADER else int(one.leader),
        leader_epoch=int(one.leader_epoch),
        partition_epoch=int(one.partition_epoch),
        replicas=list(one.replicas),
        isr=list(one.isr),
        elr=list(one.elr),
        last_known_elr=list(one.last_known_elr),
        adding=list(one.adding_replicas),
        removing=list(one.removing_replicas),
        high_watermark=known.high_watermarks.get(place),
        log_start_offset=known.log_starts.get(place),
        size_bytes=known.sizes.get(place),
    )


OPERATIONS: Final = (
    Operation(
        name="listTopicOverviews",
        method="GET",
        path="/v1/topics",
        tag="Cluster",
        summary="Topics, or the partitions of one, with leaders, replicas, offsets and sizes",
        run=_list,
        query=TopicsQuery,
        answer=TopicOverviewList,
    ),
)
