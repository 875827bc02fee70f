"""Whether a batch can follow those before it, by what no CRC covers: its offsets and its leader epoch.

Offsets rise and stay below the next segment's; leader epochs never fall. Batches may lack between two.
"""

from ....protocol.batches import BatchHeader


def offsets_fault(header: BatchHeader, next_offset: int, end_offset: int) -> str | None:
    """Why the offsets of the batch cannot be in [next_offset, end_offset); None when they can."""
    base_offset, last_offset = header.base_offset, header.last_offset
    if next_offset <= base_offset <= last_offset < end_offset:
        return None
    offsets = f"offsets {base_offset} to {last_offset}"
    if base_offset < next_offset:
        return f"{offsets} cannot follow offset {next_offset - 1}"
    return f"{offsets} cannot be in [{next_offset}, {end_offset})"


def epoch_fault(header: BatchHeader, epoch: int) -> str | None:
    """Why a batch of leader epoch `epoch` cannot be before this one; None when it can."""
    if header.partition_leader_epoch >= epoch:
        return None
    return f"leader epoch {epoch} is followed by {header.partition_leader_epoch} at offset {header.base_offset}"
