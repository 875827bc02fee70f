"""Names of folders in a log directory: `topic-partition`, and `….uniqueId-delete`, `-stray`, `-future` beside it."""

from enum import Enum
from typing import Final
from uuid import UUID

from msgspec import Struct

# The longest file name there is.
_MAX_NAME_LENGTH: Final = 255


class FolderKind(Enum):
    LOG = ""
    # To be removed after `file.delete.delay.ms`.
    DELETED = "-delete"
    # Of a partition that this node should not have. Kept until a person decides.
    STRAY = "-stray"
    # A copy in the making, on the way from another log directory (KIP-113).
    FUTURE = "-future"


class PartitionFolder(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    kind: FolderKind
    unique_id: str = ""
    """Of one that is no log."""


class RemovedFolder(Struct, frozen=True, kw_only=True):
    """A folder `….-delete` that is to be removed `delay_ms` from now."""

    path: str
    delay_ms: int


def folder_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def moved_folder_name(topic: str, partition: int, kind: FolderKind, unique_id: UUID) -> str:
    """The name of a folder that is no log any more. A long topic's name is cut off."""
    end = f"-{partition}.{unique_id.hex}{kind.value}"
    return topic[: _MAX_NAME_LENGTH - len(end)] + end


def is_too_long_to_move(topic: str, partition: int) -> bool:
    """Whether the folder of a future log could not have the topic's whole name."""
    return len(topic) + len(f"-{partition}.{UUID(int=0).hex}{FolderKind.FUTURE.value}") > _MAX_NAME_LENGTH


def parse_folder_name(name: str) -> PartitionFolder | None:
    """None when a partition's folder does not have such a name."""
    kind, found_id = FolderKind.LOG, ""
    for candidate in (FolderKind.DELETED, FolderKind.STRAY, FolderKind.FUTURE):
        stem, dot, unique_id = name.removesuffix(candidate.value).rpartition(".")
        if name.endswith(candidate.value) and dot and unique_id:
            kind, found_id = candidate, unique_id
            name = stem
            break
    topic, dash, partition = name.rpartition("-")
    if not topic or not dash or not partition.isascii() or not partition.isdigit():
        return None
    return PartitionFolder(topic=topic, partition=int(partition), kind=kind, unique_id=found_id)
