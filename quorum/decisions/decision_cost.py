"""How much a decision has to do, before it is made."""

from typing import Final

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.update_features.v1.request import UpdateFeaturesRequest as UpdateFeaturesRequestV1
from kio.schema.update_features.v2.request import UpdateFeaturesRequest

from ...protocol.ids import NodeId
from ..configs.own_keys import BROKER_DRAINED
from ..metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from .configs import MIN_INSYNC_REPLICAS
from .heartbeats import GoneBroker

INLINE_MAX: Final = 500
"""Partitions that a decision makes or changes in 15 ms, which is not too long for others to wait."""


def weight(image: MetadataImage, request: object) -> int:
    """Return how many partitions the decision of a request makes, changes or looks at, at most."""
    match request:
        case CreateTopicsRequest():
            return sum(max(topic.num_partitions, len(topic.assignments)) for topic in request.topics)
        case CreatePartitionsRequest():
            return sum(topic.count for topic in request.topics)
        case AlterPartitionRequest() | AlterPartitionReassignmentsRequest():
            return sum(len(topic.partitions) for topic in request.topics)
        case AssignReplicasToDirsRequest():
            return sum(len(topic.partitions) for directory in request.directories for topic in directory.topics)
        case ElectLeadersRequest():
            if request.topic_partitions is None:
                return image.topics.partition_count
            return sum(len(topic.partitions) for topic in request.topic_partitions)
        case BrokerHeartbeatRequest():
            return image.topics.partition_count if _changes_state(image, request) else 0
        case IncrementalAlterConfigsRequest() | AlterConfigsRequest():
            return image.topics.partition_count if _concerns_partitions(image, request) else 0
        case UpdateFeaturesRequestV1() | UpdateFeaturesRequest():
            # Without eligible leader replicas no partition keeps any.
            return image.topics.partition_count
        case BrokerRegistrationRequest() | UnregisterBrokerRequest() | GoneBroker() | int() | None:
            # Brokers that come or go, and what the controller does of itself, concern any partition.
            return image.topics.partition_count
        case _:
            return 0


def _concerns_partitions(image: MetadataImage, request: IncrementalAlterConfigsRequest | AlterConfigsRequest) -> bool:
    names = {config.name for resource in request.resources for config in resource.configs}
    if isinstance(request, AlterConfigsRequest):
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
