"""The end of a broker's registration: UnregisterBroker, version 0 (KIP-631). Kafka: `ClusterControlManager`."""

from typing import Final

from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import NodeId
from ...protocol.messages import NO_THROTTLE
from ..configs.own_keys import BROKER_DRAINED
from ..metadata.image import ConfigResourceType, MetadataImage
from ..metadata.records import ConfigRecord, UnregisterBrokerRecord
from .answers import wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest
from .partition_changes import broker_changes


def unregister_broker(
    image: MetadataImage, request: UnregisterBrokerRequest, context: DecisionContext
) -> ControllerResult[UnregisterBrokerResponse]:
    """Let a broker be no part of the cluster any more; it leads nothing and is in no ISR from then on.

    A drain ends with it: the next broker of that id is a new one. As in Kafka, it need not be fenced for that. One that
    runs is not let in again before it has been restarted; it stays a replica of its partitions, and eligible to lead
    them, until these are reassigned.

    Raises KafkaError(BROKER_ID_NOT_REGISTERED).
    """
    broker = image.brokers.get(NodeId(request.broker_id))
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    moved = broker_changes(image, context.config, lambda partition: broker.id in partition.isr, leaving=broker.id)
    undrained = [_undrained(broker.id)] if broker.id in image.configs.drained_brokers else []
    return ControllerResult(
        records=(*moved, *undrained, UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)),
        response=UnregisterBrokerResponse(
            throttle_time=NO_THROTTLE, error_code=wire_code(ErrorCode.NONE), error_message=None
        ),
        left_broker=broker.id,
    )


def _undrained(broker_id: NodeId) -> ConfigRecord:
    return ConfigRecord(
        resource_type=ConfigResourceType.BROKER, resource_name=str(broker_id), name=BROKER_DRAINED, value=None
    )


UNREGISTER_BROKER: Final = ControllerRequest(ApiKey.UNREGISTER_BROKER, unregister_broker)
