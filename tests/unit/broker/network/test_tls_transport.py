"""Handshakes that fail, that never end, and requests whose records come in parts; on both loops."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop
from certificates import Authority
from waiting import loop_until

from penstock.broker.configuration.listener_config import ListenerConfig
from penstock.broker.configuration.principal_mapping import PrincipalMapping, parse_principal_mapping
from penstock.broker.network import tls_transport
from penstock.broker.network.connection_host import ConnectionHost
from penstock.broker.network.listeners import Listeners
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.receive_mark import MARK_BYTES
from penstock.broker.network.request import Request
from penstock.broker.network.rules.connection_limits import ConnectionLimits
from penstock.broker.network.rules.connection_rates import ConnectionRates
from penstock.broker.network.rules.request_memory import RequestMemory
from penstock.broker.network.tls_transport import RECORD_BYTES

LOOPS = [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]
NewLoop = Callable[[], asyncio.AbstractEventLoop]
METADATA_FRAME = struct.pack(">ihhih", 10, 3, 0, 7, -1)
T = TypeVar("T")


def large_frame(size: int) -> bytes:
    return struct.pack(">ihhih", size - 4, 3, 0, 7, -1) + bytes(size - len(METADATA_FRAME))


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side closes, however it does."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


class Client:
    """A connection whose records the test sends itself, whole or in parts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self.reader = reader
        self.writer = writer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._inside = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")

    @staticmethod
    async def connected(server: Server) -> Client:
        context = server.authority.client_context(server.folder, server.authority.issue("user"))
        client = Client(*await asyncio.open_connection("127.0.0.1", server.port), context)
        await client._when_there(client._inside.do_handshake)
        client.writer.write(client._outgoing.read())
        return client

    def encrypted(self, data: bytes) -> bytes:
        rest = memoryview(data)
        while rest:
            rest = rest[self._inside.write(rest) :]
        return self._outgoing.read()

    async def received(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += await self._when_there(self._inside.read)
        return data

    async def _when_there(self, act: Callable[[], T]) -> T:
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self.writer.write(self._outgoing.read())
                received = await self.reader.read(65536)
                assert received, "the node closed the connection"
                self._incoming.write(received)


class Server:
    """A listener that requires certificates of `authority`, and answers every request with `answer`."""

    def __init__(self, authority: Authority, folder: Path, mapping: PrincipalMapping | None = None) -> None:
        self.authority = authority
        self.folder = folder
        self.contexts: list[Request] = []
        self.answer = b""
        self.port = 0
        self.host = ConnectionHost(
            loop=asyncio.get_running_loop(),
            begin=self.begin,
            overlapping=frozenset(),
            memory=RequestMemory(1 << 28),
            peer_log=PeerLog(asyncio.get_running_loop()),
            limits=ConnectionLimits(total=2, per_host=2, per_host_overrides={}),
            request_bytes_max=100 << 20,
            idle_ms_max=600_000,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own = folder / "server.pem"
        own.write_text(authority.issue_for_node(1))
        context.load_cert_chain(own)
        context.load_verify_locations(cadata=authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self.listeners = Listeners(
            self.host,
            tls_of=lambda _name: lambda: context,
            principal_mapping_of=lambda _name: mapping,
        )

    def begin(self, request: Request) -> None:
        self.contexts.append(request)
        request.respond(struct.pack(">ii", 4 + len(self.answer), request.correlation_id) + self.answer)

    async def exchange(self, context: ssl.SSLContext | None, *, sent: bytes = METADATA_FRAME) -> bytes:
        """What comes until the node closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        try:
            writer.write(sent)
            return await ended(reader)
        finally:
            writer.close()

    async def until(self, condition: Callable[[], bool]) -> None:
        await loop_until(condition)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left of any connection."""
        return self.host.limits.count == 0 and not self.host.connections


def run(
    new_loop: NewLoop,
    folder: Path,
    scenario: Callable[[Server], Awaitable[None]],
    mapping: PrincipalMapping | None = None,
) -> None:
    async def main() -> None:
        server = Server(Authority(), folder, mapping)
        listener = ListenerConfig(name="SSL", host="127.0.0.1", port=0, security_protocol="SSL")
        server.port = (await server.listeners.bind([listener], backlog=50))["SSL"]
        await server.listeners.start()
        try:
            async with asyncio.timeout(30):
                await scenario(server)
        finally:
            server.listeners.close()
            await server.listeners.drain(1000)
        async with asyncio.timeout(10):
            await server.until(lambda: server.is_quiet)

    loop = new_loop()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.mark.parametrize("new_loop", LOOPS)
def test_requests_tell_whose_certificate_was_shown(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        context = server.authority.client_context(tmp_path, server.authority.issue("node-5"))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(METADATA_FRAME)
        assert await reader.readexactly(8) == struct.pack(">ii", 4, 7)
        certificate = server.contexts[0].context.peer_certificate
        assert certificate is not None
        assert certificate["subjectAltName"] == (("DNS", "node-5"),)
        assert server.host.limits.count == 1
        writer.close()

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (None, "User:ANONYMOUS"),
        ("RULE:^O=none$/x/,RULE:^OU=([A-Z]esting) cert.*,O=trustme v.*$/$1/U", "User:TESTING"),
    ],
)
def test_a_certificate_says_who_asks(new_loop: NewLoop, tmp_path: Path, rules: str | None, principal: str) -> None:
    async def scenario(server: Server) -> None:
        context = server.authority.client_context(tmp_path, server.authority.issue("user"))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(METADATA_FRAME)
        await reader.readexactly(8)
        assert server.contexts[0].context.principal == principal
        writer.close()

    run(new_loop, tmp_path, scenario, None if rules is None else parse_principal_mapping("rules", rules))


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_certificate_without_a_rule_is_refused(
    new_loop: NewLoop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server) -> None:
        context = server.authority.client_context(tmp_path, server.authority.issue("user"))
        assert await server.exchange(context) == b""
        assert server.contexts == []

    run(new_loop, tmp_path, scenario, parse_principal_mapping("rules", "RULE:^CN=.*$/x/"))
    assert "reason=no rule of ssl.principal.mapping.rules applies to its certificate: 'OU=Testing cert" in caplog.text


def _context(kind: str, server: Server) -> ssl.SSLContext | None:
    """Of a client that must not get in."""
    match kind:
        case "plain":
            return None
        case "none":
            return server.authority.client_context(server.folder)
        case "expired":
            return server.authority.client_context(server.folder, server.authority.issue("user", is_expired=True))
        case "foreign":
            return server.authority.client_context(server.folder, Authority().issue("user"))
        case "old":
            context = server.authority.client_context(server.folder, server.authority.issue("user"))
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers("AES128-SHA:@SECLEVEL=0")
            return context
        case _:
            raise AssertionError(kind)


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("plain", "it does not begin with a handshake of TLS, which this listener speaks"),
        ("none", "its handshake of TLS failed: peer did not return a certificate"),
        ("expired", "its handshake of TLS failed: its certificate is refused: certificate has expired"),
        ("foreign", "its handshake of TLS failed: its certificate is refused: unable to get local issuer certificate"),
        ("old", "its handshake of TLS failed: no shared cipher"),
    ],
)
def test_who_must_not_get_in_is_logged_once_and_nothing_begins(
    new_loop: NewLoop, kind: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server) -> None:
        for _ in range(5):
            # Some hear the alert, others just the end of the connection.
            with suppress(OSError):
                assert await server.exchange(_context(kind, server)) == b""
        assert not server.contexts
        assert server.host.counters.connections_failed == 5
        await server.until(lambda: server.is_quiet)

    run(new_loop, tmp_path, scenario)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("Connection closed: peer=127.0.0.1:")
    assert line.endswith(f"listener=SSL reason={reason}")


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_peer_is_told_by_an_alert_why_it_was_refused(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        context = _context("none", server)
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            await server.exchange(context)

    run(new_loop, tmp_path, scenario)


@pytest.mark.thorough
@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00"])
def test_a_handshake_that_never_ends_is_ended(
    new_loop: NewLoop, sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_transport, "HANDSHAKE_TIMEOUT_S", 0.3)

    async def scenario(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        await server.until(lambda: server.host.limits.count == 1)
        await ended(reader)
        writer.close()

    run(new_loop, tmp_path, scenario)
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line.partition("reason=")[2] for line in lines] == (
        ["its handshake of TLS took longer than 0.3 s"] if sent else []
    )


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_handshake_counts_as_a_connection_of_its_peer(
    new_loop: NewLoop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server) -> None:
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        await server.until(lambda: server.host.limits.count == 2)
        await server.exchange(None)
        assert server.host.counters.connections_refused == 1
        for _, writer in held:
            writer.close()
        await server.until(lambda: server.is_quiet)
        context = server.authority.client_context(tmp_path, server.authority.issue("user"))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(METADATA_FRAME)
        assert await reader.readexactly(8)
        writer.close()

    run(new_loop, tmp_path, scenario)
    assert sum("connection refused" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_handshake_of_endless_records_is_cut(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        # The first bytes of a certificate message that announces the most it can.
        hello = b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(0x4000 - 4)
        await server.exchange(None, sent=hello * 100)
        assert server.host.counters.connections_failed == 1

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_bytes_that_were_changed_on_the_way_close_the_connection(
    new_loop: NewLoop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server) -> None:
        client = await Client.connected(server)
        record = bytearray(client.encrypted(METADATA_FRAME))
        record[-1] ^= 1
        client.writer.write(record)
        await ended(client.reader)
        assert not server.contexts
        client.writer.close()

    run(new_loop, tmp_path, scenario)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.endswith("reason=a record of TLS is wrong: decryption failed or bad record mac")


@pytest.mark.parametrize("new_loop", LOOPS)
def test_an_answer_of_many_records_arrives_whole(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        server.answer = bytes(range(256)) * 40_000
        context = server.authority.client_context(tmp_path, server.authority.issue("user"))
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(METADATA_FRAME * 3)
        for _ in range(3):
            assert await reader.readexactly(8) == struct.pack(">ii", 4 + len(server.answer), 7)
            assert await reader.readexactly(len(server.answer)) == server.answer
        writer.close()

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_connection_above_a_rate_waits_before_its_handshake(
    new_loop: NewLoop, tmp_path: Path, *, is_closed: bool
) -> None:
    async def scenario(server: Server) -> None:
        # Without a whole sample one connection is a thousand a second: it waits for a millisecond.
        server.host.rates = ConnectionRates(sample_count=1, window_ms=1000)
        if is_closed:
            server.host.rates.set_quotas({None: 500.0})
        else:
            server.host.rates.set_limits(total=500, by_listener={}, protected_listener=None)
        context = server.authority.client_context(tmp_path, server.authority.issue("node-5"))
        if is_closed:
            with pytest.raises((ConnectionError, ssl.SSLError)):
                await server.exchange(context)
            assert server.contexts == []
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
            writer.write(METADATA_FRAME)
            assert await reader.readexactly(8) == struct.pack(">ii", 4, 7)
            writer.close()
        assert server.host.counters.connections_throttled == 1, "counted once"
        await server.until(lambda: server.host.limits.count == 0)

    run(new_loop, tmp_path, scenario)


@pytest.mark.thorough
@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_throttled_connection_reads_once_and_begins_no_handshake(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        # One a second: this one waits for a second.
        server.host.rates = ConnectionRates(sample_count=1, window_ms=1000)
        server.host.rates.set_limits(total=1, by_listener={}, protected_listener=None)
        connecting = asyncio.create_task(Client.connected(server))
        (tls,) = server.listeners._tls_hosts
        await server.until(lambda: any(not transport._raw.is_reading() for transport in tls.throttled))
        assert not tls.handshaking
        client = await connecting
        client.writer.write(client.encrypted(METADATA_FRAME))
        assert await client.received(8) == struct.pack(">ii", 4, 7)
        client.writer.close()

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("size", [40_000, 200_000, 1_100_000])
def test_a_large_request_is_complete_with_its_last_byte(new_loop: NewLoop, tmp_path: Path, size: int) -> None:
    """However much of it is missing when the client stops for a while, in the middle of a record too."""

    async def scenario(server: Server) -> None:
        client = await Client.connected(server)
        for last_bytes in (1, 21, 22, 5_000, 16_384, 16_406, 49_200, 57_000, 62_000, 65_535, 82_000, 150_000):
            records = client.encrypted(large_frame(size))
            begun, received = len(server.contexts), server.host.counters.bytes_in
            first, last = records[:-last_bytes], records[-last_bytes:]
            client.writer.write(first)
            # What is left unread: less than the mark, and a record that is not whole.
            least = received + len(first) - len(first) // 500 - MARK_BYTES - RECORD_BYTES
            await server.until(lambda: server.host.counters.bytes_in >= least)  # noqa: B023 - awaited in its turn
            assert len(server.contexts) == begun
            client.writer.write(last)
            assert await client.received(8) == struct.pack(">ii", 4, 7)
        client.writer.close()

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_large_and_small_requests_arrive_in_parts_of_any_size(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        client = await Client.connected(server)
        generator = random.Random(7)
        frames = [
            METADATA_FRAME if generator.random() < 0.3 else large_frame(generator.randrange(30_000, 400_000))
            for _ in range(30)
        ]
        rest = memoryview(client.encrypted(b"".join(frames)))
        while rest:
            part_bytes = generator.choice((1, 700, 1_448, 16_406, 60_000, 140_000))
            client.writer.write(rest[:part_bytes])
            rest = rest[part_bytes:]
            await client.writer.drain()
            await asyncio.sleep(0)
        assert await client.received(8 * len(frames)) == struct.pack(">ii", 4, 7) * len(frames)
        client.writer.close()

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_large_request_fits_through_a_socket_with_less_room_than_the_mark(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        # Connections have what their listener has.
        for listening in server.listeners._servers["SSL"].sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client = await Client.connected(server)
        for _ in range(3):
            client.writer.write(client.encrypted(large_frame(500_000)))
            assert await client.received(8) == struct.pack(">ii", 4, 7)
        client.writer.close()

    run(new_loop, tmp_path, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_client_that_leaves_in_the_middle_of_a_large_request_is_noticed(new_loop: NewLoop, tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        client = await Client.connected(server)
        client.writer.write(client.encrypted(large_frame(900_000))[:300_000])
        await server.until(lambda: server.host.counters.bytes_in > 200_000)
        client.writer.close()
        await server.until(lambda: server.is_quiet)
        assert not server.contexts

    run(new_loop, tmp_path, scenario)
