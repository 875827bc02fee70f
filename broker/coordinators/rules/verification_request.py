"""Questions about transactions as one AddPartitionsToTxn request, and what was answered (KIP-890)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnResponse
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32

from ....protocol.errors import ErrorCode
from ....protocol.messages import Response
from .transaction_writer import Place, TransactionWriter


def verification_request(questions: Iterable[tuple[TransactionWriter, Sequence[Place]]]) -> AddPartitionsToTxnRequest:
    """Of writers with different transactional ids."""
    return AddPartitionsToTxnRequest(transactions=tuple(_transaction(writer, places) for writer, places in questions))


def _transaction(writer: TransactionWriter, places: Sequence[Place]) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[i32]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(i32(index))
    return AddPartitionsToTxnTransaction(
        transactional_id=TransactionalId(writer.transactional_id),
        producer_id=ProducerId(writer.producer_id),
        producer_epoch=i16(writer.producer_epoch),
        verify_only=not writer.support.adds_partitions,
        topics=tuple(
            AddPartitionsToTxnTopic(name=TopicName(topic), partitions=tuple(indexes))
            for topic, indexes in topics.items()
        ),
    )


def errors_of(answer: Response) -> tuple[ErrorCode, dict[str, dict[Place, ErrorCode]]]:
    """The error of the whole, and those of partitions by transactional id."""
    assert isinstance(answer, AddPartitionsToTxnResponse)
    errors = {
        str(result.transactional_id): {
            (str(topic.name), int(one.partition_index)): ErrorCode(int(one.partition_error_code))
            for topic in result.topic_results
            for one in topic.results_by_partition
            if one.partition_error_code != 0
        }
        for result in answer.results_by_transaction
    }
    return ErrorCode(int(answer.error_code)), errors
