"""Protocol detection: connections of two protocols on one listener, told apart by their first bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

# For connections that have not said what they are. With one more the oldest is closed: who wants something says so at
# once.
UNKNOWN_MAX: Final = 256
UNKNOWN_TIMEOUT_S: Final = 10.0


class LinkAcceptor(Protocol):
    """Takes the connections that do not speak Kafka's protocol: links between voters."""

    def starts_link(self, first_bytes: bytes) -> bool | None:
        """Whether a connection that begins so is its; None while more bytes are needed to say."""

    def accept(self, transport: asyncio.Transport, first_bytes: bytes) -> None:
        """Take the connection over, with the bytes received so far."""


class UnknownConnections:
    """Those that have not said yet what they are, in the order in which they came."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timers: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    def add(self, transport: asyncio.Transport) -> None:
        if len(self._timers) >= UNKNOWN_MAX:
            oldest = next(iter(self._timers))
            self.remove(oldest)
            oldest.abort()
        self._timers[transport] = self._loop.call_later(UNKNOWN_TIMEOUT_S, transport.abort)

    def remove(self, transport: asyncio.Transport) -> None:
        timer = self._timers.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def abort_all(self) -> None:
        for transport in tuple(self._timers):
            self.remove(transport)
            transport.abort()


class ProtocolSniffer(asyncio.Protocol):
    """Holds a new connection until it is known whose it is."""

    def __init__(
        self,
        links: LinkAcceptor,
        make_connection: Callable[[], asyncio.BufferedProtocol],
        unknown: UnknownConnections,
    ) -> None:
        self._links = links
        self._make_connection = make_connection
        self._unknown = unknown
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._unknown.add(self._transport)

    def connection_lost(self, _: Exception | None) -> None:
        assert self._transport is not None
        self._unknown.remove(self._transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._held += data
        match self._links.starts_link(self._held):
            case True:
                self._unknown.remove(self._transport)
                self._links.accept(self._transport, self._held)
            case False:
                self._unknown.remove(self._transport)
                self._switch_to_requests(self._transport)

    def _switch_to_requests(self, transport: asyncio.Transport) -> None:
        connection = self._make_connection()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        rest = memoryview(self._held)
        while rest and not transport.is_closing():
            buffer = memoryview(cast(bytearray, connection.get_buffer(len(rest))))
            size = min(len(buffer), len(rest))
            buffer[:size] = rest[:size]
            connection.buffer_updated(size)
            rest = rest[size:]
