"""DescribeTransactions 0 and ListTransactions 0 to 2: administration of transactions (KIP-664).

ListTransactions 1 adds a minimum duration (KIP-994), 2 an RE2 pattern that the whole transactional id must match
(KIP-1152). ListTransactions lists the transactions that this node coordinates.

A client sees transactional ids that it may describe, and of their topics those that it may describe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import (
    DescribeTransactionsResponse,
    TopicData,
)
from kio.schema.describe_transactions.v0.response import (
    TransactionState as DescribedTransaction,
)
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse
from kio.schema.list_transactions.v2.response import TransactionState as ListedTransaction
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import TZAware, i16, i32, i32Timedelta

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ..coordinators.transaction_coordinator import TransactionCoordinator, TransactionPartitionState
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext
from ..transactions.transaction import NOT_STARTED, Transaction, TransactionPartition
from ..transactions.transaction_shard import TransactionShard
from ..transactions.transaction_state import TransactionState
from .listing import list_partitions
from .permissions import require
from .response_collector import ResponseCollector

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STATES: Final = {state.value: state for state in TransactionState}


def register(handlers: Handlers, transactions: TransactionCoordinator, now_ms: Callable[[], int]) -> None:
    administration = TransactionAdministration(transactions, now_ms)
    handlers.add_replying(ApiKey.DESCRIBE_TRANSACTIONS, administration.describe, answer_error=describe_error)
    handlers.add_replying(ApiKey.LIST_TRANSACTIONS, administration.list_all, answer_error=list_error)


class TransactionAdministration:
    def __init__(self, transactions: TransactionCoordinator, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the wall clock."""
        self._transactions = transactions
        self._now_ms = now_ms

    def describe(
        self,
        message: DescribeTransactionsRequest,
        request: Request,
        reply: Callable[[DescribeTransactionsResponse], None],
    ) -> None:
        context = request.context
        answers: ResponseCollector[DescribedTransaction] = ResponseCollector(
            len(message.transactional_ids),
            lambda states: reply(
                DescribeTransactionsResponse(
                    throttle_time=NO_THROTTLE,
                    transaction_states=tuple(_with_visible_topics(state, context) for state in states),
                )
            ),
        )
        for number, transactional_id in enumerate(message.transactional_ids):

            def answer_error(error: ErrorCode, transactional_id: str = transactional_id) -> DescribedTransaction:
                return _not_described(transactional_id, error)

            def describe(
                shard: TransactionShard, _new_producer_id: int | None, transactional_id: str = transactional_id
            ) -> DescribedTransaction:
                return _described(*shard.describe(transactional_id))

            place = answers.slot(number)
            try:
                require(
                    context,
                    ApiKey.DESCRIBE_TRANSACTIONS,
                    AclOperation.DESCRIBE,
                    ResourceType.TRANSACTIONAL_ID,
                    transactional_id,
                )
                self._transactions.ask(transactional_id, describe, place, answer_error)
            except KafkaError as error:
                place(answer_error(error.code))

    def list_all(
        self, message: ListTransactionsRequest, request: Request, reply: Callable[[ListTransactionsResponse], None]
    ) -> None:
        """Omits the transactions of partitions that this node does not coordinate any more, or cannot. Raises
        KafkaError if the pattern is invalid."""
        wanted = _Filter(message, self._now_ms())
        context = request.context

        def is_visible(listed: ListedTransaction) -> bool:
            return context.may(
                ApiKey.LIST_TRANSACTIONS,
                AclOperation.DESCRIBE,
                ResourceType.TRANSACTIONAL_ID,
                listed.transactional_id,
            )

        def transactions_of(partition: TransactionPartitionState) -> list[ListedTransaction]:
            return [_as_listed(transaction) for transaction in partition.shard if wanted.has(transaction)]

        list_partitions(
            self._transactions.coordinators,
            transactions_of,
            lambda error, listed: reply(_listed(error, wanted.unknown_states, list(filter(is_visible, listed)))),
        )


def _as_listed(transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(
        transactional_id=TransactionalId(transaction.id),
        producer_id=ProducerId(transaction.producer_id),
        transaction_state=transaction.state.value,
    )


class _Filter:
    def __init__(self, message: ListTransactionsRequest, now_ms: int) -> None:
        """Raises KafkaError(INVALID_REGULAR_EXPRESSION)."""
        self.unknown_states = tuple(name for name in message.state_filters if name not in _STATES)
        self._is_any_state = not message.state_filters
        self._states = {_STATES[name] for name in message.state_filters if name in _STATES}
        self._producer_ids = set(map(int, message.producer_id_filters))
        self._duration_ms = int(message.duration_filter)
        self._now_ms = now_ms
        self._pattern = _compiled(message.transactional_id_pattern) if message.transactional_id_pattern else None

    def has(self, transaction: Transaction) -> bool:
        return (
            (self._is_any_state or transaction.state in self._states)
            and (not self._producer_ids or transaction.producer_id in self._producer_ids)
            and (self._duration_ms < 0 or self._now_ms - transaction.started_ms > self._duration_ms)
            and (self._pattern is None or self._pattern.fullmatch(transaction.id) is not None)
        )


def _compiled(pattern: str) -> Any:
    # Loaded on first use: the import is slow, and few clients send a pattern.
    from ..groups.consumer.regular_expressions import compile_expression

    try:
        return compile_expression(pattern)
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{pattern}` is not a valid regular expression: {error}.",
        ) from error


def _described(transaction: Transaction, partitions: frozenset[TransactionPartition]) -> DescribedTransaction:
    indexes: dict[str, list[i32]] = {}
    for topic, index in sorted(partitions):
        indexes.setdefault(topic, []).append(i32(index))
    return DescribedTransaction(
        error_code=kio_error(ErrorCode.NONE),
        transactional_id=TransactionalId(transaction.id),
        transaction_state=transaction.state.value,
        transaction_timeout=_duration(transaction.timeout_ms),
        transaction_start_time=_time(transaction.started_ms),
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=i16(transaction.producer_epoch),
        topics=tuple(TopicData(topic=TopicName(topic), partitions=tuple(found)) for topic, found in indexes.items()),
    )


def _with_visible_topics(described: DescribedTransaction, context: RequestContext) -> DescribedTransaction:
    if context.authorizer is None:
        return described
    api_key = ApiKey.DESCRIBE_TRANSACTIONS
    return replace(
        described,
        topics=tuple(
            one
            for one in described.topics
            if context.may(api_key, AclOperation.DESCRIBE, ResourceType.TOPIC, one.topic)
        ),
    )


def _not_described(transactional_id: str, error: ErrorCode) -> DescribedTransaction:
    return DescribedTransaction(
        error_code=kio_error(error),
        transactional_id=TransactionalId(transactional_id),
        transaction_state="",
        transaction_timeout=_duration(0),
        transaction_start_time=_time(0),
        producer_id=ProducerId(0),
        producer_epoch=i16(0),
        topics=(),
    )


def describe_error(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        throttle_time=NO_THROTTLE,
        transaction_states=tuple(_not_described(one, error.code) for one in request.transactional_ids),
    )


def list_error(_request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return _listed(error.code, (), [])


def _listed(
    error: ErrorCode, unknown_states: tuple[str, ...], listed: list[ListedTransaction]
) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error),
        unknown_state_filters=unknown_states,
        transaction_states=() if error else tuple(listed),
    )


def _duration(milliseconds: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=milliseconds))


def _time(milliseconds: int) -> TZAware:
    """Kio's class has whole seconds only; the encoded field has milliseconds, and -1 if not started."""
    return cast(TZAware, None if milliseconds == NOT_STARTED else _EPOCH + timedelta(milliseconds=milliseconds))
