"""Messages between voters: everything comes back, and nothing that is none gets through."""

import contextlib
from typing import Any, get_args

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.errors import CorruptData
from penstock.protocol.ids import NodeId
from penstock.quorum.raft.consensus import MAX_COMMAND_BYTES
from penstock.quorum.raft.inbox import Inbox
from penstock.quorum.raft.messages import (
    Append,
    EntryBody,
    RaftMessage,
    SnapshotPart,
    Vote,
    decode_message,
    encode_message,
)

integers = st.integers(0, 2**63 - 1)
terms = st.integers(0, 2**31 - 1)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "entries": st.lists(st.builds(EntryBody, terms, st.binary(max_size=50)), max_size=4).map(tuple),
    "chunks": st.lists(st.binary(max_size=50), max_size=4).map(tuple),
}


def values(name: str) -> st.SearchStrategy[object]:
    if name.startswith(("is_", "has_")):
        return st.booleans()
    return terms if "epoch" in name or "term" in name else FIELDS.get(name, integers)


messages: st.SearchStrategy[RaftMessage] = st.one_of(
    *(st.tuples(*map(values, kind._fields)).map(kind._make) for kind in get_args(RaftMessage))
)


@given(messages)
def test_every_message_comes_back(message: RaftMessage) -> None:
    assert decode_message(encode_message(message)) == message


@pytest.mark.fuzz
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    with contextlib.suppress(CorruptData):
        decode_message(data)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@pytest.mark.thorough
@pytest.mark.fuzz
@given(messages, st.data())
def test_a_wrong_field_is_refused_by_name(message: RaftMessage, data: st.DataObject) -> None:
    fields = cbor2.loads(encode_message(message))
    index = data.draw(st.integers(1, len(fields) - 1))
    fields[index] = data.draw(anything)
    try:
        decoded = decode_message(cbor2.dumps(fields))
    except CorruptData:
        return
    for name, value in zip(decoded._fields, tuple[Any, ...](decoded), strict=True):
        match name:
            case "entries":
                assert all(isinstance(entry, EntryBody) for entry in value)
            case "chunks":
                assert all(isinstance(chunk, bytes) for chunk in value)
            case _ if name.startswith(("is_", "has_")):
                assert isinstance(value, bool)
            case _:
                assert type(value) is int
                assert -1 <= value < 2**63


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [99, 1],
        [True, 1],
        [0, 1],
        [3, -1],
        [3, 2**31],
        [1, 1, 2**63, True, True, 0],
        [0, 1, 0, 0, 0, [[2**31, b""]]],
        [13, 1, 1, 2**31, 0, [b""], 0, True],
        [3, 1.0],
        [3, True],
        [0, 1, -2, 0, 0, []],
        [0, 1, 0, 0, 0, [[1, "text"]]],
        [0, 1, 0, 0, 0, [[1, bytes(MAX_COMMAND_BYTES + 1)]]],
        {"type": "append_entries"},
        "pickle",
    ],
)
def test_what_is_no_message_is_refused(fields: object) -> None:
    with pytest.raises(CorruptData):
        decode_message(cbor2.dumps(fields))


def test_a_leap_to_the_last_term_is_refused() -> None:
    inbox = Inbox()
    inbox.add(NodeId(2), encode_message(Vote(1_000)), term=3)
    with pytest.raises(CorruptData, match="a message of term 2147483647 while this node is in term 3"):
        inbox.add(NodeId(2), encode_message(Vote(2**31 - 1)), term=3)
    assert inbox.take() == [(2, Vote(1_000))]
    assert inbox.is_empty


def test_the_largest_messages_fit_into_a_frame() -> None:
    from penstock.quorum.links.rules.link_frames import MAX_FRAME_BYTES

    append = Append(1, 0, 0, 0, (EntryBody(1, bytes(MAX_COMMAND_BYTES)),))
    part = SnapshotPart(1, 1, 1, 0, (bytes(2 * 1024 * 1024),), 0, True)
    assert max(len(encode_message(append)), len(encode_message(part))) < MAX_FRAME_BYTES
