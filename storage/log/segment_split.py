"""A segment whose offsets its indexes cannot tell is split into several. Kafka: `UnifiedLog.splitOverflowedSegment`.

Indexes have 31 bits for an offset, counted from the base offset of the segment. Brokers before Apache Kafka 1.1.1 made
segments that reach further (KAFKA-6264); here none is made, and compaction merges none.

    the batches are written to a `….log.cleaned` for each part, all synced
    the highest becomes `….log.swap`, then the one below, the first last     sync the folder before that one and after
    `leftover_files.tidy` puts them into the place of the segment

A stop before the last renaming undoes all of it, a stop after it finishes it. Nothing but batches is written: parts
without indexes are recovered, which makes indexes, aborted transactions and the state of producers anew.
"""

import logging
from typing import Final, NamedTuple

from ...protocol.batches import BatchHeader
from ..disk.files import File, Files
from .offset_index import MAX_RELATIVE_OFFSET
from .rules.file_names import CLEANED, LOG, SWAP, offsets_with, segment_file
from .segment_scan import BadBatch, scan

logger = logging.getLogger(__name__)

_COPIED_AT_ONCE_BYTES: Final = 1024 * 1024


class OffsetOverflow(BadBatch):
    """The batch is intact, and too far from where its segment begins."""

    def __init__(self, message: str, position: int, base_offset: int) -> None:
        super().__init__(message, position)
        self.base_offset = base_offset


def overflow(path: str, position: int, base_offset: int, last_offset: int) -> OffsetOverflow:
    return OffsetOverflow(
        f"{path} at {position}: offset {last_offset} is more than {MAX_RELATIVE_OFFSET} from {base_offset}",
        position,
        base_offset,
    )


def split_segment(files: Files, directory: str, found: OffsetOverflow, *, protected_end: int) -> bool:
    """Whether it was split: `leftover_files.tidy` must follow. What is behind the last intact batch is left out when it
    was never promised to be on disk: from `protected_end` on.

    False, and nothing is changed, when batches below are not intact: that is damage. OSError leaves files that the next
    `tidy` removes.
    """
    base_offset = found.base_offset
    path = segment_file(directory, base_offset, LOG)
    bases = offsets_with(files.list_directory(directory), LOG)
    end_offset = next((one for one in bases if one > base_offset), None)
    source = files.open(path)
    parts, next_offset = _find_parts(source, base_offset, end_offset)
    if len(parts) == 1 or (parts[-1].end < source.size and next_offset < protected_end):
        source.close()
        return False
    modified_ms = files.modified_ms(path)
    for part in parts:
        name = segment_file(directory, part.base_offset, LOG) + CLEANED
        file = files.open(name, create=True)
        for position in range(part.start, part.end, _COPIED_AT_ONCE_BYTES):
            file.append((source.read_at(position, min(_COPIED_AT_ONCE_BYTES, part.end - position)),))
        file.sync()
        file.close()
        # For retention by time.
        files.set_modified_ms(name, modified_ms)
    source.close()
    for part in reversed(parts):
        if part is parts[0]:
            # It makes all of them count: their names must last before.
            files.sync_directory(directory)
        name = segment_file(directory, part.base_offset, LOG)
        files.rename(name + CLEANED, name + SWAP)
    files.sync_directory(directory)
    logger.warning("Split segment whose offsets overflow: path=%s parts=%d", path, len(parts))
    return True


class _Part(NamedTuple):
    base_offset: int
    start: int
    """Its bytes are [start, end) of the segment."""
    end: int


def _find_parts(source: File, base_offset: int, end_offset: int | None) -> tuple[list[_Part], int]:
    """The intact batches, and where they end."""
    position = 0
    next_offset = base_offset
    starts = [(base_offset, 0)]
    try:
        for batch in scan(source, 0, source.size, verify=True):
            header = batch.header
            last_offset = header.last_offset
            if not next_offset <= header.base_offset <= last_offset or is_beyond(header, next_offset, end_offset):
                break
            if last_offset - starts[-1][0] > MAX_RELATIVE_OFFSET:
                # From where the part before ends, if that is near enough: recovery takes a gap between segments for
                # a loss.
                is_near = last_offset - next_offset <= MAX_RELATIVE_OFFSET
                starts.append((next_offset if is_near else header.base_offset, batch.position))
            next_offset = header.next_offset
            position = batch.position + header.size_bytes
    except BadBatch:
        pass
    ends = [*(start for _, start in starts[1:]), position]
    return [_Part(base, start, end) for (base, start), end in zip(starts, ends, strict=True)], next_offset


def is_beyond(header: BatchHeader, next_offset: int, end_offset: int | None) -> bool:
    """Whether the batch, which no CRC says, cannot have these offsets behind one that ends at `next_offset`.

    In the last segment, which compaction never came to, no offsets are missing; but a follower's may have what the
    leader's lacks, so a gap is taken for a flipped bit only where no segment could have it.
    """
    if end_offset is None:
        return header.base_offset - next_offset > MAX_RELATIVE_OFFSET
    return header.last_offset >= end_offset
