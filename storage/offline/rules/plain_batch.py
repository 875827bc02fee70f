"""Batches for another cluster: records as they are, without what means something only where they were written.

Producer ids are given anew by each cluster, so those of an archive would be taken for producers of the target; leader
epochs count leaderships of a partition that the target never had; a transaction was decided. So a batch loses producer,
sequences and leader epoch, a committed transaction becomes plain records, and of aborted records and markers the header
stays, for their offsets. Records are copied byte by byte, compressed as they are.
"""

from ....protocol.batches import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
    assemble,
)

FIRST_LEADER_EPOCH = 0
"""No partition of the target leads in an earlier one."""


def plain_batch(data: Buffer, header: BatchHeader, *, has_records: bool) -> bytes:
    """`has_records` says that what the batch holds may be read."""
    plain = header._replace(
        partition_leader_epoch=FIRST_LEADER_EPOCH,
        attributes=header.attributes & ~(TRANSACTIONAL_FLAG | CONTROL_FLAG),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
    )
    if has_records and header.record_count:
        return assemble(plain, memoryview(data)[HEADER_SIZE : header.size_bytes])
    attributes = plain.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG)
    return assemble(plain._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")
