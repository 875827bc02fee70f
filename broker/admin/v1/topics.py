"""`/v1/topics`: topics and partitions with offsets and sizes, for a page that draws them and computes rates."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.list_offsets.v11.response import ListOffsetsResponse

from ....protocol.acls import AclOperation, ResourceType
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.topic_overview import PartitionOverview, TopicOverview, TopicOverviewList, TopicsQuery
from ....quorum.decisions.topic_names import INTERNAL_TOPICS
from ....quorum.metadata.image import PartitionRegistration, TopicImage
from ....quorum.metadata.records import NO_LEADER
from ...cluster.rules.offset_questions import OffsetTime, Place, known_offsets, offsets_question
from ..broker_answers import BROKER_TIMEOUT_S, PARTITIONS_ASKED_MAX, ask_brokers, ask_log_dirs, sizes_in
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
    topics = [await _topic(topic, known, turns) for topic in page]
    return TopicOverviewList(asked_ms=asked_ms, topics=topics, next=following, unanswered=list(known.unanswered))


async def _page(call: Call, query: TopicsQuery) -> tuple[list[TopicImage], str | None]:
    """The topics of a page, and the token of the next one."""
    by_name = call.node.image.topics.by_name
    names = sorted(
        name
        for name in by_name
        if (query.include_internal or name not in INTERNAL_TOPICS)
        and call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    )
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
    call.require_topic(AclOperation.DESCRIBE, query.topic or "")
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
    turns = Turns()
    overview = await _topic(topic, known, turns)
    overview.partitions = [_partition(topic.name, index, one, known) async for index, one in turns.over(shown)]
    following = str(shown[-1][0]) if shown and start + len(shown) < len(topic.partitions) else None
    return TopicOverviewList(asked_ms=asked_ms, topics=[overview], next=following, unanswered=list(known.unanswered))


async def _ask_leaders(call: Call, places: Mapping[Place, PartitionRegistration]) -> _Known:
    by_leader: dict[int, list[Place]] = {}
    turns = Turns()
    async for place, one in turns.over(places.items()):
        if one.leader != NO_LEADER:
            by_leader.setdefault(int(one.leader), []).append(place)
    highs: dict[Place, int] = {}
    starts: dict[Place, int] = {}
    sizes: dict[Place, int] = {}
    unanswered: dict[int, str] = {}

    async def ask(leader: int, led: Sequence[Place]) -> None:
        """In slices, one after the other: this node answers itself within the turn of the loop."""
        for start in range(0, len(led), PARTITIONS_ASKED_MAX):
            await ask_slice(leader, led[start : start + PARTITIONS_ASKED_MAX])
            if leader in unanswered:
                return

    async def ask_slice(leader: int, wanted: Sequence[Place]) -> None:
        for time, offsets in ((OffsetTime.LATEST, highs), (OffsetTime.EARLIEST, starts)):
            question = offsets_question(wanted, time, timeout_ms=round(1000 * BROKER_TIMEOUT_S))
            answers, failures = await ask_brokers(call, (leader,), question, ListOffsetsResponse)
            unanswered.update(failures)
            if failures:
                return
            offsets.update(known_offsets(answers[leader]))
        indexes: dict[str, list[int]] = {}
        for topic, index in wanted:
            indexes.setdefault(topic, []).append(index)
        logs, failures = await ask_log_dirs(call, (leader,), indexes)
        unanswered.update(failures)
        if leader in logs:
            sizes.update(sizes_in(logs[leader]))

    await asyncio.gather(*(ask(leader, led) for leader, led in by_leader.items()))
    reasons = [f"Broker {broker_id}: {reason}" for broker_id, reason in sorted(unanswered.items())]
    return _Known(highs, starts, sizes, reasons)


async def _topic(topic: TopicImage, known: _Known, turns: Turns) -> TopicOverview:
    highs, sizes, records = _Sum(), _Sum(), _Sum()
    is_complete = True
    factor = leaderless = under_replicated = moving = 0
    async for index, one in turns.over(enumerate(topic.partitions)):
        factor = max(factor, len(one.replicas))
        leaderless += one.leader == NO_LEADER
        under_replicated += len(one.isr) < len(one.replicas)
        moving += bool(one.adding_replicas or one.removing_replicas)
        place = (topic.name, index)
        high, start = known.high_watermarks.get(place), known.log_starts.get(place)
        size = known.sizes.get(place)
        highs.add(high)
        sizes.add(size)
        records.add(None if high is None or start is None else high - start)
        is_complete = is_complete and None not in (high, start, size)
    return TopicOverview(
        name=topic.name,
        topic_id=str(UUID(int=topic.topic_id.int)),
        is_internal=topic.name in INTERNAL_TOPICS,
        partition_count=len(topic.partitions),
        replication_factor=factor,
        leaderless_count=leaderless,
        under_replicated_count=under_replicated,
        moving_count=moving,
        is_complete=is_complete,
        high_watermarks=highs.value,
        records=records.value,
        size_bytes=sizes.value,
    )


class _Sum:
    """Of the values that are known; None until one is."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: int | None = None

    def add(self, value: int | None) -> None:
        if value is not None:
            self.value = (self.value or 0) + value


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
