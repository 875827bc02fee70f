"""What a commit of a Delta or Iceberg table carries beside its rows: the positions that it has with them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .positions import Positions

# The transaction's name in Delta, the snapshot's property in Iceberg.
NAME = "penstock"


class CommitNote(msgspec.Struct, frozen=True, kw_only=True):
    """`sequence` counts the commits of this program; `token` tells one commit from another that has the same."""

    sequence: int
    token: str
    writer: str
    positions: Positions
    # By topic its id, where it is known; notes of version 0.1 have none.
    topic_ids: dict[str, str] = {}


class LostPositionsError(Exception):
    """A table that holds rows does not say how far it is."""


def encoded(note: CommitNote) -> str:
    return msgspec.json.encode(note).decode()


def latest(notes: Iterable[str | None], *, table: str) -> CommitNote | None:
    """The newest note of those that the commits of a table carry, newest first; None for a table without commits.

    Commits of other programs, which compact or delete, carry none. Raises LostPositionsError when all are such.
    """
    has_commits = False
    for text in notes:
        has_commits = True
        note = _read(text)
        if note is not None:
            return note
    if has_commits:
        raise LostPositionsError(
            f"no commit in the history of the table {table} says which source offsets it has reached: it was made by"
            " another program, or its history has expired; write to a new table"
        )
    return None


def _read(text: str | None) -> CommitNote | None:
    try:
        return msgspec.json.decode(text or "", type=CommitNote)
    except msgspec.MsgspecError:
        return None
