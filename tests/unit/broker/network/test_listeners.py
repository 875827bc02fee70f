"""Real sockets on the loopback: ports, pipelining, slow readers, draining; on asyncio's loop and on uvloop."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from penstock.broker.configuration.listener_config import ListenerConfig
from penstock.broker.network.connection import ConnectionHost
from penstock.broker.network.connection_limits import ConnectionLimits
from penstock.broker.network.listeners import Listeners
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Request
from penstock.broker.network.request_memory import RequestMemory
from penstock.protocol.errors import ConfigError

LOOPS = [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]
LOOPBACK = ListenerConfig(name="PLAINTEXT", host="127.0.0.1", port=0)


def frame(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ihhih", 10 + len(body), 0, 3, correlation_id, -1) + body


class Echo:
    """Answers every request with its body; parks those whose body is `park`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.parked: list[Request] = []
        self.disconnected = asyncio.Event()
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
        self.listeners = Listeners(self.host)

    def begin(self, request: Request) -> None:
        if self.host.counters.requests == 2:
            self.both_begun.set()
        body = bytes(request.body[request.body_offset :])
        if body == b"park":
            request.on_disconnect = self.disconnected.set
            self.parked.append(request)
        else:
            request.respond(struct.pack(">ii", 4 + len(body), request.correlation_id) + body)


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    size, correlation_id = struct.unpack(">ii", await reader.readexactly(8))
    return correlation_id, await reader.readexactly(size - 4)


Scenario = Callable[[Echo, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(new_loop: Callable[[], asyncio.AbstractEventLoop], scenario: Scenario) -> None:
    async def main() -> None:
        echo = Echo(asyncio.get_running_loop())
        ports = await echo.listeners.bind([LOOPBACK], backlog=50)
        await echo.listeners.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["PLAINTEXT"])
        async with asyncio.timeout(30):
            await scenario(echo, reader, writer)
        writer.close()
        echo.listeners.close()
        await echo.listeners.drain(1000)

    loop = new_loop()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.mark.parametrize("new_loop", LOOPS)
def test_pipelined_requests_of_all_sizes_are_answered_in_order(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies = [bytes([number % 251]) * (number * number * 40) for number in range(120)]

        async def write() -> None:
            for number, body in enumerate(bodies):
                writer.write(frame(number, body))
                await writer.drain()

        writing = asyncio.create_task(write())
        for number, body in enumerate(bodies):
            assert await read_answer(reader) == (number, body)
        await writing
        assert echo.host.memory.used_bytes == 0

    run(new_loop, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_slow_reader_stops_the_node_from_reading(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        body = bytes(1 << 20)
        total = 80

        async def write() -> None:
            for number in range(total):
                writer.write(frame(number, body))
                await writer.drain()

        writing = asyncio.create_task(write())
        seen = -1
        while seen != echo.host.counters.requests:
            seen = echo.host.counters.requests
            await asyncio.wait([writing], timeout=0.2)
        assert 0 < seen < total
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        for number in range(total):
            assert await read_answer(reader) == (number, body)
        await writing

    run(new_loop, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_disconnect_is_noticed_while_a_request_is_parked(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(1) + frame(2, b"park"))
        assert await read_answer(reader) == (1, b"")
        writer.close()
        await echo.disconnected.wait()
        assert not echo.parked[0].is_connected

    run(new_loop, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_draining_answers_what_has_begun(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(1, b"park") + frame(2))
        await echo.both_begun.wait()
        echo.listeners.close()
        draining = asyncio.create_task(echo.listeners.drain(5000))
        await asyncio.sleep(0)
        echo.parked[0].respond(struct.pack(">ii", 4, 1))
        assert await read_answer(reader) == (1, b"")
        assert await read_answer(reader) == (2, b"")
        assert await reader.read() == b""
        await draining
        assert echo.listeners.statistics().connections == 0
        assert echo.listeners.statistics().requests == 2

    run(new_loop, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_nothing_is_accepted_before_the_start(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        echo = Echo(asyncio.get_running_loop())
        ports = await echo.listeners.bind([LOOPBACK], backlog=50)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", ports["PLAINTEXT"])
        taken = ListenerConfig(name="OTHER", host="127.0.0.1", port=ports["PLAINTEXT"])
        await echo.listeners.start()
        with pytest.raises(ConfigError, match=r"OTHER://127.0.0.1:\d+ cannot be bound"):
            await Listeners(echo.host).bind([taken], backlog=50)
        echo.listeners.close()

    loop = new_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
