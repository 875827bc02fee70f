"""DescribeCluster 0 to 2: the brokers and the cluster's id (KIP-700).

1: which kind of endpoint is meant (KIP-919): a broker's listener tells of brokers only. 2: fenced brokers (KIP-1073).
The controller is a broker that passes requests on to it, as in Metadata.
"""

from __future__ import annotations

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import kio_error
from ...quorum.image import MetadataImage
from ..cluster_view import CLUSTER_AUTHORIZED_OPERATIONS, OPERATIONS_NOT_ASKED_FOR, ClusterView
from ..metadata_view import MetadataView
from ..network.handlers import Handlers
from ..network.request import RequestContext
from .values import NO_THROTTLE

BROKERS, CONTROLLERS = 1, 2


def register(handlers: Handlers, metadata: MetadataView) -> None:
    def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
        return describe_cluster(metadata.image, request, context.listener_name, metadata.node_id)

    handlers.add_message(ApiKey.DESCRIBE_CLUSTER, handle, answer_error=error_response)


def describe_cluster(
    image: MetadataImage, request: DescribeClusterRequest, listener_name: str, own_id: int
) -> DescribeClusterResponse:
    """Raises KafkaError when the request asks for another kind of endpoint."""
    if request.endpoint_type == CONTROLLERS:
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)
    if request.endpoint_type != BROKERS:
        message = f"Unsupported endpoint type {request.endpoint_type}"
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, message)
    view = ClusterView(image, listener_name, own_id)
    operations = (
        CLUSTER_AUTHORIZED_OPERATIONS if request.include_cluster_authorized_operations else OPERATIONS_NOT_ASKED_FOR
    )
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


def error_response(_request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        error_message=error.message,
        endpoint_type=i8(BROKERS),
        cluster_id="",
        brokers=(),
    )
