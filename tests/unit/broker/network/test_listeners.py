"""Real sockets on the loopback: ports, pipelining, slow readers, draining; on both loops, with TLS and without."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

import pytest
from echo_node import LOOPBACK, LOOPS, Echo, frame, read_answer, run
from waiting import loop_until

from penstock.broker.configuration.listener_config import ListenerConfig
from penstock.broker.network.listeners import Listeners
from penstock.broker.network.rules.answer_memory import UNSENT_BYTES_MAX
from penstock.broker.network.rules.connection_rates import ConnectionRates
from penstock.protocol.errors import ConfigError


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_pipelined_requests_of_all_sizes_are_answered_in_order(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    has_tls: bool,
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

    run(new_loop, scenario, has_tls=has_tls)


@pytest.mark.thorough
@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_slow_reader_stops_the_node_from_reading(
    new_loop: Callable[[], asyncio.AbstractEventLoop], has_tls: bool
) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        body = bytes(1 << 20)
        total = 80

        async def write() -> None:
            for number in range(total):
                writer.write(frame(number, body))
                await writer.drain()

        writing = asyncio.create_task(write())
        await loop_until(
            lambda: echo.host.answers.held_bytes >= UNSENT_BYTES_MAX, "as many unsent answers as the node holds"
        )
        # Silence only ends the observation: on a busy machine it ends early, which hides a fault and reports none.
        seen = -1
        while seen != echo.host.requests.count:
            seen = echo.host.requests.count
            await asyncio.wait([writing], timeout=0.2)
        assert seen < total
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        for number in range(total):
            assert await read_answer(reader) == (number, body)
        await writing

    run(new_loop, scenario, has_tls=has_tls)


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_disconnect_is_noticed_while_a_request_is_parked(
    new_loop: Callable[[], asyncio.AbstractEventLoop], has_tls: bool
) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(1) + frame(2, b"park"))
        assert await read_answer(reader) == (1, b"")
        writer.close()
        await echo.disconnected.wait()
        assert not echo.parked[0].is_connected

    run(new_loop, scenario, has_tls=has_tls)


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_draining_answers_what_has_begun(new_loop: Callable[[], asyncio.AbstractEventLoop], has_tls: bool) -> None:
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

    run(new_loop, scenario, has_tls=has_tls)


@pytest.mark.thorough
@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_throttled_connection_keeps_what_comes_meanwhile(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario(echo: Echo, _: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
        # One a second: this one waits for a second.
        echo.host.rates = ConnectionRates(sample_count=1, window_ms=1000)
        echo.host.rates.set_limits(total=1, by_listener={}, protected_listener=None)
        reader, writer = await asyncio.open_connection(*other.get_extra_info("peername"))
        writer.write(frame(0))
        await loop_until(lambda: echo.host.counters.bytes_in)
        assert echo.host.requests.count == 0
        # More than the sockets have room for.
        writer.write(frame(1, bytes(8 << 20)))
        for number in range(2):
            assert (await read_answer(reader))[0] == number
        writer.close()

    run(new_loop, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_port_on_which_another_process_listens_since_it_was_bound_is_an_error(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        echo = Echo(asyncio.get_running_loop())
        ports = await echo.listeners.bind([LOOPBACK], backlog=50)
        # Linux lets others bind it for as long as none listens.
        with socket.create_server(("127.0.0.1", ports["PLAINTEXT"])):
            with pytest.raises(ConfigError, match=r"PLAINTEXT cannot listen on 127\.0\.0\.1:\d+"):
                await echo.listeners.start()
            echo.listeners.close()

    loop = new_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


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
