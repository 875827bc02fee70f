"""AddPartitionsToTxn 0 to 5 and AddOffsetsToTxn 0 to 4: add partitions to a transaction before writes to them.

Up to version 3 producers send AddPartitionsToTxn, for one transaction. From 4 on only brokers do, for many, on behalf
of producers: to verify that partitions are in a transaction, or, with transaction version 2, to add them (KIP-890).
Offsets of a group are added as the group's partition of `__consumer_offsets`. Versions below 2 do not have
PRODUCER_FENCED.

A producer must be allowed to write with the transactional id and to the topics, of which none is internal, or to read
the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse
from kio.schema.add_partitions_to_txn.v5.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kio.static.primitive import i32

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.topic_names import INTERNAL_TOPICS
from ..cluster.metadata_cache import MetadataCache
from ..configuration.group_config import GroupConfig
from ..coordination.key_partitions import partition_of_key
from ..coordinators.group_coordinator import OFFSETS_TOPIC
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..network.handlers import Handlers
from ..network.request import Request, RequestContext
from ..network.rules.postponed import PostponedError
from ..transactions.transaction import TransactionPartition
from ..transactions.transaction_shard import Producer, TransactionShard
from .init_producer_id import fenced_as_known
from .permissions import denied_names, require
from .response_collector import ResponseCollector

FENCED_SINCE: Final = 2
BY_BROKERS_SINCE: Final = 4
VERSION_OF_CLIENTS: Final = 0
VERSION_OF_BROKERS: Final = 2
"""Transaction version: brokers add partitions for producers of version 2 only."""

_Errors = Mapping[TransactionPartition, ErrorCode]


def register(
    handlers: Handlers, transactions: TransactionCoordinator, metadata: MetadataCache, groups: GroupConfig
) -> None:
    additions = TransactionAdditions(transactions, metadata, groups.offsets_topic_num_partitions)
    handlers.add_replying(ApiKey.ADD_PARTITIONS_TO_TXN, additions.add_partitions, answer_error=add_partitions_error)
    handlers.add_replying(ApiKey.ADD_OFFSETS_TO_TXN, additions.add_offsets, answer_error=add_offsets_error)


class TransactionAdditions:
    def __init__(
        self, transactions: TransactionCoordinator, metadata: MetadataCache, offsets_partition_count: int
    ) -> None:
        """`offsets_partition_count` is used while `__consumer_offsets` does not exist yet."""
        self._transactions = transactions
        self._metadata = metadata
        self._offsets_partition_count = offsets_partition_count

    def add_partitions(
        self,
        message: AddPartitionsToTxnRequest,
        request: Request,
        reply: Callable[[AddPartitionsToTxnResponse], None],
    ) -> None:
        """Raises KafkaError."""
        version = request.api_version
        is_of_broker = version >= BY_BROKERS_SINCE
        if is_of_broker and request.context.node_id is None:
            if request.context.authorizer is None:
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            # As Apache Kafka's, without results.
            code = kio_error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            reply(AddPartitionsToTxnResponse(throttle_time=NO_THROTTLE, error_code=code, results_by_transaction=()))
            return
        client_version = VERSION_OF_BROKERS if is_of_broker else VERSION_OF_CLIENTS
        answers: ResponseCollector[AddPartitionsToTxnResult] = ResponseCollector(
            len(message.transactions),
            lambda results: reply(
                AddPartitionsToTxnResponse(
                    throttle_time=NO_THROTTLE,
                    error_code=kio_error(ErrorCode.NONE),
                    results_by_transaction=results,
                )
            ),
        )
        for number, transaction in enumerate(message.transactions):
            place = answers.slot(number)
            denied: Set[str] = frozenset()
            if not is_of_broker:
                try:
                    denied = _denied_topics(transaction, request.context)
                except KafkaError as error:
                    place(_result(transaction, dict.fromkeys(_partitions(transaction), error.code)))
                    continue
            # A client asks for one transactional id; of several none is to wait for another.
            self._add(transaction, denied, client_version, version, place, may_wait=not is_of_broker)

    def _add(
        self,
        transaction: AddPartitionsToTxnTransaction,
        denied: Set[str],
        client_version: int,
        api_version: int,
        place: Callable[[AddPartitionsToTxnResult], None],
        *,
        may_wait: bool,
    ) -> None:
        """Raises PostponedError if it `may_wait`."""
        partitions = _partitions(transaction)
        producer = Producer(int(transaction.producer_id), int(transaction.producer_epoch))
        topics = self._metadata.image.topics
        refused: dict[TransactionPartition, ErrorCode] = {}
        for one in partitions:
            if one.topic in denied:
                refused[one] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topics.partition(one.topic, one.partition) is None:
                refused[one] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if refused:
            # All or nothing.
            place(_result(transaction, dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused))
            return

        def answer_error(error: ErrorCode) -> AddPartitionsToTxnResult:
            known = fenced_as_known(KafkaError(error), api_version, FENCED_SINCE).code
            return _result(transaction, dict.fromkeys(partitions, known))

        def add(shard: TransactionShard, _new_producer_id: int | None) -> AddPartitionsToTxnResult:
            if transaction.verify_only:
                return _result(transaction, shard.verify_partitions(transaction.transactional_id, producer, partitions))
            shard.add_partitions(transaction.transactional_id, producer, partitions, client_version)
            return _result(transaction, dict.fromkeys(partitions, ErrorCode.NONE))

        try:
            self._transactions.ask(transaction.transactional_id, add, place, answer_error)
        except KafkaError as error:
            if may_wait and isinstance(error, PostponedError):
                raise
            place(answer_error(error.code))

    def add_offsets(
        self, message: AddOffsetsToTxnRequest, request: Request, reply: Callable[[AddOffsetsToTxnResponse], None]
    ) -> None:
        """Raises KafkaError."""
        context, api_key = request.context, ApiKey.ADD_OFFSETS_TO_TXN
        require(context, api_key, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
        require(context, api_key, AclOperation.READ, ResourceType.GROUP, message.group_id)
        topic = self._metadata.image.topics.by_name.get(OFFSETS_TOPIC)
        count = self._offsets_partition_count if topic is None else len(topic.partitions)
        partition = TransactionPartition(OFFSETS_TOPIC, partition_of_key(message.group_id, count))
        producer = Producer(int(message.producer_id), int(message.producer_epoch))

        def add(shard: TransactionShard, _new_producer_id: int | None) -> AddOffsetsToTxnResponse:
            shard.add_partitions(message.transactional_id, producer, (partition,), VERSION_OF_CLIENTS)
            return _offsets_response(ErrorCode.NONE)

        def answer_error(error: ErrorCode) -> AddOffsetsToTxnResponse:
            return _offsets_response(fenced_as_known(KafkaError(error), request.api_version, FENCED_SINCE).code)

        try:
            self._transactions.ask(message.transactional_id, add, reply, answer_error)
        except KafkaError as error:
            raise fenced_as_known(error, request.api_version, FENCED_SINCE) from error


def _denied_topics(transaction: AddPartitionsToTxnTransaction, context: RequestContext) -> Set[str]:
    """Return the topics that a producer may not write to: internal ones never, with or without an authorizer.

    Raises KafkaError if it may not write with the transactional id.
    """
    api_key = ApiKey.ADD_PARTITIONS_TO_TXN
    require(context, api_key, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id)
    names = [one.topic for one in _partitions(transaction)]
    return denied_names(
        context,
        api_key,
        AclOperation.WRITE,
        ResourceType.TOPIC,
        [name for name in names if name not in INTERNAL_TOPICS],
    ) | INTERNAL_TOPICS.intersection(names)


def _partitions(transaction: AddPartitionsToTxnTransaction) -> list[TransactionPartition]:
    return [
        TransactionPartition(str(topic.name), int(index)) for topic in transaction.topics for index in topic.partitions
    ]


def _result(transaction: AddPartitionsToTxnTransaction, errors: _Errors) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=_partition_results(str(topic.name), map(int, topic.partitions), errors),
            )
            for topic in transaction.topics
        ),
    )


def _partition_results(
    topic: str, indexes: Iterable[int], errors: _Errors
) -> tuple[AddPartitionsToTxnPartitionResult, ...]:
    return tuple(
        AddPartitionsToTxnPartitionResult(
            partition_index=i32(index),
            partition_error_code=kio_error(errors[TransactionPartition(topic, index)]),
        )
        for index in indexes
    )


def add_partitions_error(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(error.code),
        results_by_transaction=tuple(
            _result(transaction, dict.fromkeys(_partitions(transaction), error.code))
            for transaction in request.transactions
        ),
    )


def add_offsets_error(_request: AddOffsetsToTxnRequest, error: KafkaError) -> AddOffsetsToTxnResponse:
    return _offsets_response(error.code)


def _offsets_response(error: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(throttle_time=NO_THROTTLE, error_code=kio_error(error))
