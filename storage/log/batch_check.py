"""Whether the batches of a part of a segment are those that were written: their CRC, and what that does not cover."""

from ...protocol.ids import NO_LEADER_EPOCH
from .leader_epochs import LeaderEpochs
from .rules.batch_order import offsets_fault
from .segment import Segment
from .segment_scan import BadBatch, scan
from .segments import Segments


def check_batches(
    segments: Segments,
    offset: int,
    size: int,
    leader_epochs: LeaderEpochs,
    log_end_offset: int,
    *,
    may_have_gaps: bool,
) -> None:
    """Read the batches from the one with `offset` on, `size` bytes of them at least or to the end of its segment.

    Unless the log `may_have_gaps`, a segment reaches up to the next one.
    BadBatch at the first batch that is not whole and in order, or has not its CRC and the leader epoch that is known;
    CorruptData, OSError; FileNotFoundError when the segment has lost its file. An index that leads astray is made anew.
    """
    slot = segments.slot_of(offset)
    segment = segments[slot]
    segment.check_name()
    end_offset = log_end_offset if slot + 1 == len(segments) else segments[slot + 1].base_offset
    position = segment.offset_index.lookup(offset)
    reached = offset if may_have_gaps else end_offset
    try:
        _check_from(segment, position, offset, size, leader_epochs, end_offset, reached)
    except BadBatch as bad:
        if position == 0 or bad.position != position:
            raise
        # Is it the batch, or does none begin there?
        _check_from(segment, 0, offset, size, leader_epochs, end_offset, reached)
        segment.rebuild_misleading_index(bad)


def _check_from(
    segment: Segment,
    position: int,
    offset: int,
    size: int,
    leader_epochs: LeaderEpochs,
    end_offset: int,
    reached: int,
) -> None:
    path = segment.file.path
    next_offset = segment.base_offset
    try:
        for batch in scan(segment.file, position, segment.size_bytes, verify=True):
            header = batch.header
            epoch = leader_epochs.epoch_of(header.base_offset)
            fault = offsets_fault(header, next_offset, end_offset)
            if fault is None and epoch is not None and header.partition_leader_epoch not in (epoch, NO_LEADER_EPOCH):
                fault = f"leader epoch {header.partition_leader_epoch} at offset {header.base_offset} is not {epoch}"
            if fault is not None:
                raise BadBatch(f"{path} at {batch.position}: {fault}", batch.position)
            next_offset = header.next_offset
            if next_offset > offset:
                size -= header.size_bytes
                if size <= 0:
                    return
        if next_offset < reached:
            raise BadBatch(f"{path} ends at offset {next_offset}, not {end_offset}", segment.size_bytes)
    except BadBatch as bad:
        if bad.position > position or position == 0:
            bad.offset = next_offset
        raise
