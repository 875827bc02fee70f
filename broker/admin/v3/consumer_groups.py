"""`/v3/…/consumer-groups`: the groups of all coordinators."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Final

from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListGroupsResponse

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.groups import ConsumerGroup, ConsumerGroupList
from ....protocol.rest.resources import PageQuery, Unavailable
from ....quorum.metadata.image import MetadataImage
from ...coordinators.group_coordinator import OFFSETS_TOPIC
from ..operation import Call, Content, Operation
from ..rules.kafka_answers import check
from . import group_descriptions, links, pages
from .answers import gather, unavailable
from .group_descriptions import CONSUMER, GroupDescription
from .lookups import NO_LEADER

GROUPS_MAX: Final = 1_000
"""Of one page: each is described by its coordinator."""


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, str)
    image = call.node.image
    missing = _without_leader(image)
    brokers = [broker.id for broker in call.node.active_brokers()]
    listed: dict[str, tuple[int, str]] = {}
    answers = await gather([partial(_groups_of, call, broker_id) for broker_id in brokers])
    for broker_id, answer in zip(brokers, answers, strict=True):
        if isinstance(answer, KafkaError):
            missing.append(unavailable(f"broker {broker_id}", answer))
        else:
            listed |= {group_id: (broker_id, kind) for group_id, kind in answer.items()}
    call.query.page_size = min(call.query.page_size, GROUPS_MAX)
    # One more than a page tells that there is another page.
    wanted = sorted(one for one in listed if last is None or one > last)[: call.query.page_size + 1]
    described = await _describe(call, {one: listed[one] for one in wanted}, missing)
    items = ((one, None if one not in described else _resource(call, cluster_id, described[one])) for one in wanted)
    return await pages.page(call, "KafkaConsumerGroupList", items, cluster_id, "consumer-groups", unavailable=missing)


async def _groups_of(call: Call, broker_id: int) -> dict[str, str]:
    """The types of the groups that a broker coordinates, by id."""
    request = ListGroupsRequest(states_filter=(), types_filter=())
    answer = await call.node.ask_broker(broker_id, request, ListGroupsResponse, call.context)
    check(answer.error_code, None)
    return {group.group_id: group.group_type.upper() for group in answer.groups}


async def _describe(
    call: Call, listed: dict[str, tuple[int, str]], missing: list[Unavailable]
) -> dict[str, GroupDescription]:
    """Groups that are gone meanwhile are left out; a broker that does not answer is added to `missing`."""
    by_broker: defaultdict[int, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for group_id, (broker_id, kind) in listed.items():
        by_broker[broker_id][kind != CONSUMER].append(group_id)
    answers = await gather(
        [
            partial(group_descriptions.describe_some, call, broker_id, consumer_ids=consumer, classic_ids=classic)
            for broker_id, (consumer, classic) in by_broker.items()
        ]
    )
    described: dict[str, GroupDescription] = {}
    for broker_id, answer in zip(by_broker, answers, strict=True):
        if isinstance(answer, KafkaError):
            missing.append(unavailable(f"broker {broker_id}", answer))
        else:
            described |= {one.id: one for one in answer if not isinstance(one, KafkaError)}
    return described


def _without_leader(image: MetadataImage) -> list[Unavailable]:
    topic = image.topics.by_name.get(OFFSETS_TOPIC)
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Its groups have no coordinator: it has no leader.")
    return [
        unavailable(f"partition {OFFSETS_TOPIC}-{index}", error)
        for index, partition in enumerate(() if topic is None else topic.partitions)
        if partition.leader == NO_LEADER
    ]


async def _get(call: Call) -> ConsumerGroup:
    cluster_id = links.cluster_id(call)
    found = await group_descriptions.describe(call, call.path["consumer_group_id"])
    return _resource(call, cluster_id, found)


def _resource(call: Call, cluster_id: str, group: GroupDescription) -> ConsumerGroup:
    own = (cluster_id, "consumer-groups", group.id)
    return ConsumerGroup(
        metadata=links.metadata(call, *own),
        cluster_id=cluster_id,
        consumer_group_id=group.id,
        is_simple=group.is_simple,
        partition_assignor=group.assignor,
        state=group.state,
        type=group.type,
        is_mixed_consumer_group=group.is_mixed,
        coordinator=links.related(call, cluster_id, "brokers", group.coordinator_id),
        consumers=links.related(call, *own, "consumers"),
        lag_summary=links.related(call, *own, "lag-summary"),
    )


OPERATIONS: Final = (
    Operation(
        name="listConsumerGroups",
        method="GET",
        path="/v3/clusters/{cluster_id}/consumer-groups",
        tag="Consumer group",
        summary="The groups of all coordinators",
        description=(
            f"At most {GROUPS_MAX} on a page. `metadata.unavailable` names the brokers that did not answer and the "
            "partitions of the offsets topic that have no leader."
        ),
        run=_list,
        query=PageQuery,
        answer=ConsumerGroupList,
    ),
    Operation(
        name="getConsumerGroup",
        method="GET",
        path="/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}",
        tag="Consumer group",
        summary="One group",
        run=_get,
        answer=ConsumerGroup,
    ),
)
