"""`/v3/…/consumer-groups/{consumer_group_id}/consumers`: the members of a group and what is assigned to them."""

from __future__ import annotations

from typing import Final

from ....protocol.rest.groups import Consumer, ConsumerAssignment, ConsumerAssignmentList, ConsumerList
from ....protocol.rest.resources import PageQuery
from ..operation import Call, Content, HttpError, Operation
from . import group_descriptions, links, pages
from .group_descriptions import GroupDescription, GroupMember

_PATH: Final = "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/consumers"
_TAG: Final = "Consumer"


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, str)
    group = await group_descriptions.describe(call, call.path["consumer_group_id"])
    items = (
        (member.id, _resource(call, cluster_id, group, member))
        for member in sorted(group.members, key=lambda one: one.id)
        if last is None or member.id > last
    )
    return await pages.page(call, "KafkaConsumerList", items, cluster_id, "consumer-groups", group.id, "consumers")


async def _get(call: Call) -> Consumer:
    cluster_id = links.cluster_id(call)
    return _resource(call, cluster_id, *await _member(call))


async def _list_assignments(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, tuple[str, int])
    group, member = await _member(call)
    items = (
        (place, _assignment(call, cluster_id, group, member, *place))
        for place in member.partitions
        if last is None or place > last
    )
    path = ("consumer-groups", group.id, "consumers", member.id, "assignments")
    return await pages.page(call, "KafkaConsumerAssignmentList", items, cluster_id, *path)


async def _get_assignment(call: Call) -> ConsumerAssignment:
    cluster_id = links.cluster_id(call)
    group, member = await _member(call)
    place = (call.path["topic_name"], call.path["partition_id"])
    if place not in member.partitions:
        raise HttpError(404, "Not Found", f"Partition {place[0]}-{place[1]} is not assigned to member {member.id}.")
    return _assignment(call, cluster_id, group, member, *place)


async def _member(call: Call) -> tuple[GroupDescription, GroupMember]:
    group = await group_descriptions.describe(call, call.path["consumer_group_id"])
    consumer_id = call.path["consumer_id"]
    for member in group.members:
        if member.id == consumer_id:
            return group, member
    raise HttpError(404, "Not Found", f"Group {group.id} has no member {consumer_id!r}.")


def _resource(call: Call, cluster_id: str, group: GroupDescription, member: GroupMember) -> Consumer:
    own = (cluster_id, "consumer-groups", group.id, "consumers", member.id)
    return Consumer(
        metadata=links.metadata(call, *own),
        cluster_id=cluster_id,
        consumer_group_id=group.id,
        consumer_id=member.id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.host,
        assignments=links.related(call, *own, "assignments"),
    )


def _assignment(
    call: Call, cluster_id: str, group: GroupDescription, member: GroupMember, topic_name: str, partition_id: int
) -> ConsumerAssignment:
    of_group = (cluster_id, "consumer-groups", group.id)
    place = (topic_name, "partitions", partition_id)
    return ConsumerAssignment(
        metadata=links.metadata(call, *of_group, "consumers", member.id, "assignments", *place),
        cluster_id=cluster_id,
        consumer_group_id=group.id,
        consumer_id=member.id,
        topic_name=topic_name,
        partition_id=partition_id,
        partition=links.related(call, cluster_id, "topics", *place),
        lag=links.related(call, *of_group, "lags", *place),
    )


OPERATIONS: Final = (
    Operation(
        name="listConsumers",
        method="GET",
        path=_PATH,
        tag=_TAG,
        summary="The members of a group",
        run=_list,
        query=PageQuery,
        answer=ConsumerList,
    ),
    Operation(
        name="getConsumer",
        method="GET",
        path=_PATH + "/{consumer_id}",
        tag=_TAG,
        summary="One member of a group",
        run=_get,
        answer=Consumer,
    ),
    Operation(
        name="listConsumerAssignments",
        method="GET",
        path=_PATH + "/{consumer_id}/assignments",
        tag=_TAG,
        summary="The partitions that are assigned to a member",
        run=_list_assignments,
        query=PageQuery,
        answer=ConsumerAssignmentList,
    ),
    Operation(
        name="getConsumerAssignment",
        method="GET",
        path=_PATH + "/{consumer_id}/assignments/{topic_name}/partitions/{partition_id}",
        tag=_TAG,
        summary="One partition that is assigned to a member",
        run=_get_assignment,
        answer=ConsumerAssignment,
    ),
)
