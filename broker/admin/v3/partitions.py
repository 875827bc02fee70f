"""`/v3/…/topics/{topic_name}/partitions`, and the offsets of one."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from ....protocol.errors import KafkaError
from ....protocol.rest.partitions import OffsetQuery, Partition, PartitionList, PartitionOffsets
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import PartitionRegistration, TopicImage
from ...cluster.rules.offset_questions import OffsetTime
from ..operation import Call, Content, Operation
from . import links, lookups, offsets, pages


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    topic = lookups.topic(call, call.node.image)
    items = (
        (index, _describe(call, cluster_id, topic, index, partition))
        for _, index, partition in lookups.partitions_of(topic, pages.after(call, int))
    )
    return await pages.page(call, "KafkaPartitionList", items, cluster_id, "topics", topic.name, "partitions")


async def _get(call: Call) -> Partition:
    cluster_id = links.cluster_id(call)
    return _describe(call, cluster_id, *lookups.partition(call, call.node.image))


async def _get_offsets(call: Call) -> PartitionOffsets:
    cluster_id = links.cluster_id(call)
    image = call.node.image
    topic, index, _ = lookups.partition(call, image)
    wanted: OffsetQuery = call.query
    return PartitionOffsets(
        metadata=links.metadata(call, cluster_id, "topics", topic.name, "partitions", index, "offset"),
        cluster_id=cluster_id,
        topic_name=topic.name,
        partition_id=index,
        earliest_offset=None
        if wanted.offset_type == "latest"
        else await _offset(call, topic, index, OffsetTime.EARLIEST),
        latest_offset=None
        if wanted.offset_type == "earliest"
        else await _offset(call, topic, index, OffsetTime.LATEST),
    )


async def _offset(call: Call, topic: TopicImage, index: int, timestamp_ms: int) -> int:
    place = (topic.name, index)
    found = (await offsets.of_leaders(call, call.node.image, (place,), timestamp_ms))[place]
    if isinstance(found, KafkaError):
        raise found
    return found


def _describe(
    call: Call, cluster_id: str, topic: TopicImage, index: int, partition: PartitionRegistration
) -> Partition:
    own = (cluster_id, "topics", topic.name, "partitions", index)
    has_leader = partition.leader != lookups.NO_LEADER
    return Partition(
        metadata=links.metadata(call, *own),
        cluster_id=cluster_id,
        topic_name=topic.name,
        partition_id=index,
        leader=links.related(call, *own, "replicas", partition.leader) if has_leader else UNSET,
        replicas=links.related(call, *own, "replicas"),
        reassignment=links.related(call, *own, "reassignment"),
    )


OPERATIONS: Final = (
    Operation(
        name="listPartitions",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions",
        tag="Partition",
        summary="The partitions of a topic",
        run=_list,
        query=PageQuery,
        answer=PartitionList,
    ),
    Operation(
        name="getPartition",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}",
        tag="Partition",
        summary="One partition",
        run=_get,
        answer=Partition,
    ),
    Operation(
        name="getPartitionOffsets",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/offset",
        tag="Partition",
        summary="The earliest and the latest offset of a partition",
        description="The latest offset is the high watermark.",
        run=_get_offsets,
        query=OffsetQuery,
        answer=PartitionOffsets,
    ),
)
