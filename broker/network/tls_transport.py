"""TLS on an accepted connection: a protocol to the socket's transport, and a transport to what speaks inside.

| state       | leaves by                                                              | to      |
|-------------|------------------------------------------------------------------------|---------|
| handshaking | both sides agree: the protocol inside is made and gets the connection  | open    |
| handshaking | anything else, or no end within `HANDSHAKE_TIMEOUT_S`: one log line    | closing |
| open        | the protocol inside closes, the peer does, or a record is not genuine  | closing |
| closing     | what was written is sent, or the connection is lost                    | closed  |

The transports of asyncio and uvloop would do for the rest, but they do not report a failed handshake, send no alert
that says why, count nothing before the handshake is done, and keep 256 KiB for each connection. A socket of `ssl` that
reads by itself costs what this does: two system calls for each of TLS's records, in the place of two copies.

All connections of a listener receive into one buffer, as in `connection.py`. A connection that does not read keeps what
it had received: `RECEIVE_BYTES` at most. What is written is encrypted at once and waits, if it must, in the socket's
transport, so that its bounds and its size are those of the connection.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, cast

from msgspec import Struct, field

from ...protocol.errors import CorruptData
from ..configuration.principal_mapping import PrincipalMapping
from ..configuration.tls_config import PRINCIPAL_MAPPING_RULES
from .connection_host import SCARCE_RECEIVE_BYTES, ConnectionHost, peer_of
from .rules.connection_rates import ConnectionThrottle
from .rules.distinguished_name import subject_of

RECEIVE_BYTES: Final = 64 * 1024
"""Four of TLS's records."""
HANDSHAKE_TIMEOUT_S: Final = 10.0
"""Two round trips and less than 10 ms of work, on a machine with nothing else to do."""
HANDSHAKES_MAX: Final = 256
"""At once, on one listener. With one more the oldest is ended: an honest client is done in milliseconds."""
HANDSHAKE_BYTES_MAX: Final = 256 * 1024
"""That a peer may send for it; chains of certificates have a few KiB."""
RECORD_BYTES: Final = 16 * 1024
"""What TLS encrypts at a time. Smaller parts of an answer share a record."""
SEND_BYTES: Final = 64 * 1024
"""Encrypted at a time: a large answer is not held three times."""
_HANDSHAKE_RECORD: Final = 22
_LOGGED_NAME_MAX: Final = 200
"""Characters of the name of a certificate, which can have as many as a handshake."""


class TlsHost(Struct, kw_only=True, eq=False):
    """What the connections of one listener share. `context` is asked anew for each of them."""

    host: ConnectionHost
    listener_name: str
    context: Callable[[], ssl.SSLContext]
    make_protocol: Callable[[], asyncio.BaseProtocol]
    principal_mapping: PrincipalMapping | None = None
    """None: certificates of clients do not say who they are."""
    handshaking: dict[TlsTransport, None] = field(default_factory=dict)
    """In the order in which they came."""
    throttled: dict[TlsTransport, None] = field(default_factory=dict)
    """Those above a rate of new connections, whose handshake has not begun."""
    receive_view: memoryview = field(default_factory=lambda: memoryview(bytearray(RECEIVE_BYTES)))


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """One connection."""

    _raw: asyncio.Transport

    def __init__(self, tls: TlsHost) -> None:
        super().__init__()
        self._tls = tls
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls_object: ssl.SSLObject | None = None
        self._protocol: asyncio.BaseProtocol | None = None
        """Inside; None while handshaking."""
        self._peer = ("", 0)
        self._principal: str | None = None
        self._early = b""
        """Received while throttled."""
        self._handshake_bytes = 0
        self._handshake_timer: asyncio.TimerHandle | None = None
        self._is_reading_paused = False
        self._is_reading_due = False
        self._is_closing = False

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        host = self._tls.host
        # uvloop's transports are none of asyncio's by class.
        self._raw = cast(asyncio.Transport, transport)
        self._peer = peer_of(transport)
        # It counts as a connection from its first byte.
        if not host.admit(self._peer, self._tls.listener_name):
            self._is_closing = True
            self._raw.abort()
            return
        throttle = host.throttle_new(self._peer, self._tls.listener_name)
        if throttle is None:
            self._begin_handshake()
        else:
            self._throttle_new(throttle)

    def _throttle_new(self, throttle: ConnectionThrottle) -> None:
        """Nothing happens until the throttle time is over; then the handshake begins, or the connection is closed."""
        self._tls.throttled[self] = None
        self._is_closing = throttle.is_closed
        after = self._raw.abort if throttle.is_closed else self._begin_throttled
        self._handshake_timer = self._tls.host.loop.call_later(throttle.throttle_time_ms / 1000, after)

    def _begin_throttled(self) -> None:
        self._tls.throttled.pop(self, None)
        self._begin_handshake()
        early, self._early = self._early, b""
        if early:
            self._raw.resume_reading()
            self._handshake(memoryview(early))

    def _begin_handshake(self) -> None:
        host, handshaking = self._tls.host, self._tls.handshaking
        if len(handshaking) >= HANDSHAKES_MAX:
            next(iter(handshaking)).abort()
        handshaking[self] = None
        self._handshake_timer = host.loop.call_later(HANDSHAKE_TIMEOUT_S, self._on_timeout)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as the loop calls it
        tls = self._tls
        return tls.receive_view[:SCARCE_RECEIVE_BYTES] if tls.host.memory.is_spent else tls.receive_view

    def buffer_updated(self, nbytes: int) -> None:
        received = self._tls.receive_view[:nbytes]
        if self._protocol is None:
            if self in self._tls.throttled:
                # Not before: uvloop begins to read when `connection_made` has returned, even if it paused reading.
                self._early += received
                self._raw.pause_reading()
            else:
                self._handshake(received)
        elif not self._is_closing:
            self._incoming.write(received)
            self._read()

    def eof_received(self) -> None:
        return None

    def pause_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._protocol is None:
            # No log line: load balancers connect and leave, only to see whether the port is open.
            self._leave_handshake()
            self._tls.host.limits.release(self._peer[0])
        else:
            self._protocol.connection_lost(exc)
        self._is_closing = True

    # What the protocol inside calls.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls_object
        if name == "peercert" and self._tls_object is not None:
            return self._tls_object.getpeercert() or default
        if name == "principal":
            return self._principal or default
        return self._raw.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None, "nothing speaks before the handshake is done"
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closing:
            self._encrypt(data)
            self._flush()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        if self._is_closing:
            return
        small: list[bytes | bytearray | memoryview] = []
        for data in list_of_data:
            if len(data) < RECORD_BYTES:
                small.append(data)
                continue
            self._encrypt(b"".join(small))
            small.clear()
            self._encrypt(data)
        self._encrypt(b"".join(small))
        self._flush()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._is_reading_paused = True
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading_paused = False
        self._raw.resume_reading()
        if not self._is_reading_due:
            self._is_reading_due = True
            self._tls.host.loop.call_soon(self._read_rest)

    def is_closing(self) -> bool:
        return self._is_closing or self._raw.is_closing()

    def close(self) -> None:
        """What was written is sent, and that nothing follows."""
        if self._is_closing:
            return
        self._is_closing = True
        assert self._tls_object is not None
        # It would wait for the same from the peer, which may be long in coming.
        with suppress(ssl.SSLError):
            self._tls_object.unwrap()
        self._flush()
        self._raw.close()

    def abort(self) -> None:
        self._is_closing = True
        self._leave_handshake()
        self._raw.abort()

    # Handshake.

    def _handshake(self, received: memoryview) -> None:
        if self._is_closing:
            return
        tls_object = self._tls_object
        if tls_object is None:
            if received[0] != _HANDSHAKE_RECORD:
                self._refuse("it does not begin with a handshake of TLS, which this listener speaks")
                return
            tls_object = self._tls_object = self._tls.context().wrap_bio(
                self._incoming, self._outgoing, server_side=True
            )
        self._handshake_bytes += len(received)
        if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
            self._refuse(f"its handshake of TLS has more than {HANDSHAKE_BYTES_MAX} bytes")
            return
        self._incoming.write(received)
        try:
            tls_object.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            # The alert that tells the peer why.
            self._flush()
            self._refuse(f"its handshake of TLS failed: {_reason(error)}")
        else:
            self._flush()
            self._open()

    def _open(self) -> None:
        mapping, certificate = self._tls.principal_mapping, self._verified_certificate()
        if mapping is not None and certificate is not None:
            try:
                subject = subject_of(certificate)
            except CorruptData as error:
                self._refuse(f"its certificate has no name that can be read: {error}")
                return
            name = mapping.name_of(subject)
            if name is None:
                self._refuse(
                    f"no rule of {PRINCIPAL_MAPPING_RULES} applies to its certificate: {subject[:_LOGGED_NAME_MAX]!r}"
                )
                return
            self._principal = f"User:{name}"
        self._leave_handshake()
        # The protocol inside counts the connection itself.
        self._tls.host.limits.release(self._peer[0])
        self._protocol = self._tls.make_protocol()
        self._protocol.connection_made(self)
        self._read()

    def _verified_certificate(self) -> bytes | None:
        """In DER. Python also tells the bytes of a certificate that was not verified, but no names of it."""
        tls_object = self._tls_object
        assert tls_object is not None
        return tls_object.getpeercert(binary_form=True) if tls_object.getpeercert() else None

    def _leave_handshake(self) -> None:
        self._tls.handshaking.pop(self, None)
        self._tls.throttled.pop(self, None)
        if self._handshake_timer is not None:
            self._handshake_timer.cancel()
            self._handshake_timer = None

    def _on_timeout(self) -> None:
        if self._handshake_bytes:
            self._log(f"its handshake of TLS took longer than {HANDSHAKE_TIMEOUT_S:g} s")
        self.abort()

    def _refuse(self, reason: str) -> None:
        self._log(reason)
        self._is_closing = True
        self._raw.close()

    def _log(self, reason: str) -> None:
        host = self._tls.host
        host.counters.connections_failed += 1
        host.peer_log.write(
            logging.WARNING,
            self._peer[0],
            "Connection closed: peer=%s:%d listener=%s reason=%s",
            *self._peer,
            self._tls.listener_name,
            reason,
        )

    # Records.

    def _read_rest(self) -> None:
        self._is_reading_due = False
        if not self.is_closing():
            self._read()

    def _read(self) -> None:
        """Hand over what has come, as long as it is wanted."""
        is_more = True
        try:
            while is_more and not self._is_reading_paused and not self.is_closing():
                if isinstance(self._protocol, asyncio.BufferedProtocol):
                    is_more = self._read_into(self._protocol)
                else:
                    is_more = self._read_bytes(cast(asyncio.Protocol, self._protocol))
        except ssl.SSLError as error:
            self._flush()
            self._refuse(f"a record of TLS is wrong: {_reason(error)}")
            return
        self._flush()

    def _read_into(self, protocol: asyncio.BufferedProtocol) -> bool:
        """Fill the protocol's buffer as far as it goes; whether it was filled."""
        assert self._tls_object is not None
        # With a buffer the result is a count, which its annotation leaves out.
        read = cast(Callable[[int, memoryview], int], self._tls_object.read)
        view = memoryview(cast(bytearray, protocol.get_buffer(-1)))
        size, filled = len(view), 0
        is_ended = False
        try:
            while filled < size:
                # Of a record of TLS what is left, however much room there is.
                count = read(size - filled, view[filled:])
                if not count:
                    is_ended = True
                    break
                filled += count
        except ssl.SSLWantReadError:
            is_ended = False
        except ssl.SSLZeroReturnError:
            is_ended = True
        is_full = filled == size
        if filled:
            protocol.buffer_updated(filled)
        if is_ended and not self.is_closing():
            self.close()
        return is_full

    def _read_bytes(self, protocol: asyncio.Protocol) -> bool:
        assert self._tls_object is not None
        try:
            data = self._tls_object.read(RECEIVE_BYTES)
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLZeroReturnError:
            data = b""
        if not data:
            self.close()
            return False
        protocol.data_received(data)
        return True

    def _encrypt(self, data: bytes | bytearray | memoryview) -> None:
        assert self._tls_object is not None
        rest = memoryview(data)
        while rest:
            # It takes one record at a time, and always that: what it makes has room in memory.
            rest = rest[self._tls_object.write(rest) :]
            if self._outgoing.pending >= SEND_BYTES:
                self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
