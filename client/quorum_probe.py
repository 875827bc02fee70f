"""Whether brokers answer, and whether their metadata quorum has a majority: asked before a command, in one exchange.

Kafka's client library only ever says that it timed out. The question is DescribeQuorum version 2 without ApiVersions
before it, in bytes, as importing the classes of all messages would take longer than the whole exchange:

    request    size i32 | api key 55 i16 | version 2 i16 | correlation id i32 | client id i16 length, text | no tags
               | one topic: "__cluster_metadata", one partition: 0

In the answer only the sentence of `protocol/no_quorum.py` is looked for, which a node sends as an error's message. A
broker that does not know the question closes the connection, and counts as one that answers. One with a controller
answers in milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..protocol.no_quorum import find_no_quorum
from .addresses import Address

# From the first connection on. Nodes without a leader need a second at most until they say so.
ANSWER_S: Final = 1.5
# For the handshake that tells whether a port speaks TLS.
_HANDSHAKE_S: Final = 1.0
# What an answer about one partition never comes near.
_RESPONSE_SIZE_MAX: Final = 1024 * 1024
_TOPIC: Final = b"__cluster_metadata"
_CLIENT_ID: Final = b"penstock-terminal"
_BODY: Final = (
    struct.pack(f">hhih{len(_CLIENT_ID)}sB", 55, 2, 0, len(_CLIENT_ID), _CLIENT_ID, 0)
    + struct.pack(f">BB{len(_TOPIC)}s", 2, len(_TOPIC) + 1, _TOPIC)
    + struct.pack(">BiBBB", 2, 0, 0, 0, 0)
)
_REQUEST: Final = struct.pack(">i", len(_BODY)) + _BODY
_SIZE = struct.Struct(">i")


class Probed(Struct, frozen=True, kw_only=True):
    """What is wrong with all addresses; nothing when one of them answers well, or none answers in time."""

    # Why no connection could be made, by address.
    refusals: tuple[tuple[Address, OSError], ...] = ()
    # The sentence of a node that reaches no majority of the voters.
    no_quorum: str | None = None
    # One that speaks TLS and was asked without.
    tls_address: Address | None = None


def probe(
    addresses: Sequence[Address],
    *,
    timeout_s: float,
    tls: ssl.SSLContext | None,
    asks: bool,
    answer_s: float = ANSWER_S,
) -> Probed:
    """Asks all addresses at once. Without `asks` a connection is enough; `timeout_s` is for it."""
    return asyncio.run(ask_all(addresses, timeout_s, min(answer_s, timeout_s), tls, asks=asks))


class _Outcome(Struct, frozen=True, kw_only=True):
    address: Address
    answers: bool = False
    refusal: OSError | None = None
    no_quorum: str | None = None
    speaks_tls: bool = False


async def ask_all(
    addresses: Sequence[Address], timeout_s: float, answer_s: float, tls: ssl.SSLContext | None, *, asks: bool
) -> Probed:
    connected = asyncio.Event()
    inquiries = {asyncio.ensure_future(_inquire(one, timeout_s, answer_s, tls, connected, asks)) for one in addresses}
    found: list[_Outcome] = []
    deadline = asyncio.ensure_future(_deadline(connected, answer_s))
    pending: set[asyncio.Future[_Outcome] | asyncio.Future[None]] = {*inquiries, deadline}
    try:
        while len(found) < len(addresses) and not deadline.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {deadline}:
                outcome = task.result()
                assert outcome is not None, "only the deadline has no outcome"
                found.append(outcome)
            if any(outcome.answers for outcome in found):
                return Probed()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
    refusals = tuple((one.address, one.refusal) for one in found if one.refusal is not None)
    return Probed(
        refusals=refusals if len(refusals) == len(addresses) else (),
        no_quorum=next((one.no_quorum for one in found if one.no_quorum is not None), None),
        tls_address=next((one.address for one in found if one.speaks_tls), None),
    )


async def _deadline(connected: asyncio.Event, answer_s: float) -> None:
    """A broker that took the connection is not waited for longer because another address is silent."""
    await connected.wait()
    await asyncio.sleep(answer_s)


async def _inquire(
    address: Address,
    timeout_s: float,
    answer_s: float,
    tls: ssl.SSLContext | None,
    connected: asyncio.Event,
    asks: bool,
) -> _Outcome:
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except OSError as error:
        return _Outcome(address=address, refusal=error)
    connected.set()
    try:
        if not asks:
            return _Outcome(address=address, answers=True)
        async with asyncio.timeout(answer_s):
            sentence = await _ask(address, reader, writer, tls)
    except TimeoutError:
        return _Outcome(address=address)
    except (OSError, ValueError, asyncio.IncompleteReadError):
        if tls is None and await _speaks_tls(address):
            return _Outcome(address=address, speaks_tls=True)
        # A broker of another kind, perhaps: what it says to Kafka's client counts.
        return _Outcome(address=address, answers=True)
    finally:
        writer.transport.abort()
    return _Outcome(address=address, answers=sentence is None, no_quorum=sentence)


async def _ask(
    address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext | None
) -> str | None:
    if tls is not None:
        await writer.start_tls(tls, server_hostname=address.host)
    writer.write(_REQUEST)
    (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    if not 0 < size <= _RESPONSE_SIZE_MAX:
        raise ValueError(f"an answer of {size} bytes")
    return find_no_quorum(await reader.readexactly(size))


async def _speaks_tls(address: Address) -> bool:
    """Whether a handshake gets an answer of TLS, though it be a refusal of a client without a certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(OSError):
        async with asyncio.timeout(_HANDSHAKE_S):
            try:
                _, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
            except ssl.SSLError as error:
                return "ALERT" in (error.reason or "")
            writer.transport.abort()
            return True
    return False
