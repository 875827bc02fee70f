"""The low-water mark of a TLS connection's socket (SO_RCVLOWAT): how much must have come before it wakes the loop.

A client with TLS sends a large request record by record, 16 KiB each. Each of them that finds the event loop waiting
wakes it, for two system calls and a turn through transport and connection, and only the last completes the request.
With a mark the system wakes it once for several (decision 33). Without TLS clients send a request in few calls: a mark
saved nothing there.

A mark delays nothing that could be used: it is never above what must still come before the request is complete. Linux
disregards it when the peer closes, when memory for sockets runs short, and when the socket has no more room. Others do
not say so: there is no mark.
"""

from __future__ import annotations

import asyncio
import platform
import re
import socket
from typing import Final

from .tls_transport import RECEIVE_BYTES, RECORD_BYTES

MARK_BYTES: Final = RECEIVE_BYTES
"""What is received at a time. A socket has room for twice as much from its start."""
LINUX_MIN: Final = (5, 12)
"""Before it, packets with little in large buffers could fill a socket, or memory run short, below the mark: it hung."""


class ReceiveMark:
    """That of one connection. Not to be used when its transport is closing: the descriptor may be another's then."""

    __slots__ = ("_bytes", "_socket")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._bytes = 1

    @staticmethod
    def of(transport: asyncio.BaseTransport) -> ReceiveMark | None:
        """None where a mark saves nothing, or the system has none."""
        connected = transport.get_extra_info("socket")
        if not _IS_SAFE or connected is None or transport.get_extra_info("ssl_object") is None:
            return None
        return ReceiveMark(connected)

    def expect(self, missing_bytes: int) -> None:
        """So many bytes are still to come, decrypted, before they are of use; 0: any byte is."""
        # The transport may have taken all but the end of one record from the socket already, which is not counted yet.
        mark = MARK_BYTES if missing_bytes >= MARK_BYTES + RECORD_BYTES else 1
        if mark != self._bytes:
            self._bytes = mark
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)


def is_safe(system: str, release: str) -> bool:
    """Whether a connection never hangs below a mark, by its name and release."""
    version = re.match(r"(\d+)\.(\d+)", release)
    return system == "Linux" and version is not None and (int(version[1]), int(version[2])) >= LINUX_MIN


_IS_SAFE: Final = is_safe(platform.system(), platform.release())
