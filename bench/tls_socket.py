"""A blocking connection with TLS whose steps are told one by one, so that one thread can open many side by side.

A client that waited for each handshake would leave the broker idle in between.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .wire import ANSWER_TIMEOUT_S

_SIZE_BYTES: Final = 4
_READ_BYTES: Final = 16 * 1024


def client_context(authority: Path) -> ssl.SSLContext:
    """For all connections; none resumes the session of another."""
    return ssl.create_default_context(cafile=str(authority))


class TlsSocket:
    """As `wire.Socket`, but for `finish_handshake`."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        """Connects and sends what the handshake begins with."""
        self._socket = socket.create_connection(address, timeout=ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=address[0])
        self._received = bytearray()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()

    def close(self) -> None:
        self._socket.close()

    def finish_handshake(self) -> None:
        """Waits for the broker's part. Raises ssl.SSLError."""
        self._when_there(self._tls.do_handshake)
        self._flush()

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def receive_answer(self) -> bytes:
        """One whole answer with its size."""
        size = _SIZE_BYTES + int.from_bytes(self._receive(_SIZE_BYTES))
        answer = self._receive(size)
        del self._received[:size]
        return answer

    def _receive(self, size: int) -> bytes:
        while len(self._received) < size:
            data = self._when_there(lambda: self._tls.read(_READ_BYTES))
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._received += data
        return bytes(self._received[:size])

    def _when_there(self, act: Callable[[], bytes | None]) -> bytes | None:
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._flush()
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._incoming.write(data)

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.sendall(self._outgoing.read())
