"""PLAIN (RFC 4616): `[authorization id] NUL user name NUL password`, against the users of `PlainLoginModule`.

Kafka: `PlainSaslServer`, with its sentences. Without TLS the password goes over the network as it is.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from .sasl_exchange import AuthenticationFailed, Proved, user

_USER_PREFIX: Final = "user_"
_NO_PASSWORD: Final = b"\0"
"""No password has a NUL, so none is equal."""


class PlainUsers:
    """The users that a login module names: `user_NAME="password"`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._passwords = {
            name.removeprefix(_USER_PREFIX): password.encode()
            for name, password in options.items()
            if name.startswith(_USER_PREFIX) and password
        }

    def is_password(self, name: str, password: bytes) -> bool:
        """Whether it is that user's, in a time that does not depend on how much of it is right."""
        expected = self._passwords.get(name, _NO_PASSWORD)
        return hmac.compare_digest(password, expected) and name in self._passwords


class PlainExchange:
    """Of one token."""

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    def step(self, token: bytes) -> Proved:
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise _refused("Invalid SASL/PLAIN response: it is not UTF-8") from None
        if len(parts) != 3:
            raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
        authorization_id, name, password = parts
        if not name:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        if not self._users.is_password(name, password.encode()):
            raise _refused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", name):
            raise _refused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Proved(principal=user(name))


def _refused(sentence: str) -> AuthenticationFailed:
    return AuthenticationFailed(sentence, sentence)
