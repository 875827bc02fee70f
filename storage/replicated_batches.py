"""What a follower may append: the batches of a leader's fetch answer, as they are."""

from ..protocol.batches import HEADER_SIZE, is_crc_valid, iterate_headers, read_header
from ..protocol.errors import CorruptData, ErrorCode, KafkaError
from .segment_scan import ScannedBatch


def check_replicated_batches(records: memoryview, next_offset: int, partition: str) -> list[ScannedBatch]:
    """The whole batches in `records`; one that is cut off at the end is left out, as a fetch may do that.

    KafkaError CORRUPT_MESSAGE unless each has its CRC and their offsets rise from `next_offset` on.
    """
    batches = []
    try:
        for position, header in iterate_headers(records, 0, _end_of_last_batch(records)):
            if not is_crc_valid(records, position, header):
                raise CorruptData(f"the batch at offset {header.base_offset} does not have its CRC")
            if header.base_offset < next_offset:
                raise CorruptData(f"offset {header.base_offset} is less than the next offset {next_offset}")
            next_offset = header.next_offset
            batches.append(ScannedBatch(position, header, records, position))
    except CorruptData as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Cannot append to {partition} as a follower: {error}") from None
    return batches


def _end_of_last_batch(records: memoryview) -> int:
    end = 0
    while end + HEADER_SIZE <= len(records):
        following = end + read_header(records, end).size_bytes
        if following > len(records):
            break
        end = following
    return end
