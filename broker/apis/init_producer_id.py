"""InitProducerId, versions 0 to 5: producer id and epoch for idempotent and for transactional producers (KIP-98).

Without a transactional id every request gets a new producer id with epoch 0, also one with an id and epoch to bump
(version 3, KIP-360): nothing depends on the old id. With a transactional id its coordinator answers, see
`broker/transactions/transaction_shard.py`; versions below 4 do not have PRODUCER_FENCED. Two-phase commit (KIP-939)
needs versions that Apache Kafka 4.3 does not serve either.

A client must be allowed to write with the transactional id; without one, to write to some topic, or IDEMPOTENT_WRITE in
the cluster (KIP-679).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..cluster.producer_ids import ProducerIds
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext
from ..transactions.transaction_shard import NO_PRODUCER, Producer, TransactionShard
from .permissions import require

FIRST_EPOCH = 0
FENCED_SINCE = 4


def register(handlers: Handlers, producer_ids: ProducerIds, transactions: TransactionCoordinator) -> None:
    def begin(
        message: InitProducerIdRequest, request: Request, reply: Callable[[InitProducerIdResponse], None]
    ) -> None:
        _check_permission(message, request.context)
        expected = _expected(message)
        if message.transactional_id is None:
            transactions.start(_begin_idempotent(producer_ids, reply))
            return
        transactional_id = message.transactional_id
        timeout_ms = message.transaction_timeout // timedelta(milliseconds=1)

        def initialize(shard: TransactionShard, new_producer_id: int | None) -> InitProducerIdResponse:
            producer = shard.init_producer_id(transactional_id, timeout_ms, expected, new_producer_id)
            return _response(ErrorCode.NONE, producer)

        def answer_error(error: ErrorCode) -> InitProducerIdResponse:
            return error_response(message, fenced_as_known(KafkaError(error), request.api_version, FENCED_SINCE))

        try:
            transactions.ask(transactional_id, initialize, reply, answer_error)
        except KafkaError as error:
            raise fenced_as_known(error, request.api_version, FENCED_SINCE) from error

    handlers.add_replying(ApiKey.INIT_PRODUCER_ID, begin, answer_error=error_response)


async def _begin_idempotent(producer_ids: ProducerIds, reply: Callable[[InitProducerIdResponse], None]) -> None:
    try:
        reply(_response(ErrorCode.NONE, Producer(await producer_ids.next_id(), FIRST_EPOCH)))
    except KafkaError as error:
        reply(_response(error.code, NO_PRODUCER))
    except asyncio.CancelledError:
        reply(_response(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER))
        raise


def _check_permission(message: InitProducerIdRequest, context: RequestContext) -> None:
    """Raises KafkaError."""
    api_key = ApiKey.INIT_PRODUCER_ID
    if message.transactional_id is not None:
        require(context, api_key, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    elif not (
        context.may_in_cluster(api_key, AclOperation.IDEMPOTENT_WRITE, is_logged=False)
        or context.may_some(AclOperation.WRITE, ResourceType.TOPIC)
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _expected(message: InitProducerIdRequest) -> Producer | None:
    """Returns the producer id and epoch of the request, None if it has none. Raises KafkaError."""
    has_id, has_epoch = message.producer_id != NO_PRODUCER_ID, message.producer_epoch != NO_PRODUCER_EPOCH
    if has_id is not has_epoch or message.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return Producer(int(message.producer_id), int(message.producer_epoch)) if has_id else None


def fenced_as_known(error: KafkaError, api_version: int, fenced_since: int) -> KafkaError:
    """Maps PRODUCER_FENCED to the older INVALID_PRODUCER_EPOCH for versions below `fenced_since`."""
    if error.code is ErrorCode.PRODUCER_FENCED and api_version < fenced_since:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error


def error_response(_request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return _response(error.code, NO_PRODUCER)


def _response(error: ErrorCode, producer: Producer) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
    )
