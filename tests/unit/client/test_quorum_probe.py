"""What is found out about a cluster before a command, over real sockets of the loopback."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from echo_node import own_contexts

from penstock.client.addresses import Address
from penstock.client.quorum_probe import Probed, ask_all
from penstock.protocol.no_quorum import no_quorum

SENTENCE = no_quorum((1, 2, 3), (2, 3))
WITHOUT_QUORUM = struct.pack(">ib", 0, 0) + f"…{SENTENCE}.".encode() + b"\0"
WITH_QUORUM = struct.pack(">ib", 0, 0) + bytes(30)
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LONG_S = 30.0


def answering(body: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        request = await reader.readexactly(size)
        assert b"__cluster_metadata" in request
        writer.write(struct.pack(">i", len(body)) + body)
        await reader.read()
        writer.close()

    return serve


async def closing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


def probed(*served: Serve, tls: ssl.SSLContext | None = None, answer_s: float = LONG_S, free: int = 0) -> Probed:
    """`free` addresses have no listener."""

    async def scenario() -> Probed:
        async with AsyncExitStack() as stack:
            addresses = []
            for serve in served:
                server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
                await stack.enter_async_context(server)
                addresses.append(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
            for _ in range(free):
                server = await asyncio.start_server(silent, "127.0.0.1", 0)
                addresses.append(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
                server.close()
                await server.wait_closed()
            return await ask_all(addresses, LONG_S, answer_s, None, asks=True)

    return asyncio.run(scenario())


def test_node_that_reaches_no_majority_is_believed_unless_another_reaches_one() -> None:
    assert probed(answering(WITHOUT_QUORUM), free=2) == Probed(no_quorum=SENTENCE)
    assert probed(answering(WITHOUT_QUORUM), answering(WITH_QUORUM)) == Probed()


def test_first_good_answer_is_enough() -> None:
    assert probed(silent, answering(WITH_QUORUM)) == Probed()


def test_broker_of_another_kind_is_left_to_the_client_library() -> None:
    assert probed(closing) == Probed()
    assert probed(answering(b"HTTP")) == Probed()


def test_broker_that_is_silent_has_no_fault_that_is_known() -> None:
    assert probed(silent, answer_s=0.05, free=1) == Probed()


def test_addresses_without_a_listener_are_refused_each() -> None:
    found = probed(free=2)
    assert [type(error) for _, error in found.refusals] == [ConnectionRefusedError] * 2


@pytest.mark.parametrize("needs_certificate", [False, True])
def test_port_that_speaks_tls_is_recognised(needs_certificate: bool) -> None:
    server_tls, _ = own_contexts()
    if needs_certificate:
        server_tls.verify_mode = ssl.CERT_REQUIRED
    found = probed(silent, tls=server_tls)
    assert found.tls_address is not None
    assert found.no_quorum is None
