"""`/v3/…/partitions/{partition_id}/replicas`, and how far each replica is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.partitions import Replica, ReplicaList, ReplicaStatus, ReplicaStatusList
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from ...cluster.rules.offset_questions import DEBUGGER, OffsetTime, Place
from ..operation import Call, Content, HttpError, Operation
from . import links, lookups, offsets, pages
from .answers import gather, sentence

STATUSES_MAX: Final = 1_000
"""Partitions of one page of `replica-status`: each replica's broker is asked."""

Located: TypeAlias = tuple[TopicImage, int, PartitionRegistration]
"""A partition with its topic and index."""
ReplicaKey: TypeAlias = tuple[str, int, int]
"""Topic, partition and broker."""


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    topic, index, partition = lookups.partition(call, call.node.image)
    last = pages.after(call, int)
    items = (
        (broker_id, describe_replica(call, cluster_id, topic, index, partition, broker_id))
        for broker_id in sorted(partition.replicas)
        if last is None or broker_id > last
    )
    return await pages.page(
        call, "KafkaReplicaList", items, cluster_id, "topics", topic.name, "partitions", index, "replicas"
    )


async def _get(call: Call) -> Replica:
    cluster_id = links.cluster_id(call)
    topic, index, partition = lookups.partition(call, call.node.image)
    broker_id = call.path["broker_id"]
    if broker_id not in partition.replicas:
        raise HttpError(404, "Not Found", f"Broker {broker_id} has no replica of {topic.name}-{index}.")
    return describe_replica(call, cluster_id, topic, index, partition, broker_id)


async def _list_statuses(call: Call) -> Content:
    """Of all partitions, of a topic's, or of the one that the path names."""
    cluster_id = links.cluster_id(call)
    image = call.node.image
    last = pages.after(call, tuple[str, int, int])
    # The partition of the last replica on the page before is there again: it may have more.
    begun = None if last is None else (last[0], last[1] - 1)
    topic_name, index = "-", "-"
    if "partition_id" in call.path:
        one = lookups.partition(call, image)
        topic_name, index = one[0].name, str(one[1])
        found: Iterable[Located] = (one,)
    elif "topic_name" in call.path:
        topic = lookups.topic(call, image)
        topic_name = topic.name
        found = lookups.partitions_of(topic, None if begun is None else begun[1])
    else:
        found = (one for one in lookups.partitions_after(image, begun) if lookups.is_visible(call, one[0]))
    call.query.page_size = min(call.query.page_size, STATUSES_MAX)
    # All but that first one have a replica or more on the page, and one item more shows that there is another page.
    partitions = list(islice(found, call.query.page_size + 2))
    ends = await _log_ends(call, image, partitions)
    items = (
        (key, _status(call, cluster_id, topic, index, broker_id, ends))
        for topic, index, partition in partitions
        for broker_id in sorted(partition.replicas)
        for key in ((topic.name, index, broker_id),)
        if last is None or key > last
    )
    segments = ("topics", topic_name, "partitions", index, "replica-status")
    return await pages.page(call, "KafkaReplicaStatusList", items, cluster_id, *segments)


async def _log_ends(
    call: Call, image: MetadataImage, partitions: Sequence[Located]
) -> Mapping[ReplicaKey, tuple[offsets.Found, offsets.Found]]:
    """The first and the end offset of each replica's log."""
    by_broker: defaultdict[int, list[Place]] = defaultdict(list)
    for topic, index, partition in partitions:
        for replica in partition.replicas:
            by_broker[replica].append((topic.name, index))
    asked = [
        (broker_id, timestamp_ms, places)
        for broker_id, places in by_broker.items()
        for timestamp_ms in (OffsetTime.EARLIEST, OffsetTime.LATEST)
    ]
    answers = await gather(
        [partial(_of_broker, call, image, broker_id, places, timestamp_ms) for broker_id, timestamp_ms, places in asked]
    )
    found: dict[tuple[ReplicaKey, int], offsets.Found] = {}
    for (broker_id, timestamp_ms, places), answer in zip(asked, answers, strict=True):
        for place in places:
            found[(*place, broker_id), timestamp_ms] = answer if isinstance(answer, KafkaError) else answer[place]
    return {key: (found[key, OffsetTime.EARLIEST], found[key, OffsetTime.LATEST]) for key, _ in found}


async def _of_broker(
    call: Call, image: MetadataImage, broker_id: int, places: list[Place], timestamp_ms: int
) -> Mapping[Place, offsets.Found]:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.is_fenced:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker_id} is fenced or not registered.")
    return await offsets.of_broker(call, broker_id, places, timestamp_ms, replica_id=DEBUGGER)


def _status(
    call: Call,
    cluster_id: str,
    topic: TopicImage,
    index: int,
    broker_id: int,
    ends: Mapping[ReplicaKey, tuple[offsets.Found, offsets.Found]],
) -> ReplicaStatus:
    partition = topic.partitions[index]
    first, end = ends[topic.name, index, broker_id]
    _, leader_end = ends.get((topic.name, index, partition.leader), (None, None))
    is_known = isinstance(first, int) and isinstance(end, int)
    lag = max(leader_end - end, 0) if isinstance(leader_end, int) and isinstance(end, int) else None
    error = next((one for one in (first, end, leader_end) if isinstance(one, KafkaError)), None)
    reason = None if lag is not None else f"Partition {topic.name}-{index} has no leader."
    return ReplicaStatus(
        metadata=links.metadata(
            call, cluster_id, "topics", topic.name, "partitions", index, "replicas", broker_id, "status"
        ),
        cluster_id=cluster_id,
        topic_name=topic.name,
        partition_id=index,
        broker_id=broker_id,
        is_leader=broker_id == partition.leader,
        is_in_isr=broker_id in partition.isr,
        is_caught_up=None if lag is None else lag == 0,
        log_start_offset=first if is_known and isinstance(first, int) else None,
        log_end_offset=end if is_known and isinstance(end, int) else None,
        lag=lag,
        reason=reason if error is None else sentence(error),
    )


def describe_replica(
    call: Call, cluster_id: str, topic: TopicImage, index: int, partition: PartitionRegistration, broker_id: int
) -> Replica:
    return Replica(
        metadata=links.metadata(call, cluster_id, "topics", topic.name, "partitions", index, "replicas", broker_id),
        cluster_id=cluster_id,
        topic_name=topic.name,
        partition_id=index,
        broker_id=broker_id,
        is_leader=broker_id == partition.leader,
        is_in_sync=broker_id in partition.isr,
        broker=links.related(call, cluster_id, "brokers", broker_id),
    )


OPERATIONS: Final = (
    Operation(
        name="listReplicaStatusesOfAll",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/-/partitions/-/replica-status",
        tag="Replica",
        summary="How far the replicas of all partitions are",
        run=_list_statuses,
        query=PageQuery,
        answer=ReplicaStatusList,
    ),
    Operation(
        name="listReplicaStatusesOfTopic",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/-/replica-status",
        tag="Replica",
        summary="How far the replicas of a topic's partitions are",
        run=_list_statuses,
        query=PageQuery,
        answer=ReplicaStatusList,
    ),
    Operation(
        name="listReplicaStatuses",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replica-status",
        tag="Replica",
        summary="How far the replicas of a partition are",
        run=_list_statuses,
        query=PageQuery,
        answer=ReplicaStatusList,
    ),
    Operation(
        name="listReplicas",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replicas",
        tag="Replica",
        summary="The replicas of a partition",
        run=_list,
        query=PageQuery,
        answer=ReplicaList,
    ),
    Operation(
        name="getReplica",
        method="GET",
        path="/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replicas/{broker_id}",
        tag="Replica",
        summary="One replica",
        run=_get,
        answer=Replica,
    ),
)
