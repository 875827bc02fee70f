"""The bytes before a value in the wire format of schema registries."""

from __future__ import annotations

import pytest

from penstock.pipeline.records.errors import BadRecordError
from penstock.pipeline.records.wire_format import parse_frame, parse_message_indexes


def test_a_frame_has_an_id_and_a_body() -> None:
    frame = parse_frame(b"\0\0\1\0\2body")
    assert (frame.schema_id, frame.body_start) == (65_538, 5)


@pytest.mark.parametrize(("data", "found"), [(b"", "0 bytes"), (b"\0\0\0\1", "4 bytes"), (b"\1\0\0\0\1", "byte 0x01")])
def test_other_bytes_are_no_frame(data: bytes, found: str) -> None:
    with pytest.raises(BadRecordError, match=found):
        parse_frame(data)


@pytest.mark.parametrize(
    ("data", "indexes", "end"),
    [
        (b"\0rest", (0,), 1),
        (b"\2\0rest", (0,), 2),
        (b"\4\2\6rest", (1, 3), 3),
        (b"\2\x80\2rest", (128,), 3),
    ],
)
def test_message_indexes_lead_from_outside_in(data: bytes, indexes: tuple[int, ...], end: int) -> None:
    assert parse_message_indexes(b"head" + data, 4) == (indexes, 4 + end)


@pytest.mark.parametrize("data", [b"", b"\4\2", b"\x80", b"\1", b"\x42" + b"\0" * 33, b"\2" + b"\xff" * 6])
def test_other_bytes_are_no_message_indexes(data: bytes) -> None:
    with pytest.raises(BadRecordError):
        parse_message_indexes(data, 0)
