"""The header `Authorization` of HTTP: a user and a password (RFC 7617), or a token (RFC 6750)."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Final

from .sasl_exchange import AuthenticationFailed

HEADER_LETTERS_MAX: Final = 8_000
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAndPassword:
    """As the client sent them; neither has a NUL."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """Of the letters that RFC 6750 allows."""

    token: str = field(repr=False)


def read_authorization(header: str) -> UserAndPassword | BearerToken:
    """What the client shows of itself. Raises AuthenticationFailed, whose reason quotes nothing of it."""
    if len(header) > HEADER_LETTERS_MAX:
        raise AuthenticationFailed("the header Authorization is too long")
    scheme, _, credentials = header.partition(" ")
    match scheme.lower():
        case "basic":
            return _read_basic(credentials.strip(" "))
        case "bearer":
            token = credentials.strip(" ")
            if not _TOKEN.fullmatch(token):
                raise AuthenticationFailed("the header Authorization has no token of RFC 6750 (Bearer)")
            return BearerToken(token=token)
    raise AuthenticationFailed("the header Authorization has another scheme than Basic and Bearer")


def _read_basic(credentials: str) -> UserAndPassword:
    try:
        text = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, ValueError):
        raise AuthenticationFailed("the header Authorization is no base64 of UTF-8 (Basic)") from None
    name, colon, password = text.partition(":")
    if not colon or "\0" in text:
        raise AuthenticationFailed("the header Authorization has no user and password (Basic)")
    return UserAndPassword(name=name, password=password)
