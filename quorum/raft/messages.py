"""What voters say to each other, as CBOR arrays: the kind's number, the sender's term, then the fields in order.

The form knows nothing of any consensus library: offsets and epochs as everywhere else in Penstock. Who sent a message
is known from its link. `decode_message` lets nothing through whose types, signs or sizes are not as below, so the
engine sees no byte that was not looked at.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import cbor2

from ...protocol.errors import CorruptData
from .cbor_errors import CBOR_ERRORS
from .consensus import MAX_COMMAND_BYTES

# Version of the messages as a whole; peers say theirs in the hello (`link_hello.py`), and only equal ones talk.
MESSAGE_VERSION: Final = 1

# An offset or a nonce fits into a signed 64-bit integer; a term is a leader epoch to brokers, which has 32 bits.
_MAX_INTEGER: Final = 2**63 - 1
_MAX_TERM: Final = 2**31 - 1


class EntryBody(NamedTuple):
    """An entry on the way; its offset follows from the message."""

    epoch: int
    command: bytes


class Append(NamedTuple):
    """The leader's entries behind the entry at `previous_offset` (-1: before the first); a heartbeat has none."""

    term: int
    previous_offset: int
    previous_epoch: int
    commit_end: int
    entries: tuple[EntryBody, ...]


class AppendAck(NamedTuple):
    """`is_match`: the log agrees with the leader's below `next_offset`. Else the leader may try again from there.

    `is_member` is false while the sender's disk is new: such a copy counts for nothing (`eligibility.py`), and
    `disk_incarnation` names the run in which it came back.
    """

    term: int
    next_offset: int
    is_match: bool
    is_member: bool
    disk_incarnation: int


class VoteRequest(NamedTuple):
    """`is_transfer`: the leader asked for this election, so it need not be dead."""

    term: int
    last_offset: int
    last_epoch: int
    is_transfer: bool


class Vote(NamedTuple):
    """A vote granted in `term`."""

    term: int


class PreVoteRequest(NamedTuple):
    """Would you vote for me in `candidate_term`? Changes nothing on either side (Raft thesis §9.6)."""

    term: int
    candidate_term: int
    last_offset: int
    last_epoch: int


class PreVote(NamedTuple):
    """Yes."""

    term: int
    candidate_term: int


class TermNotice(NamedTuple):
    """The sender has seen a higher term than the message that this answers."""

    term: int


class TimeoutNow(NamedTuple):
    """The leader hands over: campaign at once (Raft thesis §3.10)."""

    term: int


class BarrierProbe(NamedTuple):
    """Am I still your leader? (ReadIndex, Raft thesis §6.4.)"""

    term: int
    sequence: int


class BarrierAck(NamedTuple):
    """Yes."""

    term: int
    sequence: int


class CensusRequest(NamedTuple):
    """From a voter whose disk is empty: is there any data? (`eligibility.py`.)"""

    term: int
    disk_incarnation: int


class CensusReply(NamedTuple):
    """`has_data`: the sender's log has an entry or a snapshot."""

    term: int
    disk_incarnation: int
    has_data: bool


class Admission(NamedTuple):
    """The run `disk_incarnation` has caught up: from now on its disk counts again."""

    term: int
    disk_incarnation: int


class SnapshotPart(NamedTuple):
    """Chunks of the snapshot at `end_offset`, from chunk number `first_chunk` on, with the CRC-32C of them all."""

    term: int
    end_offset: int
    epoch: int
    first_chunk: int
    chunks: tuple[bytes, ...]
    checksum: int
    is_last: bool


class SnapshotAck(NamedTuple):
    """All chunks below `next_chunk` are on the disk; with `is_installed` the receiver needs no more of them."""

    term: int
    end_offset: int
    next_chunk: int
    is_installed: bool


RaftMessage: TypeAlias = (
    Append
    | AppendAck
    | VoteRequest
    | Vote
    | PreVoteRequest
    | PreVote
    | TermNotice
    | TimeoutNow
    | BarrierProbe
    | BarrierAck
    | CensusRequest
    | CensusReply
    | Admission
    | SnapshotPart
    | SnapshotAck
)

_KINDS: Final[tuple[type[RaftMessage], ...]] = (
    Append,
    AppendAck,
    VoteRequest,
    Vote,
    PreVoteRequest,
    PreVote,
    TermNotice,
    TimeoutNow,
    BarrierProbe,
    BarrierAck,
    CensusRequest,
    CensusReply,
    Admission,
    SnapshotPart,
    SnapshotAck,
)
_NUMBER_OF: Final = {kind: number for number, kind in enumerate(_KINDS)}
_OFFSETS_FROM_MINUS_1: Final = frozenset({"previous_offset", "last_offset"})
_TERMS: Final = frozenset({"term", "candidate_term", "epoch", "previous_epoch", "last_epoch"})


def encode_message(message: RaftMessage) -> bytes:
    return cbor2.dumps([_NUMBER_OF[type(message)], *message])


def decode_message(data: bytes) -> RaftMessage:
    """Return the message. Raises CorruptData, with a sentence, for malformed bytes."""
    try:
        fields = cbor2.loads(data)
    except CBOR_ERRORS as error:
        raise CorruptData(f"a message that is no CBOR: {error!r:.100}") from error
    if not isinstance(fields, list) or not fields or type(fields[0]) is not int or not 0 <= fields[0] < len(_KINDS):
        raise CorruptData(f"a message of no known kind: {fields!r:.60}")
    kind = _KINDS[fields[0]]
    names = kind._fields
    if len(fields) != len(names) + 1:
        raise CorruptData(f"{kind.__name__} has {len(fields) - 1} fields where {len(names)} were expected")
    values: list[Any] = [_checked(kind, name, value) for name, value in zip(names, fields[1:], strict=True)]
    return kind(*values)


def _checked(kind: type[RaftMessage], name: str, value: object) -> object:
    match name:
        case "entries":
            return tuple(_entry(item) for item in _list(kind, name, value))
        case "chunks":
            chunks = _list(kind, name, value)
            if not all(isinstance(chunk, bytes) for chunk in chunks):
                raise CorruptData(f"{kind.__name__}.chunks has something that is no bytes")
            return tuple(chunks)
        case _ if name.startswith(("is_", "has_")):
            if isinstance(value, bool):
                return value
        case _:
            lowest = -1 if name in _OFFSETS_FROM_MINUS_1 else 0
            highest = _MAX_TERM if name in _TERMS else _MAX_INTEGER
            if type(value) is int and lowest <= value <= highest:
                return value
    raise CorruptData(f"{kind.__name__}.{name} cannot be {value!r:.60}")


def _list(kind: type[RaftMessage], name: str, value: object) -> Sequence[object]:
    if isinstance(value, list):
        return value
    raise CorruptData(f"{kind.__name__}.{name} is no array")


def _entry(item: object) -> EntryBody:
    match item:
        case [int() as epoch, bytes() as command] if (
            type(epoch) is int and 0 <= epoch <= _MAX_TERM and len(command) <= MAX_COMMAND_BYTES
        ):
            return EntryBody(epoch, command)
        case _:
            raise CorruptData(f"an entry cannot be {item!r:.60}")
