"""InitProducerId, versions 0 to 5: an identity for idempotent producers (KIP-98).

Without a transactional id every request gets a new id with epoch 0, also one that brings an id and an epoch to be
raised (version 3, KIP-360): nothing depends on who had the old one. With one the answer is COORDINATOR_NOT_AVAILABLE,
which clients retry: transactions are not built yet.
"""

from __future__ import annotations

from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ...protocol.apis import ApiKey
from ...protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import kio_error
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..producer_ids import ProducerIds
from .values import NO_THROTTLE

FIRST_EPOCH = 0


def register(handlers: Handlers, producer_ids: ProducerIds) -> None:
    async def handle(request: InitProducerIdRequest, _context: RequestContext) -> InitProducerIdResponse:
        return await init_producer_id(producer_ids, request)

    handlers.add_message(ApiKey.INIT_PRODUCER_ID, handle, answer_error=error_response)


async def init_producer_id(producer_ids: ProducerIds, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Raises KafkaError."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _response(ErrorCode.NONE, await producer_ids.next_id(), FIRST_EPOCH)


def error_response(_request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    # What a client can do about a controller that is not there is what it does about a coordinator: come back.
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if error.code is ErrorCode.NOT_CONTROLLER else error.code
    return _response(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def _response(error: ErrorCode, producer_id: int, producer_epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(producer_epoch),
    )
