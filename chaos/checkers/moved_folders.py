"""Where the log of a partition is in the log directories of a node, by the names of folders alone (KIP-113).

A move between directories copies a log into `topic-0.ID-future`. The copy takes over by two renames, of itself to
`topic-0` and of the log to `topic-0.ID-delete`, and has a note meanwhile of the directory that the other one is in. A
kill or a loss of power leaves any of these; what a start has to make of them is told here once more, by none of the
code that does it (`docs/decisions/0022-a-move-between-directories-is-told-before-it-is-done.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from msgspec import Struct

FUTURE: Final = "-future"
_DELETED: Final = "-delete"


class PlainDirectory(Struct, frozen=True, kw_only=True):
    """A log directory as its files have it."""

    path: str
    directory_id: UUID | None
    """None where it was never formatted."""
    folders: tuple[str, ...]
    replaced: Mapping[str, UUID] = {}
    """By folder: the directory whose log it replaces, where a note says so."""


def log_folders(partition: str, directories: Sequence[PlainDirectory], assigned: UUID) -> list[str]:
    """The paths of what a start takes for the log of `topic-0`: one; none where there is no replica; several where
    nothing tells which one is right. `assigned` is the directory that the metadata name."""
    logs = [one for one in directories if partition in one.folders]
    if not logs:
        # The log was given up for a copy that had not got its name.
        given_up = {
            _unique_id(name) for one in directories for name in one.folders if _is_of(partition, name, _DELETED)
        }
        logs_of_copies = [
            f"{one.path}/{name}"
            for one in directories
            for name in one.folders
            if _is_of(partition, name, FUTURE) and _unique_id(name) in given_up
        ]
        return logs_of_copies if len(logs_of_copies) == 1 else []
    ids = {one.directory_id for one in logs}
    noted = [one for one in logs if one.replaced.get(partition) in ids - {one.directory_id}]
    named = [one for one in logs if one.directory_id == assigned]
    return [f"{one.path}/{partition}" for one in noted or named or logs]


def unfinished_moves(partition: str, directories: Sequence[PlainDirectory], assigned: UUID | None) -> Iterator[str]:
    """What is not as it has to be once all moves are over. `assigned`: None where the node has no replica."""
    for one in directories:
        yield from (f"{one.path}/{name} is left" for name in one.folders if _is_of(partition, name, FUTURE))
    logs = [one for one in directories if partition in one.folders]
    wanted = () if assigned is None else (assigned,)
    if tuple(one.directory_id for one in logs) != wanted:
        yield f"{partition} is in {[one.path for one in logs]}, and the metadata have {assigned}"


def _is_of(partition: str, name: str, kind: str) -> bool:
    return name.endswith(kind) and name.removesuffix(kind).rpartition(".")[0] == partition


def _unique_id(name: str) -> str:
    return name.rpartition(".")[2].rpartition("-")[0]
