"""The HTTP server of aiohttp with bounds that it does not have: connections, and how long one may be silent."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Final

from aiohttp import web, web_protocol, web_server
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from ..network.rules.fair_queue import peer_of
from .application import make_application, unreadable_response
from .node_ports import NodePorts
from .operations import OPERATIONS
from .tls_door import TlsDoor, host_of

logger = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 256
IDLE_S: Final = 1.0
"""Where all are taken, a new connection takes the place of the one that was silent longest, if it was for so long:
clients that hold connections do not keep health checks out. Of the address that has most of them, one that is silent
gives way to an address that has fewer, however short it was silent. A connection whose request waits for its turn is
silent, too: the turns of an address that sends much more than others are far away."""
SILENCE_S: Final = 30.0
"""A connection on which no request runs is closed after that long: one that never sends its headers, too."""
LOOK_INTERVAL_S: Final = 5.0
LINE_BYTES_MAX: Final = 8190
HEADERS_MAX: Final = 64
SHUTDOWN_TIMEOUT_S: Final = 2.0
LINGERING_S: Final = 1.0
"""How long the rest of a body behind a refusal is thrown away, for the client to see the answer: it may be that of a
client that has proved nothing."""
PIPELINED_MAX: Final = 2
"""Requests that wait behind the one that runs on their connection: aiohttp keeps 32, each with all of its body."""


class _Connection(RequestHandler):
    """Keeps nothing of what could not be read as HTTP.

    The error that is answered has a traceback, so it would keep the bytes, up to 256 KiB of each read, and a cycle of
    references would keep the error: the collector seldom comes here, and a thousand such clients cost a GiB.
    """

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        if self._refusal() is not None:
            return
        super().data_received(data)
        refusal = self._refusal()
        if refusal is not None:
            refusal.exc.__traceback__ = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What could not be read is quoted neither in the answer nor in the log: it may hold a password."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        logger.debug("HTTP request could not be read: peer=%s reason=%s", request.remote, type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        return unreadable_response(is_too_long=isinstance(exc, LineTooLong))

    def _refusal(self) -> _ErrInfo | None:
        """What is answered behind all that could be read; then the connection is closed."""
        last = self._messages[-1][0] if self._messages else None
        return last if isinstance(last, _ErrInfo) else None


# What aiohttp has no argument for; this process has no other server of aiohttp's.
web_protocol.MAX_MSG_QUEUE_SIZE = PIPELINED_MAX
web_server.RequestHandler = _Connection  # type: ignore[attr-defined]


def make_server(node: NodePorts, known_hosts: frozenset[str], loop: asyncio.AbstractEventLoop) -> HttpServer:
    return HttpServer(make_application(node, OPERATIONS, known_hosts), loop, node.tls)


class HttpServer:
    """One application on sockets that listen already."""

    def __init__(
        self,
        application: web.Application,
        loop: asyncio.AbstractEventLoop,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`tls` has the context of https, of each connection."""
        self._loop = loop
        self._door = None if tls is None else TlsDoor(loop, tls, self.make_connection, self.has_place)
        # Inside of the one in which requests wait for their turn: until it begins, a request keeps no one out.
        application.middlewares.append(self._watch)
        self._runner = web.AppRunner(
            application,
            handle_signals=False,
            access_log=None,
            handler_cancellation=True,
            max_line_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            max_field_size=LINE_BYTES_MAX,
            keepalive_timeout=SILENCE_S,
            lingering_time=LINGERING_S,
            shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        )
        self._servers: list[asyncio.Server] = []
        self._silences: dict[RequestHandler, _Silence] = {}
        self._watching: asyncio.Task[None] | None = None

    async def start(self, sockets: Sequence[socket.socket], encrypted: Container[socket.socket] = ()) -> None:
        """`encrypted` are those of https."""
        await self._runner.setup()
        for one in sockets:
            if one in encrypted:
                assert self._door is not None, "https needs certificates"
                self._door.open(one)
            else:
                self._servers.append(await self._loop.create_server(lambda: _Newcomer(self), sock=one))
        self._watching = self._loop.create_task(self._close_silent())

    async def stop(self) -> None:
        """Requests that run are given SHUTDOWN_TIMEOUT_S."""
        if self._watching is not None:
            self._watching.cancel()
        for server in self._servers:
            server.close()
        if self._door is not None:
            await self._door.close()
        await self._runner.cleanup()

    @property
    def _server(self) -> web.Server:
        server = self._runner.server
        assert server is not None, "the runner is set up"
        return server

    def has_place(self, host: str) -> bool:
        """Whether there is one for another connection from that address; perhaps that of another one.

        Where all are taken, an address that has fewer than the greediest one gets a place of that. Else it gets the
        place of a connection that is silent, of addresses that have as many as it has itself.
        """
        connections, door, peer = self._server.connections, self._door, peer_of(host)
        if len(connections) + (0 if door is None else len(door)) < CONNECTIONS_MAX:
            return True
        held = Counter(self._silences[one].peer for one in connections if one in self._silences)
        if door is not None:
            held.update(door.peers)
        own = held[peer]
        greediest, most = max(held.items(), key=lambda one: one[1], default=(peer, own))
        if own + 1 < most:
            of_greediest = {greediest}
            return (door is not None and door.give_up_one(0.0, of_greediest)) or self._give_up_one(0.0, of_greediest)
        as_many = {one for one, count in held.items() if count >= own}
        return (door is not None and door.give_up_one(IDLE_S, as_many)) or self._give_up_one(IDLE_S, as_many)

    def make_connection(self, host: str) -> RequestHandler:
        connection = self._server()
        self._silences[connection] = _Silence(self._loop.time(), peer_of(host))
        return connection

    def _give_up_one(self, idle_s: float, peers: Container[str]) -> bool:
        """Close the connection of these that was silent longest. False where none was for so long."""
        now_s = self._loop.time()
        silent = [
            (self._silences[one].since_s, number, one)
            for number, one in enumerate(self._server.connections)
            if one in self._silences and not self._silences[one].is_over and self._silences[one].peer in peers
        ]
        since_s, _, oldest = min(silent, default=(now_s, 0, None))
        if oldest is None or now_s - since_s < idle_s:
            return False
        _abort(oldest)
        del self._silences[oldest]
        return True

    @web.middleware
    async def _watch(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        silence = self._silences.setdefault(
            request.protocol, _Silence(self._loop.time(), peer_of(request.remote or ""))
        )
        silence.is_over = True
        try:
            return await handler(request)
        finally:
            silence.is_over = False
            silence.since_s = self._loop.time()

    async def _close_silent(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            now_s = self._loop.time()
            open_now = self._server.connections
            self._silences = {one: self._silences[one] for one in open_now if one in self._silences}
            for connection, silence in tuple(self._silences.items()):
                if not silence.is_over and now_s - silence.since_s > SILENCE_S:
                    _abort(connection)


def _abort(connection: RequestHandler) -> None:
    """Without sending what is left: a client that does not read would keep the socket for as long as it likes."""
    # Those of uvloop are no subclass of asyncio's.
    transport = connection.transport
    connection.force_close()
    if transport is not None:
        transport.abort()


class _Silence:
    """Of a connection: since when no request has begun on it, or that one runs."""

    __slots__ = ("is_over", "peer", "since_s")

    def __init__(self, now_s: float, peer: str) -> None:
        self.is_over = False
        self.since_s = now_s
        self.peer = peer


class _Newcomer(asyncio.Protocol):
    """A connection until it is known from where it comes: then it has a place, or is one too many."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        host = host_of(transport.get_extra_info("peername"))
        if not self._server.has_place(host):
            transport.close()
            return
        connection = self._server.make_connection(host)
        transport.set_protocol(connection)
        connection.connection_made(transport)
