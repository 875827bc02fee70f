"""Offset checkpoint files: one offset for each partition of a log directory, in Apache Kafka's text form.

Kafka: `OffsetCheckpointFile`.

0                                   version
2                                   number of entries
flights 0 118                       topic, partition, offset
flights 1 97
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from ....protocol.errors import CorruptData

# A partition, by the topic's name.
TopicPartition: TypeAlias = tuple[str, int]

# Everything below is synced.
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
# Where a log begins, when that is not where its first segment does.
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
# Below it, compaction has taken batches out.
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CHECKPOINTS: Final = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)

_VERSION: Final = "0"


def checkpoint_line(topic: str, partition: int, offset: int) -> str:
    return f"{topic} {partition} {offset}"


def encode_checkpoint(lines: list[str]) -> bytes:
    return "\n".join((_VERSION, str(len(lines)), *lines, "")).encode()


def encode_offsets(offsets: Iterable[tuple[TopicPartition, int]]) -> bytes:
    return encode_checkpoint([checkpoint_line(topic, partition, offset) for (topic, partition), offset in offsets])


def decode_offsets(data: bytes, path: str) -> dict[TopicPartition, int]:
    """CorruptData when `data` is not such a file as a whole."""
    try:
        lines = data.decode().split("\n")
        if lines[0] != _VERSION:
            raise CorruptData(f"{path} has version {lines[0]!r}, not {_VERSION}")
        count = int(lines[1])
        entries = (line.split(" ") for line in lines[2:-1])
        offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except (ValueError, IndexError):
        raise CorruptData(f"{path} is not an offset checkpoint") from None
    if len(offsets) != count or lines[-1]:
        raise CorruptData(f"{path} has {len(offsets)} entries instead of {count}")
    return offsets
