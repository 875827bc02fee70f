"""Listeners on the loopback whose requests are answered with what they bring, or with what the test says."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Awaitable, Callable
from functools import cache

import pytest
import trustme
import uvloop
from other_tasks import end_other_tasks

from penstock.broker.configuration.listener_config import ListenerConfig
from penstock.broker.network.connection_host import ConnectionHost
from penstock.broker.network.listeners import Listeners
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Request
from penstock.broker.network.rules.connection_limits import ConnectionLimits
from penstock.broker.network.rules.request_memory import RequestMemory

LOOPS = [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]
LOOPBACK = ListenerConfig(name="PLAINTEXT", host="127.0.0.1", port=0)


def frame(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ihhih", 10 + len(body), 0, 3, correlation_id, -1) + body


class Echo:
    """Answers every request with its body; parks those whose body is `park`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None = None) -> None:
        self.parked: list[Request] = []
        self.disconnected = asyncio.Event()
        self._has_parked = asyncio.Event()
        self.both_begun = asyncio.Event()
        self.host = ConnectionHost(
            loop=loop,
            begin=self.begin,
            overlapping=frozenset({0}),
            memory=RequestMemory(1 << 28),
            peer_log=PeerLog(loop),
            limits=ConnectionLimits(total=100, per_host=100, per_host_overrides={}),
            request_bytes_max=100 << 20,
            idle_ms_max=600_000,
        )
        self.listeners = Listeners(self.host, tls_of=lambda _name: None if tls is None else lambda: tls)

    def begin(self, request: Request) -> None:
        if self.host.requests.count == 2:
            self.both_begun.set()
        body = bytes(request.body[request.body_offset :])
        if body == b"park":
            request.on_disconnect = self.disconnected.set
            self.parked.append(request)
            self._has_parked.set()
        else:
            request.respond(struct.pack(">ii", 4 + len(body), request.correlation_id) + body)

    async def wait_parked(self, count: int = 1) -> None:
        while len(self.parked) < count:
            self._has_parked.clear()
            await self._has_parked.wait()


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The same for all tests, which change nothing about them."""
    return own_contexts()


def own_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a server, and of a client that trusts it."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    return server, client


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    size, correlation_id = struct.unpack(">ii", await reader.readexactly(8))
    return correlation_id, await reader.readexactly(size - 4)


Scenario = Callable[[Echo, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(new_loop: Callable[[], asyncio.AbstractEventLoop], scenario: Scenario, *, has_tls: bool = False) -> None:
    async def main() -> None:
        server, client = contexts() if has_tls else (None, None)
        echo = Echo(asyncio.get_running_loop(), server)
        ports = await echo.listeners.bind([LOOPBACK], backlog=50)
        await echo.listeners.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["PLAINTEXT"], ssl=client)
        try:
            async with asyncio.timeout(30):
                await scenario(echo, reader, writer)
            writer.close()
        finally:
            # After a failure, too: uvloop does not close as long as a connection is in the middle of something.
            writer.transport.abort()
            echo.listeners.close()
            await echo.listeners.drain(1000)
            await end_other_tasks()

    loop = new_loop()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
