"""What operators ask of a controller (`OwnApiKey.OPERATE_QUORUM`), and how it is written, as CBOR arrays.

    ["transfer", node id or null]    the leader hands its leadership over      [0, id of the new leader]
    ["snapshot"]                     any voter makes a snapshot of what it has  [0, file, end offset, epoch]
    ["snapshots"]                    any voter names the snapshots that it has  [0, [[file, end, epoch, bytes], …]]

Behind it stands in whose name a node asks, as `quorum/permissions/requester.py` writes it, where it asks for a client.
A refusal is `[number of Kafka's error code, sentence, id of the leader or null]`.
"""

from typing import Final, NamedTuple, TypeAlias, assert_never

import cbor2

from ...protocol.errors import CorruptData, ErrorCode
from .cbor_errors import CBOR_ERRORS

_TRANSFER: Final = "transfer"
_SNAPSHOT: Final = "snapshot"
_SNAPSHOTS: Final = "snapshots"


class Transfer(NamedTuple):
    """Hand leadership to this voter, or to the one that is furthest along."""

    target_id: int | None


class TakeSnapshot(NamedTuple):
    """Make a snapshot now."""


class ListSnapshots(NamedTuple):
    """Name the snapshots on the disk."""


class Transferred(NamedTuple):
    """Who leads now."""

    leader_id: int


class SnapshotTaken(NamedTuple):
    """The newest snapshot of the node, which has all that it knew to be committed."""

    file: str
    end_offset: int
    epoch: int


class SnapshotFile(NamedTuple):
    """A snapshot that lies on a node's disk."""

    file: str
    end_offset: int
    epoch: int
    size_bytes: int


class SnapshotsListed(NamedTuple):
    """All of a node, the oldest first."""

    snapshots: tuple[SnapshotFile, ...]


class Refused(NamedTuple):
    """Nothing was done, or it is not known. With NOT_CONTROLLER `leader_id` may tell whom to ask."""

    code: ErrorCode
    sentence: str
    leader_id: int | None = None


Operation: TypeAlias = Transfer | TakeSnapshot | ListSnapshots
Outcome: TypeAlias = Transferred | SnapshotTaken | SnapshotsListed | Refused


def encode_operation(operation: Operation, requester: bytes | None = None) -> bytes:
    """`requester` is the client that asks; None: the node itself."""
    behind = [] if requester is None else [requester]
    match operation:
        case Transfer():
            return cbor2.dumps([_TRANSFER, operation.target_id, *behind])
        case TakeSnapshot():
            return cbor2.dumps([_SNAPSHOT, *behind])
        case ListSnapshots():
            return cbor2.dumps([_SNAPSHOTS, *behind])
        case _:
            assert_never(operation)


def decode_operation(data: bytes) -> tuple[Operation, bytes | None]:
    """The operation, and in whose name it is asked. Raises CorruptData."""
    asked = _loads(data)
    requester = None
    if isinstance(asked, list) and asked and isinstance(asked[-1], bytes):
        requester = asked.pop()
    match asked:
        case [str() as name, int() | None as target_id] if name == _TRANSFER:
            return Transfer(target_id), requester
        case [str() as name] if name == _SNAPSHOT:
            return TakeSnapshot(), requester
        case [str() as name] if name == _SNAPSHOTS:
            return ListSnapshots(), requester
    raise CorruptData(f"expected what an operator asks for, found {data[:40].hex()}")


def encode_outcome(outcome: Outcome) -> bytes:
    code = outcome.code if isinstance(outcome, Refused) else ErrorCode.NONE
    return cbor2.dumps([int(code), *(outcome[1:] if isinstance(outcome, Refused) else outcome)])


def decode_outcome(data: bytes) -> Outcome:
    """Raises CorruptData."""
    match _loads(data):
        case [0, int() as leader_id]:
            return Transferred(leader_id)
        case [0, str() as file, int() as end_offset, int() as epoch]:
            return SnapshotTaken(file, end_offset, epoch)
        case [0, list() as listed] if all(map(_is_snapshot, listed)):
            return SnapshotsListed(tuple(SnapshotFile(*one) for one in listed))
        case [int() as code, str() as sentence, int() | None as leader_id] if code in set(ErrorCode):
            return Refused(ErrorCode(code), sentence, leader_id)
    raise CorruptData(f"expected the answer to an operator, found {data[:40].hex()}")


def _is_snapshot(value: object) -> bool:
    match value:
        case [str(), int(), int(), int()]:
            return True
    return False


def _loads(data: bytes) -> object:
    try:
        return cbor2.loads(data)
    except CBOR_ERRORS as error:
        raise CorruptData(f"expected CBOR, found {data[:40].hex()}: {error!r:.100}") from error
