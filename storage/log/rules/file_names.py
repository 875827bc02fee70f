"""Names of the files in a partition's folder, as Apache Kafka gives them: 20 digits of base offset and a suffix."""

from collections.abc import Collection
from typing import Final

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
PRODUCER_SNAPSHOT: Final = ".snapshot"
# What belongs to one segment beside its log.
INDEX_SUFFIXES: Final = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

# After the suffix above: to be removed; written by a compaction that did not end; complete and to be swapped in.
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    """The path of one file of a segment, or of the snapshot at an offset."""
    return f"{directory}/{base_offset:020d}{suffix}"


def base_offset_of(name: str) -> int | None:
    """The offset that a file name begins with; None when the name does not begin with one."""
    digits, dot, _ = name.partition(".")
    return int(digits) if dot and digits.isascii() and digits.isdigit() else None


def offsets_with(names: Collection[str], suffix: str) -> list[int]:
    """The offsets, ascending, of the names that are exactly an offset and `suffix`."""
    found = []
    for name in names:
        if name.endswith(suffix) and name.count(".") == 1:
            offset = base_offset_of(name)
            if offset is not None:
                found.append(offset)
    return sorted(found)
