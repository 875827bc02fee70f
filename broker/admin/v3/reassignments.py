"""`/v3/…/reassignment`: the partitions whose replicas move (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.partitions import PartitionReassignmentList, Reassignment
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import PartitionRegistration, TopicImage
from ..operation import Call, Content, Operation
from . import links, lookups, pages


async def _list_all(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    found = lookups.partitions_after(call.node.image, pages.after(call, tuple[str, int]))
    return await _page(call, cluster_id, found, "-")


async def _list_of_topic(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, tuple[str, int])
    topic = lookups.topic(call, call.node.image)
    found = lookups.partitions_of(topic, None if last is None else last[1])
    return await _page(call, cluster_id, found, topic.name)


async def _page(
    call: Call, cluster_id: str, found: Iterable[tuple[TopicImage, int, PartitionRegistration]], topic_name: str
) -> Content:
    items = (
        ((topic.name, index), _describe(call, cluster_id, topic, index, partition) if _is_moving(partition) else None)
        for topic, index, partition in found
    )
    return await pages.page(
        call, "KafkaReassignmentList", items, cluster_id, "topics", topic_name, "partitions", "-", "reassignment"
    )


async def _get(call: Call) -> Reassignment:
    cluster_id = links.cluster_id(call)
    topic, index, partition = lookups.partition(call, call.node.image)
    if not _is_moving(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    return _describe(call, cluster_id, topic, index, partition)


def _is_moving(partition: PartitionRegistration) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _describe(
    call: Call, cluster_id: str, topic: TopicImage, index: int, partition: PartitionRegistration
) -> Reassignment:
    own = (cluster_id, "topics", topic.name, "partitions", index)
    return Reassignment(
        metadata=links.metadata(call, *own, "reassignment"),
        cluster_id=cluster_id,
        topic_name=topic.name,
        partition_id=index,
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
        replicas=links.related(call, *own, "replicas"),
    )


OPERATIONS: Final = (
    Operation(
        name="listPartitionReassignments",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/-/partitions/-/reassignment",
        tag="Reassignment",
        summary="The ongoing reassignments of all topics",
        run=_list_all,
        query=PageQuery,
        answer=PartitionReassignmentList,
    ),
    Operation(
        name="listPartitionReassignmentsOfTopic",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/-/reassignment",
        tag="Reassignment",
        summary="The ongoing reassignments of a topic",
        run=_list_of_topic,
        query=PageQuery,
        answer=PartitionReassignmentList,
    ),
    Operation(
        name="getReassignment",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/reassignment",
        tag="Reassignment",
        summary="The ongoing reassignment of a partition",
        run=_get,
        answer=Reassignment,
    ),
)
