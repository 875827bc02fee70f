"""Records of `__transaction_state`, in Apache Kafka's format: a transactional id, and how its transaction stands.

Values of version 1 are written from transaction.version 1 on, which brings what tagged fields say (KIP-890): without
that, older brokers can still read them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...protocol.errors import CorruptData
from ..coordination.ports import StateRecord
from ..coordination.record_format import RecordFormat, field, struct_array
from .transaction import Transaction, TransactionPartition
from .transaction_state import STATES, TransactionState

TRANSACTION_LOG_KEYS: Final = range(1)
TAGGED_SINCE_FEATURE_LEVEL: Final = 1


class TransactionLogKey(NamedTuple):
    transactional_id: str


class PartitionsOfTopic(NamedTuple):
    topic: str
    indexes: tuple[int, ...]


class TransactionLogValue(NamedTuple):
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    """Kept for transactions that a client prepares itself (KIP-939)."""
    timeout_ms: int
    status: int
    partitions: tuple[PartitionsOfTopic, ...] | None
    updated_ms: int
    started_ms: int
    client_version: int


TRANSACTION_LOG_KEY: Final = RecordFormat(TransactionLogKey, [field("string")], versions=TRANSACTION_LOG_KEYS)
_FIELDS: Final = [
    field("int64"),
    field("int64", since=1, tag=0, default=NO_PRODUCER_ID),
    field("int64", since=1, tag=1, default=NO_PRODUCER_ID),
    field("int16"),
    field("int16", since=1, tag=3, default=NO_PRODUCER_EPOCH),
    field("int32"),
    field("int8"),
    struct_array(PartitionsOfTopic, field("string"), field("int32", is_array=True), is_nullable=True),
    field("int64"),
    field("int64"),
    field("int16", since=1, tag=2, default=0),
]
TRANSACTION_LOG_VALUE: Final = RecordFormat(TransactionLogValue, _FIELDS, versions=range(2), flexible_since=1)
TRANSACTION_LOG_VALUE_0: Final = RecordFormat(
    TransactionLogValue, _FIELDS, versions=range(2), written=0, flexible_since=1
)


def record_of(transaction: Transaction, feature_level: int) -> StateRecord:
    """`feature_level` is the cluster's transaction.version."""
    is_tagged = feature_level >= TAGGED_SINCE_FEATURE_LEVEL
    indexes: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        indexes.setdefault(topic, []).append(index)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        next_producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=transaction.timeout_ms,
        status=transaction.state.number,
        partitions=None
        if transaction.state is TransactionState.EMPTY
        else tuple(PartitionsOfTopic(topic, tuple(numbers)) for topic, numbers in indexes.items()),
        updated_ms=transaction.updated_ms,
        started_ms=transaction.started_ms,
        client_version=transaction.client_version,
    )
    form = TRANSACTION_LOG_VALUE if is_tagged else TRANSACTION_LOG_VALUE_0
    return StateRecord(key_of(transaction.id), form.write(value))


def key_of(transactional_id: str) -> bytes:
    return TRANSACTION_LOG_KEY.write(TransactionLogKey(transactional_id))


def transaction_of(transactional_id: str, data: bytes) -> Transaction:
    """Raises CorruptData."""
    value = TRANSACTION_LOG_VALUE.read(data)
    if not 0 <= value.status < len(STATES):
        raise CorruptData(f"transaction {transactional_id} is in state {value.status}, which does not exist")
    return Transaction(
        id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        # It is not written, so a retry of InitProducerId is not known as one behind a move.
        last_producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=value.timeout_ms,
        state=STATES[value.status],
        partitions=frozenset(
            TransactionPartition(topic, index) for topic, indexes in value.partitions or () for index in indexes
        ),
        started_ms=value.started_ms,
        updated_ms=value.updated_ms,
        client_version=value.client_version,
    )
