"""How much a decision has to do, before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...protocol.apis import ApiKey
from ...protocol.ids import NodeId
from ..configs.own_keys import BROKER_DRAINED
from ..metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from .heartbeats import GoneBroker
from .partition_changes import MIN_INSYNC_REPLICAS

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2.request import AlterConfigsRequest
    from kio.schema.alter_partition.v3.request import AlterPartitionRequest
    from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
    from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
    from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
    from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
    from kio.schema.create_topics.v7.request import CreateTopicsRequest
    from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
    from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest

INLINE_MAX: Final = 500
"""Partitions that a decision makes or changes in 15 ms, which is not too long for others to wait."""


def weight(image: MetadataImage, request: object) -> int:
    """Return how many partitions the decision of a request makes, changes or looks at, at most."""
    if request is None or isinstance(request, GoneBroker | int):
        # What the controller does of itself.
        return image.topics.partition_count
    weigh = _WEIGHTS.get(getattr(request, "__api_key__", None))
    return 0 if weigh is None else weigh(image, request)


def _of_every_partition(image: MetadataImage, _request: object) -> int:
    return image.topics.partition_count


def _of_new_topics(_image: MetadataImage, request: CreateTopicsRequest) -> int:
    return sum(max(topic.num_partitions, len(topic.assignments)) for topic in request.topics)


def _of_new_partitions(_image: MetadataImage, request: CreatePartitionsRequest) -> int:
    return sum(topic.count for topic in request.topics)


def _of_named_partitions(
    _image: MetadataImage, request: AlterPartitionRequest | AlterPartitionReassignmentsRequest
) -> int:
    return sum(len(topic.partitions) for topic in request.topics)


def _of_assigned_replicas(_image: MetadataImage, request: AssignReplicasToDirsRequest) -> int:
    return sum(len(topic.partitions) for directory in request.directories for topic in directory.topics)


def _of_elections(image: MetadataImage, request: ElectLeadersRequest) -> int:
    if request.topic_partitions is None:
        return image.topics.partition_count
    return sum(len(topic.partitions) for topic in request.topic_partitions)


def _of_heartbeat(image: MetadataImage, request: BrokerHeartbeatRequest) -> int:
    return image.topics.partition_count if _changes_state(image, request) else 0


def _of_configs(image: MetadataImage, request: IncrementalAlterConfigsRequest | AlterConfigsRequest) -> int:
    return image.topics.partition_count if _concerns_partitions(image, request) else 0


def _concerns_partitions(image: MetadataImage, request: IncrementalAlterConfigsRequest | AlterConfigsRequest) -> bool:
    names = {config.name for resource in request.resources for config in resource.configs}
    if int(request.__api_key__) == ApiKey.ALTER_CONFIGS:
        # What such a request does not name goes back to its default.
        for resource in request.resources:
            if int(resource.resource_type) == ConfigResourceType.BROKER:
                names |= image.configs.of(ConfigResource(resource.resource_type, resource.resource_name)).keys()
    return MIN_INSYNC_REPLICAS in names or BROKER_DRAINED in names


def _changes_state(image: MetadataImage, request: BrokerHeartbeatRequest) -> bool:
    broker = image.brokers.get(NodeId(request.broker_id))
    if broker is None:
        return False
    is_leaving = request.want_fence or request.want_shut_down or broker.in_controlled_shutdown
    return broker.is_fenced or is_leaving or bool(request.offline_log_dirs)


# By the key of the API, not by the class: most nodes never load most of the classes.
_WEIGHTS: Final[Mapping[int | None, Callable[[MetadataImage, Any], int]]] = {
    ApiKey.CREATE_TOPICS: _of_new_topics,
    ApiKey.CREATE_PARTITIONS: _of_new_partitions,
    ApiKey.ALTER_PARTITION: _of_named_partitions,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _of_named_partitions,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _of_assigned_replicas,
    ApiKey.ELECT_LEADERS: _of_elections,
    ApiKey.BROKER_HEARTBEAT: _of_heartbeat,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _of_configs,
    ApiKey.ALTER_CONFIGS: _of_configs,
    # Without eligible leader replicas no partition keeps any.
    ApiKey.UPDATE_FEATURES: _of_every_partition,
    # Brokers that come or go concern any partition.
    ApiKey.BROKER_REGISTRATION: _of_every_partition,
    ApiKey.UNREGISTER_BROKER: _of_every_partition,
}
