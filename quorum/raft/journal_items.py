"""What the journal's frames hold, and how it is written as CBOR.

    [0, format, first offset, epoch before it, term, voted for, is member]   the first item of every segment
    [1, term, voted for]                      term and vote from here on
    [2, offset, epoch, command]               an entry
    [3, is member]                            whether this disk's voter may vote from here on
    [4, end offset, epoch before it]          the log ends there: entries from it on are void; where the log has no such
                                              end, it is void altogether and begins there, behind a snapshot
    [5, end offset]                           everything below is committed

Format 1 knew items 0, 1 and 2 only and its first item ended with the vote: it was written by a quorum of one, whose
disk always was a member's. A segment that was begun in format 1 may hold later items behind those; software that knows
only format 1 refuses them by their numbers.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias, assert_never

import cbor2

from ...protocol.errors import CorruptData
from .cbor_errors import CBOR_ERRORS

FORMAT = 2
_SEGMENT, _TERM, _ENTRY, _MEMBERSHIP, _END, _COMMIT = range(6)


class Term(NamedTuple):
    """The highest term this voter has seen, and whom it voted for in it."""

    term: int
    voted_for: int | None


class LogEntry(NamedTuple):
    """An entry of the log; `epoch` is the term of the leader that proposed it. A no-op has an empty command."""

    offset: int
    epoch: int
    command: bytes


class Membership(NamedTuple):
    """Whether the voter on this disk may vote and counts for commits (see `eligibility.py`)."""

    is_member: bool


class LogEnd(NamedTuple):
    """The log ends at `offset`, exclusive; `epoch` is that of the entry before it."""

    offset: int
    epoch: int


class CommitMark(NamedTuple):
    """Everything below `end_offset` is committed. Written with other items, so it may lag behind."""

    end_offset: int


class SegmentHead(NamedTuple):
    """What a segment needs to be read without those before it."""

    format: int
    first_offset: int
    previous_epoch: int
    term: int
    voted_for: int | None
    is_member: bool


JournalItem: TypeAlias = Term | LogEntry | Membership | LogEnd | CommitMark


def encode_items(items: Sequence[JournalItem | SegmentHead]) -> bytes:
    return cbor2.dumps([_encode(item) for item in items])


def decode_items(payload: bytes, path: str) -> Iterator[SegmentHead | JournalItem]:
    """Yield the items of one frame. Raises CorruptData with a sentence that names the file."""
    try:
        items = cbor2.loads(payload)
    except CBOR_ERRORS as error:
        raise CorruptData(f"{path} has a frame that is no CBOR: {error}") from error
    if not isinstance(items, list):
        raise CorruptData(f"{path} has a frame that is no array")
    for item in items:
        yield _decode(item, path)


def _encode(item: JournalItem | SegmentHead) -> list[object]:
    match item:
        case LogEntry():
            return [_ENTRY, *item]
        case Term():
            return [_TERM, *item]
        case Membership():
            return [_MEMBERSHIP, *item]
        case LogEnd():
            return [_END, *item]
        case CommitMark():
            return [_COMMIT, *item]
        case SegmentHead():
            return [_SEGMENT, *item]
        case _:
            assert_never(item)


def _decode(item: object, path: str) -> SegmentHead | JournalItem:
    match item:
        case [0, 1, int() as first, int() as epoch, int() as term, int() | None as voted_for]:
            return SegmentHead(1, first, epoch, term, voted_for, True)
        case [0, 2, int() as first, int() as epoch, int() as term, int() | None as voted_for, bool() as is_member]:
            return SegmentHead(2, first, epoch, term, voted_for, is_member)
        case [0, int() as segment_format, *_]:
            raise CorruptData(
                f"{path} has format {segment_format}, this version of penstock knows formats 1 to {FORMAT}"
            )
        case [1, int() as term, int() | None as voted_for]:
            return Term(term, voted_for)
        case [2, int() as offset, int() as epoch, bytes() as command]:
            return LogEntry(offset, epoch, command)
        case [3, bool() as is_member]:
            return Membership(is_member)
        case [4, int() as offset, int() as epoch]:
            return LogEnd(offset, epoch)
        case [5, int() as end_offset]:
            return CommitMark(end_offset)
        case _:
            raise CorruptData(f"{path} has an item that this version of penstock does not know: {item!r:.100}")
