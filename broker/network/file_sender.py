"""Ranges of files on their way into a socket without passing through this process (sendfile).

The transports of event loops have no such call, so it goes past them, on a descriptor of its own for the same socket.
That keeps the order only while the transport itself has nothing left to send: the caller must ensure that.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Final

from .request import FileSlice

# Where it is missing, sendmsg sends what comes before a file at once, in a packet of its own.
_MORE: Final = getattr(socket, "MSG_MORE", 0)
# In one call: IOV_MAX of Linux, macOS and the BSDs.
_PARTS_MAX: Final = 1024


class FileSender:
    """The socket of one connection. Close it when the connection is lost."""

    __slots__ = ("_loop", "_socket")

    def __init__(self, loop: asyncio.AbstractEventLoop, connected: socket.socket) -> None:
        self._loop = loop
        self._socket = connected

    @staticmethod
    def beside(loop: asyncio.AbstractEventLoop, transport: asyncio.BaseTransport) -> FileSender | None:
        """None where bytes must pass through the process, or no descriptor is left."""
        connected = transport.get_extra_info("socket")
        if connected is None or transport.get_extra_info("ssl_object") is not None:
            return None
        try:
            return FileSender(loop, socket.fromfd(connected.fileno(), connected.family, connected.type))
        except OSError:
            return None

    def send(self, parts: Sequence[bytes | bytearray]) -> int:
        """How many bytes of what comes before a file were taken. Raises OSError when the connection is gone."""
        try:
            return self._socket.sendmsg(parts[:_PARTS_MAX], (), _MORE)
        except BlockingIOError:
            return 0

    def send_file(self, part: FileSlice, offset: int, size: int) -> int | None:
        """As `FileSlice.send_nowait`."""
        return part.send_nowait(self._socket.fileno(), offset, size)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Calls back once, when there is room in the socket."""
        self._loop.add_writer(self._socket.fileno(), self._on_writable, callback)

    def close(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()

    def _on_writable(self, callback: Callable[[], None]) -> None:
        self._loop.remove_writer(self._socket.fileno())
        callback()
