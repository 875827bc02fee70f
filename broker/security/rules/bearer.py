"""OAUTHBEARER (RFC 7628): the client sends a token, and is whom it names for as long as it is valid.

    client → server   n,[a=authorization id],^Aauth=Bearer token^A[extension=value^A…]^A
    server → client   nothing, or why not as JSON; then the client says ^A, and is refused

Kafka: `OAuthBearerSaslServer`, `OAuthBearerClientInitialResponse`. Extensions are taken and mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from .sasl_exchange import AuthenticationFailed, Proved, user

TOKEN_LETTERS_MAX: Final = 64 * 1024
"""Real ones have up to a few KiB; what is longer is not read."""
_MESSAGE = re.compile(
    r"n,(?:a=(?P<authorization_id>(?:[^=,\0\x01]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)+)\x01"
)
_AUTH = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_.A-Za-z0-9]+) *")


class BearerToken(Struct, frozen=True, kw_only=True):
    """What a valid token says; `expiry_ms` is wall-clock time."""

    name: str
    expiry_ms: int


class TokenRefused(Exception):  # noqa: N818 - it is an answer, not a fault
    """The message says why, without any of the token. `status` is what the client is told (RFC 6750)."""

    def __init__(self, reason: str, *, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


VerifyToken: TypeAlias = Callable[[str], BearerToken]
"""Raises TokenRefused."""


def no_tokens(_token: str) -> BearerToken:
    """In place of a verifier, on a node that has become one for tokens by a dynamic config."""
    raise TokenRefused("tokens are verified here once the node is started again: it began without OAUTHBEARER")


class BearerExchange:
    """It waits for the token; after a refusal for the client to give up."""

    def __init__(self, verify: VerifyToken) -> None:
        self._verify = verify
        self._refusal: tuple[str, str] | None = None
        """For the log and for the client."""

    def step(self, token: bytes) -> bytes | Proved:
        if self._refusal is not None:
            raise AuthenticationFailed(*self._refusal)
        if len(token) > TOKEN_LETTERS_MAX:
            raise AuthenticationFailed(f"a token of more than {TOKEN_LETTERS_MAX} letters")
        try:
            match = _MESSAGE.fullmatch(token.decode())
        except UnicodeDecodeError:
            match = None
        if match is None:
            raise AuthenticationFailed("Invalid OAUTHBEARER client first message")
        pairs = [pair.partition("=") for pair in match["pairs"].split("\x01")[:-1]]
        values = [value for key, _, value in pairs if key == "auth"]
        auth = _AUTH.fullmatch(values[0]) if len(values) == 1 else None
        if auth is None:
            raise AuthenticationFailed("Invalid OAUTHBEARER client first message: 'auth' not specified")
        if auth["scheme"].lower() != "bearer":
            raise AuthenticationFailed("Invalid scheme in OAUTHBEARER client first message: it is not bearer")
        try:
            found = self._verify(auth["token"])
        except TokenRefused as refused:
            scope = "" if refused.scope is None else f',"scope":"{refused.scope}"'
            answer = f'{{"status":"{refused.status}"{scope}}}'
            self._refusal = (str(refused), answer)
            return answer.encode()
        authorization_id = match["authorization_id"]
        if authorization_id is not None and authorization_id.replace("=2C", ",").replace("=3D", "=") != found.name:
            raise AuthenticationFailed(
                "the client requested an authorization id that is different from the token's principal name"
            )
        return Proved(principal=user(found.name), expiry_ms=found.expiry_ms)
