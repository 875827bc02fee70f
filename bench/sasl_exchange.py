"""What a client proves itself with, as bytes: SaslHandshake v1 and SaslAuthenticate v1, which have no flexible fields.

    SaslHandshake v1     size correlation | error, mechanisms
    SaslAuthenticate v1  size correlation | error message bytes lifetime

A client of SCRAM derives its keys from the password once, as one that reconnects does; that takes milliseconds, and
everything else a few hash values.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterator
from itertools import count
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeAlias

from ..protocol.scram import BY_NAME
from .wire import RequestRefusedError, frame, text

HANDSHAKE_KEY, HANDSHAKE_VERSION = 17, 1
AUTHENTICATE_KEY, AUTHENTICATE_VERSION = 36, 1
_INT: Final = Struct(">i")
_SHORT: Final = Struct(">h")
_ERROR_PLACE: Final = 2 * _INT.size

Exchange: TypeAlias = Generator[bytes, bytes | memoryview, None]
"""Requests of the client; it is sent the answers, and ends when the broker has told that all is well."""


class Login(Protocol):
    """A mechanism with a name and a password."""

    def exchange(self) -> Exchange:
        """Raises RequestRefusedError when an answer says no, or is not of one who knows the password."""


class PlainLogin:
    def __init__(self, name: str, password: str) -> None:
        self._message = f"\0{name}\0{password}".encode()

    def exchange(self) -> Exchange:
        yield from _handshake("PLAIN")
        yield from _authenticate(self._message)


class _Keys(NamedTuple):
    client: bytes
    stored: bytes
    server: bytes


class ScramLogin:
    def __init__(self, mechanism: str, name: str, password: str) -> None:
        self._mechanism = BY_NAME[mechanism]
        self._name = name
        self._password = password
        self._nonces: Iterator[int] = count()
        self._keys: dict[str, _Keys] = {}
        """By salt and iterations as the broker tells them."""

    def exchange(self) -> Exchange:
        """RFC 5802, section 3. Nonces differ from each other, and are no secret."""
        mechanism = self._mechanism
        yield from _handshake(mechanism.name)
        nonce = f"penstock-bench-{next(self._nonces)}"
        first = f"n={self._name},r={nonce}"
        challenge = (yield from _authenticate(f"n,,{first}".encode())).decode()
        combined, told = challenge.split(",", 1)
        keys = self._keys.get(told)
        if keys is None:
            keys = self._keys[told] = self._derive(told)
        last = f"c=biws,{combined}"
        message = f"{first},{challenge},{last}".encode()
        signature = mechanism.hmac(keys.stored, message)
        proof = int.from_bytes(keys.client) ^ int.from_bytes(signature)
        encoded = base64.b64encode(proof.to_bytes(len(signature))).decode()
        answer = yield from _authenticate(f"{last},p={encoded}".encode())
        if answer != b"v=" + base64.b64encode(mechanism.hmac(keys.server, message)):
            raise RequestRefusedError("the broker did not prove that it knows the password")

    def _derive(self, told: str) -> _Keys:
        salt, iterations = (part.partition("=")[2] for part in told.split(","))
        mechanism = self._mechanism
        salted = mechanism.salted_password(self._password, base64.b64decode(salt), int(iterations))
        return _Keys(mechanism.hmac(salted, b"Client Key"), mechanism.stored_key(salted), mechanism.server_key(salted))


def _handshake(mechanism: str) -> Exchange:
    answer = yield frame(HANDSHAKE_KEY, HANDSHAKE_VERSION, text(mechanism))
    _check(answer)


def _authenticate(message: bytes) -> Generator[bytes, bytes | memoryview, bytes]:
    """Returns the broker's message."""
    answer = yield frame(AUTHENTICATE_KEY, AUTHENTICATE_VERSION, _INT.pack(len(message)) + message)
    _check(answer)
    # Without an error there is mostly no message, a null; a text has its length.
    place = _ERROR_PLACE + _SHORT.size
    place += _SHORT.size + max(0, _SHORT.unpack_from(answer, place)[0])
    (size,) = _INT.unpack_from(answer, place)
    return bytes(answer[place + _INT.size : place + _INT.size + size])


def _check(answer: bytes | memoryview) -> None:
    (code,) = _SHORT.unpack_from(answer, _ERROR_PLACE)
    if code:
        raise RequestRefusedError(f"a request of SASL was answered with error code {code}")
