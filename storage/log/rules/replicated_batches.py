"""What a follower may append: the batches of a leader's fetch answer, as they are."""

from ....protocol.batches import CONTROL_FLAG, HEADER_SIZE, is_crc_valid, read_header
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from .control_records import read_end_transaction_marker
from .record_batch import StoredBatch


def check_replicated_batches(
    records: memoryview, next_offset: int, partition: str, *, leader_epoch: int | None = None
) -> list[StoredBatch]:
    """The whole batches in `records`; one that is cut off at the end is left out, as a fetch may do that.

    So are those from the first on that is of a later epoch than `leader_epoch`, that of the leader which was asked. Its
    answer is read from its log while it is sent: it may lead no more by then, and have cut its log and gone on with
    what another leader has. What came before would not fit to that (KAFKA-18723).

    KafkaError CORRUPT_MESSAGE unless each has its CRC and a leader epoch, each transaction marker can be read, and the
    offsets rise from `next_offset` on. An error after the batches are written would leave the log half changed.
    """
    batches = []
    position = 0
    try:
        while position + HEADER_SIZE <= len(records):
            header = read_header(records, position)
            end = position + header.size_bytes
            if end > len(records):
                break
            batch_epoch = header.partition_leader_epoch
            if leader_epoch is not None and batch_epoch > leader_epoch:
                break
            base_offset, last_offset_delta = header.base_offset, header.last_offset_delta
            if not is_crc_valid(records, position, header):
                raise CorruptData(f"the batch at offset {base_offset} does not have its CRC")
            if base_offset < next_offset:
                raise CorruptData(f"offset {base_offset} is less than the next offset {next_offset}")
            if batch_epoch < 0 or last_offset_delta < 0:
                raise CorruptData(
                    f"the batch at offset {base_offset} has leader epoch {batch_epoch} and last offset delta "
                    f"{last_offset_delta}"
                )
            if header.attributes & CONTROL_FLAG and header.has_producer_id:
                # The producer state reads it once the batches are written: an error there would leave them half taken
                # in, behind the log end offset, and the next fetch would append them again.
                read_end_transaction_marker(records[position:end], header)
            next_offset = base_offset + last_offset_delta + 1
            batches.append(StoredBatch(position, header, records, position))
            position = end
    except CorruptData as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Cannot append to {partition} as a follower: {error}") from None
    return batches
