"""`/v1/partition-map`: who leads every partition of the cluster that the client may describe, for pictures of it."""

from __future__ import annotations

from typing import Final

from ....protocol.acls import AclOperation, ResourceType
from ....protocol.rest.partition_map import PartitionMap, TopicMap
from ..operation import Call, Operation
from ..turns import Turns


async def _map(call: Call) -> PartitionMap:
    image = call.node.image
    turns = Turns()
    topics = []
    for name in sorted(image.topics.by_name):
        if not call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            await turns.pause()
            continue
        topic = TopicMap(topic_name=name, leaders=[], in_sync=[], replicas=[])
        for partition in image.topics.by_name[name].partitions:
            await turns.pause()
            topic.leaders.append(partition.leader)
            topic.in_sync.append(len(partition.isr))
            topic.replicas.append(len(partition.replicas))
        topics.append(topic)
    return PartitionMap(offset=image.offset, timestamp_ms=image.timestamp_ms, topics=topics)


OPERATIONS: Final = (
    Operation(
        name="getPartitionMap",
        method="GET",
        path="/v1/partition-map",
        tag="Page",
        summary="Who leads every partition, and how many replicas are in sync",
        run=_map,
        answer=PartitionMap,
    ),
)
