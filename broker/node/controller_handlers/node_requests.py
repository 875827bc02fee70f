"""What nodes of the cluster ask of a controller: what only they may ask, and the metadata log."""

from __future__ import annotations

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

from ....protocol.errors import KafkaError
from ....protocol.ids import NodeId
from ....protocol.messages import NO_THROTTLE, kio_error
from ....quorum.decisions.brokers import BROKER_REGISTRATION
from ....quorum.decisions.controllers import CONTROLLER_REGISTRATION
from ....quorum.decisions.directories import ASSIGN_REPLICAS_TO_DIRS
from ....quorum.decisions.heartbeats import BROKER_HEARTBEAT
from ....quorum.decisions.isr_changes import ALTER_PARTITION
from ....quorum.decisions.producer_ids import ALLOCATE_PRODUCER_IDS
from ...apis import metadata_fetch
from ...network.handlers import Handlers
from ...network.request import RequestContext
from .decided_request import add_decided
from .dependencies import ControllerHandlerDependencies


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    def note(message: BrokerHeartbeatRequest | BrokerRegistrationRequest, context: RequestContext) -> None:
        parts.heartbeats.note(NodeId(message.broker_id), context)

    add_decided(handlers, parts, BROKER_REGISTRATION, _registration_error, on_request=note)
    add_decided(handlers, parts, BROKER_HEARTBEAT, _heartbeat_error, on_request=note)
    add_decided(handlers, parts, ALLOCATE_PRODUCER_IDS, _producer_ids_error)
    add_decided(handlers, parts, ALTER_PARTITION, _alter_partition_error)
    add_decided(handlers, parts, ASSIGN_REPLICAS_TO_DIRS, _assignment_error)
    add_decided(handlers, parts, CONTROLLER_REGISTRATION, _controller_registration_error)
    metadata_fetch.register(
        handlers,
        metadata_fetch.MetadataFetchHandler(
            parts.controller, parts.snapshots, consensus=parts.consensus, loop=parts.loop
        ),
    )


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
