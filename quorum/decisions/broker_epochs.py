"""Requests of a process that is no longer the broker it says it is are refused."""

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ..metadata.image import BrokerRegistration, MetadataImage


def check_broker_epoch(image: MetadataImage, broker_id: NodeId, broker_epoch: BrokerEpoch) -> BrokerRegistration:
    """Return the registration. Raises KafkaError(BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH)."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if broker.epoch != broker_epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker
