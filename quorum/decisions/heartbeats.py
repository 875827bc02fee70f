"""Whether the brokers may serve: heartbeats, fencing, controlled shutdown.

BrokerHeartbeat, versions 0-2 (KIP-631, KIP-841, KIP-858, KIP-1066). The states of a registered broker, and what leads
out of them:

| state               | leaves by                                                       | to                  |
|---------------------|-----------------------------------------------------------------|---------------------|
| fenced              | heartbeat that has replayed its registration, wanting no fence  | active              |
| active              | heartbeat that wants a fence, or to shut down leading nothing   | fenced              |
| active              | heartbeat that wants to shut down while it leads partitions     | controlled shutdown |
| active              | end of its session                                              | fenced              |
| active              | end of its process (`fast_fencing.py`)                          | fenced              |
| controlled shutdown | heartbeat when it leads nothing any more                        | fenced              |
| any                 | registration of another process (`brokers.py`)                  | fenced              |
"""

from typing import Final, NamedTuple

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.ids import BrokerEpoch, NodeId
from ...protocol.messages import NO_THROTTLE
from ..metadata.features import has_cordoned_directories
from ..metadata.image import BrokerRegistration, MetadataImage
from ..metadata.records import NO_LEADER, BrokerRegistrationChangeRecord, MetadataRecord
from .answers import wire_code
from .broker_epochs import check_broker_epoch
from .change import replayed
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest, broker_of
from .partition_changes import broker_changes, partitions_of


def heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: DecisionContext
) -> ControllerResult[BrokerHeartbeatResponse]:
    """Move a broker to the state that it asks for, when it may.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH).
    """
    broker = check_broker_epoch(image, NodeId(request.broker_id), BrokerEpoch(request.broker_epoch))
    is_caught_up = request.current_metadata_offset >= broker.epoch
    offline = _offline_directories(image, broker, request, context)
    if offline:
        # First, so that the following elections choose no replica in these directories.
        image = replayed(image, offline)
        broker = image.brokers[broker.id]
    records: list[MetadataRecord] = _cordoned_directories(image, broker, request)
    if records:
        image = replayed(image, records)
        broker = image.brokers[broker.id]
        offline = [*offline, *records]
        records = []
    is_fenced, should_shut_down = broker.is_fenced, False
    if broker.is_fenced:
        should_shut_down = request.want_shut_down
        if not (request.want_shut_down or request.want_fence) and is_caught_up:
            records, is_fenced = _unfence(image, broker, context), False
    elif request.want_fence:
        records, is_fenced, should_shut_down = fence(image, broker, context), True, request.want_shut_down
    elif broker.in_controlled_shutdown or request.want_shut_down:
        if not _leads_any(image, broker.id):
            records, is_fenced, should_shut_down = fence(image, broker, context, has_said_so=True), True, True
        elif not broker.in_controlled_shutdown:
            change = BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=True
            )
            records = [change, *_without(image, broker, context)]
    return ControllerResult(
        records=(*offline, *records),
        response=BrokerHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=wire_code(ErrorCode.NONE),
            is_caught_up=is_caught_up,
            is_fenced=is_fenced,
            should_shut_down=should_shut_down,
        ),
        heard_broker=broker.id,
        left_broker=broker.id if should_shut_down else None,
        heard_offset=int(request.current_metadata_offset),
    )


def fence_expired(image: MetadataImage, broker_id: NodeId, context: DecisionContext) -> ControllerResult[bool]:
    """Shut out a broker whose session is over, and forget the session; the answer tells whether it was active."""
    if context.has_live_session(broker_id):
        return ControllerResult(records=(), response=False)
    broker = image.brokers.get(broker_id)
    if broker is None or broker.is_fenced:
        return ControllerResult(records=(), response=False, left_broker=broker_id)
    return ControllerResult(records=tuple(fence(image, broker, context)), response=True, left_broker=broker_id)


class GoneBroker(NamedTuple):
    """A broker process that is gone: its port refuses connections."""

    broker_id: NodeId
    broker_epoch: BrokerEpoch


def fence_gone(image: MetadataImage, gone: GoneBroker, context: DecisionContext) -> ControllerResult[bool]:
    """Shut out a broker whose process is gone; the answer tells whether that one was active."""
    broker = image.brokers.get(gone.broker_id)
    if broker is None or broker.epoch != gone.broker_epoch or not broker.is_active:
        return ControllerResult(records=(), response=False)
    return ControllerResult(records=tuple(fence(image, broker, context)), response=True, left_broker=broker.id)


def fence(
    image: MetadataImage, broker: BrokerRegistration, context: DecisionContext, *, has_said_so: bool = False
) -> list[MetadataRecord]:
    """Return the records that shut a broker out: others lead in its place where they can.

    One that `has_said_so` goes by a controlled shutdown.
    """
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        is_fenced=True,
        in_controlled_shutdown=True if has_said_so else None,
    )
    return [*_without(image, broker, context), change]


def _unfence(image: MetadataImage, broker: BrokerRegistration, context: DecisionContext) -> list[MetadataRecord]:
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, is_fenced=False)
    elected = broker_changes(
        image,
        context.config,
        lambda partition: partition.leader == NO_LEADER and broker.id in partition.replicas,
        joining=broker.id,
    )
    return [change, *elected]


def _without(image: MetadataImage, broker: BrokerRegistration, context: DecisionContext) -> list[MetadataRecord]:
    """Return the records that take a broker out of every ISR and leadership; it stays eligible."""
    return broker_changes(image, context.config, lambda partition: broker.id in partition.isr, leaving=broker.id)


def _offline_directories(
    image: MetadataImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest, context: DecisionContext
) -> list[MetadataRecord]:
    """Return the records that take replicas in failed directories out of service (KIP-858)."""
    offline = {directory for directory in request.offline_log_dirs if directory in broker.directories}
    if not offline:
        return []
    remaining = tuple([directory for directory in broker.directories if directory not in offline])
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining)
    moved = broker_changes(
        image,
        context.config,
        lambda partition: broker.id in partition.isr and partition.directory_of(broker.id) in offline,
        leaving=broker.id,
    )
    return [*moved, change]


def _cordoned_directories(
    image: MetadataImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[MetadataRecord]:
    """Return the record of the directories that take no new replica from now on (KIP-1066); none for no change."""
    if request.cordoned_log_dirs is None or not has_cordoned_directories(image.features):
        return []
    cordoned = tuple([directory for directory in broker.directories if directory in request.cordoned_log_dirs])
    if cordoned == broker.cordoned_directories:
        return []
    return [BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned)]


def _leads_any(image: MetadataImage, broker_id: NodeId) -> bool:
    return any(partitions_of(image, lambda partition: partition.leader == broker_id))


BROKER_HEARTBEAT: Final = ControllerRequest(ApiKey.BROKER_HEARTBEAT, heartbeat, broker_of)
