"""FindCoordinator 0 to 6: the coordinator of a group, or from 1 on of a transactional id (KIP-98).

It is the leader of the key's partition of `__consumer_offsets` or `__transaction_state`; from 4 on a request has many
keys (KIP-699). The first request creates the internal topic and is answered afterwards; Apache Kafka lets its clients
retry instead. Share groups have no coordinators yet: COORDINATOR_NOT_AVAILABLE, after which clients retry.

A client must be allowed to describe the group or transactional id; for share groups, CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ...protocol.messages import NO_THROTTLE, kio_error
from ..cluster.metadata_cache import MetadataCache
from ..cluster.rules.cluster_view import BrokerAddress, ClusterView
from ..cluster.suspected_peers import SuspectedPeers
from ..coordination.key_partitions import partition_of_key
from ..coordinators.internal_topic import InternalTopic
from ..network.handlers import Handlers
from ..network.request import RequestContext
from .permissions import REFUSALS, denied_names

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
"""Share groups (KIP-932)."""
KEY_TYPES: Final = (GROUP, TRANSACTION, SHARE)
_RESOURCE_TYPES: Final = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}


def register(
    handlers: Handlers,
    metadata: MetadataCache,
    offsets_topic: InternalTopic,
    transactions_topic: InternalTopic,
    suspected: SuspectedPeers,
) -> None:
    topics = {GROUP: offsets_topic, TRANSACTION: transactions_topic}

    async def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
        topic = topics.get(request.key_type)
        if topic is not None:
            denied = _denied(request, context)
            if not denied:
                return await find(topic, request, context)
            permitted = replace(
                request, coordinator_keys=tuple(key for key in request.coordinator_keys if key not in denied)
            )
            found: tuple[Coordinator, ...] = ()
            # If nothing is permitted, the topic is not created either.
            if permitted.coordinator_keys:
                try:
                    found = (await find(topic, permitted, context)).coordinators
                except KafkaError as error:
                    found = error_response(permitted, error).coordinators
            return _with_denied(request, denied, found)
        if request.key_type == SHARE:
            context.require_in_cluster(ApiKey.FIND_COORDINATOR, AclOperation.CLUSTER_ACTION)
        is_known = request.key_type in KEY_TYPES
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE if is_known else ErrorCode.INVALID_REQUEST)

    async def find(
        topic: InternalTopic, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        await topic.ensure()
        found = find_coordinators(metadata, topic.name, request, context.listener_name)
        node_ids = {coordinator.node_id for coordinator in found.coordinators}
        if not suspected.holds(node_ids):
            return found
        await suspected.settled(node_ids)
        return find_coordinators(metadata, topic.name, request, context.listener_name)

    handlers.add_message(ApiKey.FIND_COORDINATOR, handle, answer_error=error_response)


def _denied(request: FindCoordinatorRequest, context: RequestContext) -> Set[str]:
    return denied_names(
        context,
        ApiKey.FIND_COORDINATOR,
        AclOperation.DESCRIBE,
        _RESOURCE_TYPES[request.key_type],
        request.coordinator_keys,
    )


def _with_denied(
    request: FindCoordinatorRequest, denied: Set[str], found: tuple[Coordinator, ...]
) -> FindCoordinatorResponse:
    # Only versions below 4, with their one key, have a sentence for it.
    refusal = KafkaError(REFUSALS[_RESOURCE_TYPES[request.key_type]], "")
    rest = iter(found)
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(_failure(key, refusal) if key in denied else next(rest) for key in request.coordinator_keys),
    )


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
        error_message=error_info(error.code).sentence if error.message is None else error.message,
    )
