"""One broker as the script sees it: an address, and connections that send frames and read them."""

from __future__ import annotations

import contextlib
import socket
import struct
from types import TracebackType
from typing import Self

ANSWER_TIMEOUT_S = 30.0


class ClosedError(Exception):
    """The broker closed the connection instead of answering."""


class SilentError(Exception):
    """The broker did not answer in the time that was given."""


class Link:
    """One connection, one request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError as error:
            raise ClosedError(str(error)) from error

    def receive(self, timeout_s: float = ANSWER_TIMEOUT_S) -> bytes:
        """The next frame without its size. ClosedError, SilentError."""
        self._socket.settimeout(timeout_s)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                received = self._socket.recv(size - len(data))
            except TimeoutError as error:
                raise SilentError from error
            except OSError as error:
                raise ClosedError(str(error)) from error
            if not received:
                raise ClosedError("end of stream")
            data += received
        return bytes(data)


class Target:
    """A broker at `bootstrap`, and `words`: what stands in its answers because it is this one, with a name for each."""

    def __init__(self, bootstrap: str, words: dict[str, str] | None = None) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.address = (host, int(port))
        self.words = {bootstrap: "<address>", **(words or {})}
        self._links: list[Link] = []

    def connect(self) -> Link:
        link = Link(self.address)
        self._links.append(link)
        return link

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for link in self._links:
            with contextlib.suppress(OSError):
                link.close()
