"""FindCoordinator 0 to 6: the coordinator of a group, or from 1 on of a transactional id (KIP-98).

It is the leader of the key's partition of `__consumer_offsets` or `__transaction_state`; from 4 on a request has many
keys (KIP-699). The first request creates the internal topic and is answered afterwards; Apache Kafka lets its clients
retry instead. Share groups have no coordinators yet: COORDINATOR_NOT_AVAILABLE, after which clients retry.
"""

from __future__ import annotations

from typing import Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.cluster_view import BrokerAddress, ClusterView
from ..coordination.key_partitions import partition_of_key
from ..coordinators.internal_topic import InternalTopic
from ..network.handlers import Handlers
from ..network.request import RequestContext

GROUP: Final = 0
TRANSACTION: Final = 1
KEY_TYPES: Final = (0, 1, 2)
"""Groups, transactions, share groups (KIP-932)."""


def register(
    handlers: Handlers, metadata: MetadataCache, offsets_topic: InternalTopic, transactions_topic: InternalTopic
) -> None:
    topics = {GROUP: offsets_topic, TRANSACTION: transactions_topic}

    async def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
        topic = topics.get(request.key_type)
        if topic is not None:
            await topic.ensure()
            return find_coordinators(metadata, topic.name, request, context.listener_name)
        is_known = request.key_type in KEY_TYPES
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE if is_known else ErrorCode.INVALID_REQUEST)

    handlers.add_message(ApiKey.FIND_COORDINATOR, handle, answer_error=error_response)


def find_coordinators(
    metadata: MetadataCache, topic: str, request: FindCoordinatorRequest, listener_name: str
) -> FindCoordinatorResponse:
    view = ClusterView(metadata.image, listener_name)
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(_coordinator(key, _leader(view, topic, key)) for key in request.coordinator_keys),
    )


def _leader(view: ClusterView, topic: str, key: str) -> BrokerAddress | None:
    found = view.image.topics.by_name.get(topic)
    if found is None:
        return None
    leader = found.partitions[partition_of_key(key, len(found.partitions))].leader
    return next((broker for broker in view.brokers if broker.id == leader), None)


def _coordinator(key: str, address: BrokerAddress | None) -> Coordinator:
    if address is None:
        return _failure(key, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return Coordinator(
        key=key,
        node_id=BrokerId(address.id),
        host=address.host,
        port=i32(address.port),
        error_code=kio_error(ErrorCode.NONE),
        error_message="",
    )


def error_response(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE, coordinators=tuple(_failure(key, error) for key in request.coordinator_keys)
    )


def _failure(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=BrokerId(-1),
        host="",
        port=i32(-1),
        error_code=kio_error(error.code),
        error_message=error.message or error_info(error.code).sentence,
    )
