"""Which batches of a Produce request come to the log of a partition. Kafka: `ReplicaManager.appendRecords`.

That they are batches is judged before (`batch_admission.py` of the log), their content after (`batch_validation.py`).
"""

from typing import Final

from ....protocol.batches import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER_SIZE,
    MAGIC_OFFSET,
    TRANSACTIONAL_FLAG,
    Buffer,
)
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.produce import ProduceRequest
from ....storage.log.rules.batch_admission import read_produced_batch
from ....storage.log.rules.record_batch import ProducedBatch

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""
VALID_ACKS: Final = frozenset({-1, 0, 1})
TRANSACTIONAL_BYTE: Final = ATTRIBUTES_OFFSET + 1


def admit(
    records: Buffer | None,
    version: int,
    acks: int,
    client_id: str | None,
    is_internal: bool,
    is_in_transaction: bool = False,
) -> ProducedBatch:
    """Returns the batch to append to a partition; raises KafkaError if a client may not append it.

    `is_internal`: the topic is internal. `is_in_transaction`: the request has a transactional id.
    """
    batch = read_produced_batch(records, version)
    if acks not in VALID_ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if is_internal and client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if batch.header.attributes & TRANSACTIONAL_FLAG and not is_in_transaction:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return batch


def request_refusal(message: ProduceRequest) -> ErrorCode | None:
    """Returns the error for every partition if the request as a whole is invalid: transactional without an id."""
    if message.transactional_id is None:
        for topic in message.topics:
            for _, records in topic.partitions:
                if (
                    records is not None
                    and len(records) >= HEADER_SIZE
                    and records[TRANSACTIONAL_BYTE] & TRANSACTIONAL_FLAG
                    and records[MAGIC_OFFSET] == CURRENT_MAGIC
                ):
                    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None
