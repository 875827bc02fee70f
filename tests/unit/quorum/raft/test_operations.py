"""What operators ask, as bytes."""

import pytest

from penstock.protocol.errors import CorruptData, ErrorCode
from penstock.quorum.raft.operations import (
    ListSnapshots,
    Operation,
    Outcome,
    Refused,
    SnapshotFile,
    SnapshotsListed,
    SnapshotTaken,
    TakeSnapshot,
    Transfer,
    Transferred,
    decode_operation,
    decode_outcome,
    encode_operation,
    encode_outcome,
)


@pytest.mark.parametrize("operation", [Transfer(None), Transfer(3), TakeSnapshot(), ListSnapshots()])
def test_operations_come_back_as_they_were(operation: Operation) -> None:
    for client in (None, b"client"):
        decoded, requester = decode_operation(encode_operation(operation, client))
        assert (type(decoded), decoded, requester) == (type(operation), operation, client)


@pytest.mark.parametrize(
    "outcome",
    [
        Transferred(2),
        SnapshotsListed(()),
        SnapshotsListed((SnapshotFile("/data/x.checkpoint", 17, 4, 900),)),
        SnapshotTaken("/data/x.checkpoint", 17, 4),
        Refused(ErrorCode.NOT_CONTROLLER, "Node 1 does not lead.", 2),
        Refused(ErrorCode.INVALID_REQUEST, "No."),
    ],
)
def test_outcomes_come_back_as_they_were(outcome: Outcome) -> None:
    decoded = decode_outcome(encode_outcome(outcome))
    assert (type(decoded), decoded) == (type(outcome), outcome)


def test_a_client_alone_asks_for_nothing() -> None:
    with pytest.raises(CorruptData):
        decode_operation(b"\x81\x41x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\x80",
        b"\x81\x63any",
        b"\x82\x68transfer\x61x",
        b"\x82\x00\x81\x61x",
        b"\x82\x19\x27\x10\x01",
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    for decode in (decode_operation, decode_outcome):
        with pytest.raises(CorruptData):
            decode(data)
