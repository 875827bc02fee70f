"""DescribeCluster 0 to 2: the brokers, or the controllers, and the cluster id (KIP-700).

1: endpoint type (KIP-919): a broker's listener describes brokers only, a controller's controllers only. 2: fenced
brokers (KIP-1073). As in Metadata, clients of brokers get a broker as the controller, which forwards their requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.metadata.image import MetadataImage
from ...quorum.metadata.records import NO_LEADER
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.cluster_view import OPERATIONS_NOT_ASKED_FOR, ClusterView
from ..network.handlers import Handlers
from ..network.request import RequestContext

BROKERS, CONTROLLERS = 1, 2
_NAMES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def register(handlers: Handlers, metadata: MetadataCache) -> None:
    def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
        operations = _operations(request, context)
        return describe_cluster(metadata.image, request, context.listener_name, metadata.node_id, operations)

    handlers.add_message(ApiKey.DESCRIBE_CLUSTER, handle, answer_error=error_response)


def register_for_controllers(
    handlers: Handlers, metadata: MetadataCache, leader_id: Callable[[], NodeId | None]
) -> None:
    """For the controllers' listener; `leader_id` returns the quorum leader that this node knows, or None.

    Controllers are described to those alone who may alter the cluster, as in Apache Kafka.
    """

    def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
        context.require_in_cluster(ApiKey.DESCRIBE_CLUSTER, AclOperation.ALTER)
        operations = _operations(request, context)
        return describe_controllers(metadata.image, request, context.listener_name, leader_id(), operations)

    handlers.add_message(ApiKey.DESCRIBE_CLUSTER, handle, answer_error=controllers_error)


def describe_cluster(
    image: MetadataImage, request: DescribeClusterRequest, listener_name: str, own_id: NodeId, operations: int
) -> DescribeClusterResponse:
    """Raises KafkaError if the request has another endpoint type."""
    _check_endpoint_type(request, BROKERS)
    view = ClusterView(image, listener_name, own_id)
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(ErrorCode.NONE),
        cluster_id=image.cluster_id or "",
        controller_id=BrokerId(view.controller_id),
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=BrokerId(broker.id),
                host=broker.host,
                port=i32(broker.port),
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
            for broker in (view.all_brokers if request.include_fenced_brokers else view.brokers)
        ),
        cluster_authorized_operations=i32(operations),
    )


def describe_controllers(
    image: MetadataImage,
    request: DescribeClusterRequest,
    listener_name: str,
    leader_id: NodeId | None,
    operations: int,
) -> DescribeClusterResponse:
    """Describes the controllers with a registered endpoint. Raises KafkaError as `describe_cluster` does."""
    _check_endpoint_type(request, CONTROLLERS)
    endpoints = {
        controller_id: endpoint
        for controller_id, controller in sorted(image.controllers.items())
        if (endpoint := controller.endpoint(listener_name)) is not None
    }
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(ErrorCode.NONE),
        endpoint_type=i8(CONTROLLERS),
        cluster_id=image.cluster_id or "",
        controller_id=BrokerId(leader_id if leader_id in endpoints else NO_LEADER),
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=BrokerId(controller_id),
                host=endpoint.host,
                port=i32(endpoint.port),
                rack=None,
                is_fenced=False,
            )
            for controller_id, endpoint in endpoints.items()
        ),
        cluster_authorized_operations=i32(operations),
    )


def _check_endpoint_type(request: DescribeClusterRequest, own: int) -> None:
    wanted = int(request.endpoint_type)
    if wanted not in _NAMES:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}")
    if wanted != own:
        message = (
            f"The request was sent to an endpoint of type {_NAMES[own]}, but we wanted an endpoint of type "
            f"{_NAMES[wanted]}"
        )
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)


def _operations(request: DescribeClusterRequest, context: RequestContext) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_ASKED_FOR
    return context.operations_in_cluster(ApiKey.DESCRIBE_CLUSTER)


def controllers_error(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return replace(error_response(request, error), endpoint_type=i8(CONTROLLERS))


def error_response(_request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        error_message=error.message,
        endpoint_type=i8(BROKERS),
        cluster_id="",
        brokers=(),
    )
