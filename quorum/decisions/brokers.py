"""Who the brokers are: their registration. Kafka: `ClusterControlManager`.

BrokerRegistration, versions 0-4 (KIP-631, KIP-858 log directories, KIP-966 previous broker epoch). What happens to a
registered broker afterwards is in `heartbeats.py`, and in `broker_removal.py`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.static.primitive import i64

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ...protocol.messages import NO_THROTTLE
from ..metadata.image import BrokerRegistration, MetadataImage
from ..metadata.incarnations import is_later_start
from ..metadata.records import (
    MetadataRecord,
    RegisterBrokerRecord,
    SupportedFeature,
)
from .answers import ZERO_ID, base64_id, wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest, broker_of
from .partition_changes import broker_changes
from .placement import is_reserved_directory
from .registration_fields import endpoints_of, features_of


def register_broker(
    image: MetadataImage, request: BrokerRegistrationRequest, context: DecisionContext
) -> ControllerResult[BrokerRegistrationResponse]:
    """Let a process be a broker, fenced until its heartbeats show that it is ready.

    The registration of a new incarnation is, in the same batch, the end of the old one: its leaderships move and leader
    epochs rise. When the old process did not stop cleanly (the previous epoch does not match), it also leaves ISR and
    ELR: it may have lost what it acknowledged but had not synced (KIP-966).

    Raises KafkaError(INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, INVALID_REGISTRATION,
    UNSUPPORTED_VERSION).
    """
    if request.cluster_id != image.cluster_id:
        message = f"Expected cluster ID {image.cluster_id}, but got cluster ID {request.cluster_id}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    broker_id = NodeId(request.broker_id)
    incarnation_id = request.incarnation_id or ZERO_ID
    directories = tuple([directory or ZERO_ID for directory in request.log_dirs])
    existing = image.brokers.get(broker_id)
    is_amended = existing is not None and existing.incarnation_id == incarnation_id
    if existing is not None and not is_amended:
        _check_successor(existing, incarnation_id, directories, context)
    _check_directories(image, broker_id, directories)
    features = features_of(request.features)
    _check_features(image, features)
    records: list[MetadataRecord] = []
    if not is_amended:
        # After an unregistration the last stop and the disks of the broker are unknown.
        is_clean = existing is not None and BrokerEpoch(request.previous_broker_epoch) == existing.epoch
        records += broker_changes(
            image,
            context.config,
            lambda partition: broker_id in partition.replicas,
            leaving=broker_id,
            is_unclean=not is_clean,
            has_other_disks=existing is None or not set(directories) & set(existing.directories),
        )
    broker_epoch = existing.epoch if is_amended and existing is not None else BrokerEpoch(context.next_offset)
    records.append(
        RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=incarnation_id,
            broker_epoch=broker_epoch,
            endpoints=endpoints_of(request.listeners),
            features=features,
            rack=request.rack,
            is_fenced=existing.is_fenced if is_amended and existing is not None else True,
            in_controlled_shutdown=is_amended and existing is not None and existing.in_controlled_shutdown,
            log_dirs=directories,
            # Until the first heartbeat of this process says.
            cordoned_log_dirs=tuple([one for one in existing.cordoned_directories if one in directories])
            if existing is not None
            else (),
        )
    )
    return ControllerResult(
        records=tuple(records),
        response=BrokerRegistrationResponse(
            throttle_time=NO_THROTTLE, error_code=wire_code(ErrorCode.NONE), broker_epoch=i64(broker_epoch)
        ),
        heard_broker=broker_id,
    )


def _check_successor(
    existing: BrokerRegistration, incarnation_id: UUID, directories: Sequence[UUID], context: DecisionContext
) -> None:
    """Refuse a second process under one id while the first may be alive.

    A process that started later than the registered one on a log directory of it holds the lock, so that one is gone.
    An earlier one is itself gone, and its request was held up on its way. A broker on its way out makes room at once.
    """
    if existing.in_controlled_shutdown:
        return
    if set(directories) & set(existing.directories) and is_later_start(incarnation_id, existing.incarnation_id):
        return
    if context.has_live_session(existing.id):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session.",
        )


def _check_directories(image: MetadataImage, broker_id: NodeId, directories: Sequence[UUID]) -> None:
    if not directories:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if any(is_reserved_directory(directory) for directory in directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for other in image.brokers.values():
        for directory in directories:
            if other.id != broker_id and directory in other.directories:
                message = f"Broker {other.id} is already registered with directory {base64_id(directory)}"
                raise KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def _check_features(image: MetadataImage, features: Sequence[SupportedFeature]) -> None:
    supported = {feature.name: feature for feature in features}
    for name in supported.keys() | image.features.keys():
        feature = supported.get(name) or SupportedFeature(name=name, min_supported_version=0, max_supported_version=0)
        finalized = image.features.get(name, 0)
        if not feature.min_supported_version <= finalized <= feature.max_supported_version:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {finalized} of {name}. The "
                f"broker wants a version between {feature.min_supported_version} and "
                f"{feature.max_supported_version}, inclusive.",
            )


BROKER_REGISTRATION: Final = ControllerRequest(ApiKey.BROKER_REGISTRATION, register_broker, broker_of)
