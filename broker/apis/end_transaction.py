"""EndTxn 0 to 5: commits or aborts a transaction; the response follows the decision, markers follow the response.

Version 5 belongs to transaction version 2: every end bumps the producer epoch, and the response has the producer id and
epoch to continue with (KIP-890). Versions below 2 do not have PRODUCER_FENCED. A client must be allowed to write with
the transactional id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..network.handlers import Handlers
from ..network.request import Request
from ..transactions.transaction_shard import NO_PRODUCER, Producer, TransactionShard
from .init_producer_id import fenced_as_known
from .permissions import require

FENCED_SINCE: Final = 2
RAISES_EPOCH_SINCE: Final = 5


def register(handlers: Handlers, transactions: TransactionCoordinator) -> None:
    def begin(message: EndTxnRequest, request: Request, reply: Callable[[EndTxnResponse], None]) -> None:
        require(
            request.context,
            ApiKey.END_TXN,
            AclOperation.WRITE,
            ResourceType.TRANSACTIONAL_ID,
            message.transactional_id,
        )
        client_version = 2 if request.api_version >= RAISES_EPOCH_SINCE else 0

        def end(shard: TransactionShard, new_producer_id: int | None) -> EndTxnResponse:
            producer = shard.end(
                message.transactional_id,
                Producer(int(message.producer_id), int(message.producer_epoch)),
                is_commit=message.committed,
                client_version=client_version,
                new_producer_id=new_producer_id,
            )
            return _response(ErrorCode.NONE, producer)

        def answer_error(error: ErrorCode) -> EndTxnResponse:
            return _response(fenced_as_known(KafkaError(error), request.api_version, FENCED_SINCE).code, NO_PRODUCER)

        try:
            transactions.ask(message.transactional_id, end, reply, answer_error)
        except KafkaError as error:
            raise fenced_as_known(error, request.api_version, FENCED_SINCE) from error

    handlers.add_replying(ApiKey.END_TXN, begin, answer_error=error_response)


def error_response(_request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return _response(error.code, NO_PRODUCER)


def _response(error: ErrorCode, producer: Producer) -> EndTxnResponse:
    return EndTxnResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
    )
