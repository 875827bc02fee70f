"""What a controller answers on its own listener: changes of the metadata, and the metadata log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.controller_registration.v0.response import ControllerRegistrationResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from ...protocol.acls import AclOperation
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_HEADER_TAGS, NO_THROTTLE, kio_error
from ...protocol.own_apis import ControllerOutcome, encode_outcome_tags
from ...quorum.controller.controller import Controller
from ...quorum.decisions.broker_removal import UNREGISTER_BROKER
from ...quorum.decisions.brokers import BROKER_REGISTRATION
from ...quorum.decisions.client_quotas import ALTER_CLIENT_QUOTAS
from ...quorum.decisions.configs import ALTER_CONFIGS
from ...quorum.decisions.controller_request import ControllerRequest
from ...quorum.decisions.controllers import CONTROLLER_REGISTRATION
from ...quorum.decisions.delegation_tokens import CREATE_TOKEN, EXPIRE_TOKEN, RENEW_TOKEN
from ...quorum.decisions.directories import ASSIGN_REPLICAS_TO_DIRS
from ...quorum.decisions.elections import ELECT_LEADERS
from ...quorum.decisions.features import UPDATE_FEATURES
from ...quorum.decisions.heartbeats import BROKER_HEARTBEAT
from ...quorum.decisions.isr_changes import ALTER_PARTITION
from ...quorum.decisions.partitions import CREATE_PARTITIONS
from ...quorum.decisions.producer_ids import ALLOCATE_PRODUCER_IDS
from ...quorum.decisions.reassignments import ALTER_PARTITION_REASSIGNMENTS
from ...quorum.decisions.scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
from ...quorum.decisions.topics import CREATE_TOPICS, DELETE_TOPICS
from ..apis import (
    alter_reassignments,
    client_quotas,
    config_permissions,
    config_results,
    delegation_tokens,
    elect_leaders,
    scram_credentials,
    topic_permissions,
    topics,
    unregister_broker,
    update_features,
)
from ..cluster.controller_channel import LocalControllerChannel
from ..cluster.rules.repeated_change import is_once
from ..network.handlers import Handlers, HeaderTags
from ..network.request import RequestContext
from ..security.client_changes import Guard, ask_controller, in_cluster
from .heartbeat_connections import HeartbeatConnections

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


def _altering(api_key: ApiKey) -> Guard[Any, Any]:
    return in_cluster(api_key, AclOperation.ALTER)


def outcome_tags(controller: Controller) -> HeaderTags:
    """Return what the headers of responses to nodes of this cluster add (`ControllerOutcome`)."""

    def encode(context: RequestContext, error: KafkaError | None) -> bytes:
        if context.node_id is None:
            return NO_HEADER_TAGS
        return encode_outcome_tags(ControllerOutcome(0 if error is None else int(error.code), controller.image.offset))

    return encode


def register(
    handlers: Handlers, controller: Controller, heartbeats: HeartbeatConnections, header_tags: HeaderTags
) -> None:
    """Every request that a controller alone decides. `heartbeats` notes the connection of each broker."""

    def add(
        request: ControllerRequest[RequestT, ResponseT],
        answer_error: Callable[[RequestT, KafkaError], ResponseT],
        guard: Guard[RequestT, ResponseT] | None = None,
    ) -> None:
        """`guard` is of what clients may ask for."""

        def handle(message: RequestT, context: RequestContext) -> Awaitable[ResponseT]:
            if request.sender is not None and context.node_id != request.sender(message):
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            if isinstance(message, BrokerHeartbeatRequest | BrokerRegistrationRequest):
                heartbeats.note(NodeId(message.broker_id), context)
            # A broker gives what it forwards a name (`broker/cluster/remote_controller_channel.py`).
            name = context.client_id if context.node_id is not None and is_once(message) else None
            if context.node_id is not None or guard is None:
                return controller.submit(
                    request.decision,
                    message,
                    name=name or "",
                    is_of_client=not request.is_for_brokers,
                    requester=context.requester,
                )
            return ask_controller(local, request, message, context, guard)

        handlers.add_message(
            request.api_key,
            handle,
            answer_error=answer_error,
            header_tags=header_tags,
            is_forwarded=guard is not None,
            has_version=request.first_strict_version > 0,
        )

    local = LocalControllerChannel(controller)
    delete_topics = partial(topic_permissions.delete_topics, image=lambda: controller.image)
    add(CREATE_TOPICS, topics.create_topics_error, topic_permissions.create_topics)
    add(DELETE_TOPICS, topics.delete_topics_error, delete_topics)
    add(CREATE_PARTITIONS, topics.create_partitions_error, topic_permissions.create_partitions)
    add(ELECT_LEADERS, elect_leaders.error_response, _altering(ApiKey.ELECT_LEADERS))
    add(
        ALTER_PARTITION_REASSIGNMENTS,
        alter_reassignments.error_response,
        _altering(ApiKey.ALTER_PARTITION_REASSIGNMENTS),
    )
    add(ALTER_CONFIGS, config_results.legacy_error, config_permissions.alter_legacy)
    add(ALTER_CLIENT_QUOTAS, client_quotas.alter_error, client_quotas.alter)
    add(
        ALTER_USER_SCRAM_CREDENTIALS,
        scram_credentials.alter_error,
        _altering(ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    )
    add(UPDATE_FEATURES, update_features.error_response, _altering(ApiKey.UPDATE_FEATURES))
    add(UNREGISTER_BROKER, unregister_broker.error_response, _altering(ApiKey.UNREGISTER_BROKER))
    add(CREATE_TOKEN, delegation_tokens.create_error, delegation_tokens.create_permitted)
    add(RENEW_TOKEN, delegation_tokens.renew_error, delegation_tokens.of_client)
    add(EXPIRE_TOKEN, delegation_tokens.expire_error, delegation_tokens.of_client)
    add(BROKER_REGISTRATION, _registration_error)
    add(BROKER_HEARTBEAT, _heartbeat_error)
    add(ALLOCATE_PRODUCER_IDS, _producer_ids_error)
    add(ALTER_PARTITION, _alter_partition_error)
    add(ASSIGN_REPLICAS_TO_DIRS, _assignment_error)
    add(CONTROLLER_REGISTRATION, _controller_registration_error)


def _registration_error(_request: BrokerRegistrationRequest, error: KafkaError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code))


def _heartbeat_error(_request: BrokerHeartbeatRequest, error: KafkaError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        is_fenced=True,
        is_caught_up=False,
        should_shut_down=False,
    )


def _producer_ids_error(_request: AllocateProducerIdsRequest, error: KafkaError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        producer_id_start=ProducerId(-1),
        producer_id_len=i32(0),
    )


def _alter_partition_error(_request: AlterPartitionRequest, error: KafkaError) -> AlterPartitionResponse:
    return AlterPartitionResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code), topics=())


def _assignment_error(_request: AssignReplicasToDirsRequest, error: KafkaError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error.code), directories=())


def _controller_registration_error(
    _request: ControllerRegistrationRequest, error: KafkaError
) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(
        throttle_time=NO_THROTTLE, error_code=kio_error(error.code), error_message=error.message
    )
