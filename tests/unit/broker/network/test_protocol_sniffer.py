"""Connections of two protocols on one port, and those that never say which they are."""

from __future__ import annotations

import asyncio
import contextlib
import struct

import pytest

from penstock.broker.configuration.listener_config import ListenerConfig
from penstock.broker.network import protocol_sniffer
from penstock.broker.network.connection_host import ConnectionHost
from penstock.broker.network.listeners import Listeners
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Request
from penstock.broker.network.rules.connection_limits import ConnectionLimits
from penstock.broker.network.rules.request_memory import RequestMemory

HOST = "127.0.0.1"
OTHER = b"\xffother"


class Other:
    """Takes what begins so, says so, and closes."""

    def starts_link(self, first: bytes) -> bool | None:
        return first.startswith(OTHER) if len(first) >= len(OTHER) else (None if OTHER.startswith(first) else False)

    def accept(self, transport: asyncio.Transport, first: bytes) -> None:
        transport.write(b"link:" + first)
        transport.close()


async def listening() -> tuple[Listeners, int]:
    loop = asyncio.get_running_loop()

    def begin(request: Request) -> None:
        request.respond(struct.pack(">ii", 4, request.correlation_id))

    host = ConnectionHost(
        loop=loop,
        begin=begin,
        overlapping=frozenset({0}),
        memory=RequestMemory(1 << 20),
        peer_log=PeerLog(loop),
        limits=ConnectionLimits(total=1_000, per_host=1_000, per_host_overrides={}),
        request_bytes_max=1 << 20,
        idle_ms_max=600_000,
    )
    listeners = Listeners(host, Other())
    ports = await listeners.bind([ListenerConfig(name="CONTROLLER", host=HOST, port=0)], backlog=500)
    await listeners.start()
    return listeners, ports["CONTROLLER"]


async def is_served(port: int) -> bool:
    reader, writer = await asyncio.open_connection(HOST, port)
    question = struct.pack(">ihhih", 10, 0, 3, 7, -1)
    # Byte by byte: what is known after the first must not be lost.
    for byte in question:
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    answer = await reader.readexactly(8)
    writer.close()
    return answer == struct.pack(">ii", 4, 7)


async def hangs_up(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError):
        return await reader.read() == b""
    return True


async def closed(listeners: Listeners) -> None:
    listeners.close()
    await listeners.drain(1_000)


def test_each_protocol_gets_its_own_connections() -> None:
    async def test() -> None:
        listeners, port = await listening()
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(OTHER + b" and more")
        assert await reader.read() == b"link:" + OTHER + b" and more"
        writer.close()
        assert await is_served(port)
        await closed(listeners)

    asyncio.run(asyncio.wait_for(test(), 20))


def test_those_that_say_nothing_are_bounded_and_keep_no_client_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_sniffer, "UNKNOWN_MAX", 8)

    async def test() -> None:
        listeners, port = await listening()
        silent = [await asyncio.open_connection(HOST, port) for _ in range(protocol_sniffer.UNKNOWN_MAX)]
        silent[0][1].write(OTHER[:2])
        assert await is_served(port)
        assert await hangs_up(silent[0][0])
        # When the node stops it waits for none of them.
        await closed(listeners)
        for reader, writer in silent:
            assert await hangs_up(reader)
            writer.close()

    asyncio.run(asyncio.wait_for(test(), 20))


def test_one_that_says_nothing_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_sniffer, "UNKNOWN_TIMEOUT_S", 0.05)

    async def test() -> None:
        listeners, port = await listening()
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(OTHER[:1])
        assert await hangs_up(reader)
        writer.close()
        await closed(listeners)

    asyncio.run(asyncio.wait_for(test(), 20))
