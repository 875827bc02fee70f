"""When a mark is set, and where it may be."""

from __future__ import annotations

import asyncio
import socket

import pytest

from penstock.broker.network.receive_mark import MARK_BYTES, ReceiveMark, is_safe
from penstock.broker.network.tls_transport import RECORD_BYTES


class Socket(socket.socket):
    """Notes the marks that are set."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[object] = []

    def setsockopt(self, *args: object) -> None:
        level, option, value = args
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        self.marks.append(value)


def test_a_mark_is_never_above_what_must_still_come() -> None:
    """The transport may have the beginning of a record that is not counted."""
    with Socket() as connected:
        mark = ReceiveMark(connected)
        for missing_bytes in (0, 100, 1 << 20, 500_000, MARK_BYTES + RECORD_BYTES, MARK_BYTES + RECORD_BYTES - 1, 5, 0):
            mark.expect(missing_bytes)
        assert connected.marks == [MARK_BYTES, 1]


def test_a_connection_without_tls_has_no_mark() -> None:
    with socket.socket() as connected:
        assert ReceiveMark.of(asyncio.Transport(extra={"socket": connected})) is None


@pytest.mark.parametrize(
    ("system", "release", "answer"),
    [
        ("Linux", "6.1.0-18-amd64", True),
        ("Linux", "5.12.0", True),
        ("Linux", "5.10.223-211.872.amzn2.x86_64", False),
        ("Linux", "4.4.0", False),
        ("Linux", "unknown", False),
        ("Darwin", "23.5.0", False),
    ],
)
def test_a_mark_is_set_only_where_a_connection_cannot_hang_below_it(system: str, release: str, *, answer: bool) -> None:
    assert is_safe(system, release) == answer
