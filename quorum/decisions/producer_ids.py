"""Handing out producer ids in blocks of 1,000. Kafka: `ProducerIdControlManager`.

AllocateProducerIds, version 0 (KIP-730).
"""

from typing import Final

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ...protocol.messages import NO_THROTTLE
from ..metadata.image import MetadataImage
from ..metadata.records import ProducerIdsRecord
from .answers import wire_code
from .broker_epochs import check_broker_epoch
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest, broker_of

PRODUCER_ID_BLOCK_SIZE = 1_000

_MAX_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest, _context: DecisionContext
) -> ControllerResult[AllocateProducerIdsResponse]:
    """Give a block to a broker; no id is given twice, and what a broker does not use is lost. Raises KafkaError."""
    broker_id, broker_epoch = NodeId(request.broker_id), BrokerEpoch(request.broker_epoch)
    check_broker_epoch(image, broker_id, broker_epoch)
    first = image.next_producer_id
    if first > _MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
        message = "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    return ControllerResult(
        records=(
            ProducerIdsRecord(
                broker_id=broker_id,
                broker_epoch=broker_epoch,
                next_producer_id=first + PRODUCER_ID_BLOCK_SIZE,
            ),
        ),
        response=AllocateProducerIdsResponse(
            throttle_time=NO_THROTTLE,
            error_code=wire_code(ErrorCode.NONE),
            producer_id_start=ProducerId(first),
            producer_id_len=i32(PRODUCER_ID_BLOCK_SIZE),
        ),
    )


ALLOCATE_PRODUCER_IDS: Final = ControllerRequest(ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids, broker_of)
