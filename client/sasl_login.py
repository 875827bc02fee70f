"""A client proves who it is: SaslHandshake 1 and SaslAuthenticate 2 (KIP-43, KIP-152, KIP-368) on an open connection.

PLAIN (RFC 4616), SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), also with a delegation token, and OAUTHBEARER (RFC 7628)
with a token.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Generator
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Any, Final, TypeAlias

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.scram import BY_NAME, ITERATIONS_MIN
from .connection import Connection

UNSECURED_LIFETIME_S: Final = 3600
_NONCE_BYTES: Final = 24
_ITERATIONS_MAX: Final = 1_000_000
"""A second of work. More would let a false broker keep a command busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslLogin:
    """What is proved, and by which mechanism."""

    mechanism: str
    # Empty with a token.
    username: str = ""
    # Or the token.
    secret: str = field(repr=False)
    # Whether name and secret are the id and the HMAC of a delegation token.
    is_delegation_token: bool = False


async def authenticate(connection: Connection, login: SaslLogin) -> None:
    """Raises KafkaError with the broker's words, also for a broker that cannot prove that it knows the password."""
    answer: Any = await connection.call(SaslHandshakeRequest(mechanism=login.mechanism))
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "none"
        raise KafkaError(
            ErrorCode(int(answer.error_code)),
            f"{connection.peer} does not take {login.mechanism} on this listener; its mechanisms are: {offered}.",
        )
    exchange = _exchange(connection.peer, login)
    message = next(exchange)
    while True:
        answer = await connection.call(SaslAuthenticateRequest(auth_bytes=message))
        if answer.error_code:
            sentence = answer.error_message or f"{connection.peer} refuses the login."
            raise KafkaError(ErrorCode(int(answer.error_code)), sentence)
        try:
            message = exchange.send(bytes(answer.auth_bytes))
        except StopIteration:
            return


_Exchange: TypeAlias = Generator[bytes, bytes, None]
"""Messages of the client; it is sent those of the broker."""


def _exchange(peer: str, login: SaslLogin) -> _Exchange:
    match login.mechanism:
        case "PLAIN":
            return _plain(login)
        case "OAUTHBEARER":
            return _token(peer, login)
        case mechanism if mechanism in BY_NAME:
            return _scram(peer, login)
        case other:
            known = ("PLAIN", *BY_NAME, "OAUTHBEARER")
            raise KafkaError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"{other} is not one of the mechanisms {', '.join(known)}."
            )


def _plain(login: SaslLogin) -> _Exchange:
    yield f"\0{login.username}\0{login.secret}".encode()


def _scram(peer: str, login: SaslLogin) -> _Exchange:
    """RFC 5802, section 3; `tokenauth` is Kafka's own (KIP-48)."""
    mechanism = BY_NAME[login.mechanism]
    nonce = base64.b64encode(SystemRandom().randbytes(_NONCE_BYTES)).decode()
    name = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}{',tokenauth=true' if login.is_delegation_token else ''}"
    challenge = (yield f"n,,{first}".encode()).decode(errors="replace")
    told = _attributes(challenge)
    try:
        salt, iterations = base64.b64decode(told["s"], validate=True), int(told["i"])
    except (KeyError, ValueError):
        raise _unproved(peer, "its challenge has no salt or no count of iterations") from None
    if not told.get("r", "").startswith(nonce) or len(told["r"]) == len(nonce):
        raise _unproved(peer, "its nonce is not one of this exchange")
    if not ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise _unproved(peer, f"it wants {iterations} iterations, which are not {ITERATIONS_MIN} to {_ITERATIONS_MAX}")
    salted = mechanism.salted_password(login.secret, salt, iterations)
    last = f"c=biws,r={told['r']}"
    message = f"{first},{challenge},{last}".encode()
    client_key = mechanism.hmac(salted, b"Client Key")
    signature = mechanism.hmac(mechanism.stored_key(salted), message)
    proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
    answer = _attributes((yield f"{last},p={base64.b64encode(proof).decode()}".encode()).decode(errors="replace"))
    expected = base64.b64encode(mechanism.hmac(mechanism.server_key(salted), message))
    if not hmac.compare_digest(answer.get("v", "").encode(), expected):
        raise _unproved(peer, "its signature is wrong")


def _attributes(message: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.split(",") if "=" in part)


def _unproved(peer: str, reason: str) -> KafkaError:
    sentence = f"{peer} did not prove that it knows the password: {reason}."
    return KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, sentence)


def _token(peer: str, login: SaslLogin) -> _Exchange:
    refusal = yield f"n,,\x01auth=Bearer {login.secret}\x01\x01".encode()
    if refusal:
        # The broker fails the exchange once it has this.
        yield b"\x01"
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{peer} refuses the token.")


def unsecured_token(subject: str, *, now_s: int) -> str:
    """A token without a signature (RFC 7515, section 6), for brokers that are set up to take it: for trials only."""
    claims = {"sub": subject, "iat": now_s, "exp": now_s + UNSECURED_LIFETIME_S}
    return ".".join((*(_base64(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)), ""))


def expiry_s(token: str) -> int | None:
    """When a token says that it ends; None when it is no JWT, or does not say."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return int(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
