"""Which batches of a Produce request come to the log of a partition. Kafka: `ReplicaManager.appendRecords`.

That they are batches is judged before (`batch_admission.py` of the log), their content after (`batch_validation.py`).
"""

from typing import Final, NamedTuple, TypeAlias

from ....protocol.batches import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER_SIZE,
    MAGIC_OFFSET,
    TRANSACTIONAL_FLAG,
)
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.ids import TopicId
from ....protocol.produce import ProduceRequest
from ....storage.log.rules.batch_admission import read_produced_batch
from ....storage.log.rules.record_batch import ProducedBatch

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""
VALID_ACKS: Final = frozenset({-1, 0, 1})
TRANSACTIONAL_BYTE: Final = ATTRIBUTES_OFFSET + 1


class RefusedRecords(NamedTuple):
    """Records that are not one whole batch. No exception: its traceback would keep the receive buffer alive."""

    code: ErrorCode
    message: str | None


TopicBatches: TypeAlias = tuple[str | None, TopicId | None, list[tuple[int, ProducedBatch | RefusedRecords]]]
"""A topic of a request, by name or id: the index of each partition, and its batch."""


def read_batches(message: ProduceRequest, version: int) -> list[TopicBatches]:
    """Returns the batches of a request, by topic; topics without partitions are left out.

    Raises KafkaError, for all partitions, if it has transactional batches but no transactional id.
    """
    if message.transactional_id is None and has_transactional_records(message):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics: list[TopicBatches] = []
    for topic in message.topics:
        batches: list[tuple[int, ProducedBatch | RefusedRecords]] = []
        for index, records in topic.partitions:
            try:
                batches.append((index, read_produced_batch(records, version)))
            except KafkaError as error:
                batches.append((index, RefusedRecords(error.code, error.message)))
        if batches:
            topics.append((topic.name, topic.topic_id, batches))
    return topics


def has_transactional_records(message: ProduceRequest) -> bool:
    """Kafka: `RequestUtils.hasTransactionalRecords`."""
    return any(
        records is not None
        and len(records) >= HEADER_SIZE
        and records[TRANSACTIONAL_BYTE] & TRANSACTIONAL_FLAG
        and records[MAGIC_OFFSET] == CURRENT_MAGIC
        for topic in message.topics
        for _, records in topic.partitions
    )


def admit(batch: ProducedBatch | RefusedRecords, acks: int, client_id: str | None, is_internal: bool) -> ProducedBatch:
    """Returns the batch if a client may append it to a partition, else raises KafkaError.

    `is_internal`: the partition's topic is internal.
    """
    if isinstance(batch, RefusedRecords):
        raise KafkaError(batch.code, batch.message)
    if acks not in VALID_ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal and client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return batch
