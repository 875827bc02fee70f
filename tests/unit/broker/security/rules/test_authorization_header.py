"""The header Authorization: what it shows, and what is none."""

from __future__ import annotations

import base64

import pytest

from penstock.broker.security.rules.authorization_header import BearerToken, UserAndPassword, read_authorization
from penstock.broker.security.rules.sasl_exchange import AuthenticationFailed


def basic(text: bytes) -> str:
    return "Basic " + base64.b64encode(text).decode()


@pytest.mark.parametrize(
    ("header", "name", "password"),
    [
        (basic(b"ada:love"), "ada", "love"),
        (basic(b"ada:love").replace("Basic ", "bAsIc   ") + " ", "ada", "love"),
        # The first colon ends the name (RFC 7617 §2).
        (basic(b"ada:lo:ve"), "ada", "lo:ve"),
        (basic("ädä:løve".encode()), "ädä", "løve"),
        (basic(b":"), "", ""),
    ],
)
def test_a_user_and_a_password(header: str, name: str, password: str) -> None:
    shown = read_authorization(header)
    assert shown == UserAndPassword(name=name, password=password)
    assert not password or password not in repr(shown).replace(name, "")


def test_a_token() -> None:
    shown = read_authorization("bearer abc.DEF_-~+/09==")
    assert shown == BearerToken(token="abc.DEF_-~+/09==")
    assert "abc" not in repr(shown)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic !",
        basic(b"ada"),
        basic(b"ada\0:love"),
        basic(b"ada:lo\0ve"),
        basic(b"\xff:love"),
        basic(b"ada:love") + "\n",
        basic(b"ada:love") + ", " + basic(b"ada:love"),
        "Basic\t" + base64.b64encode(b"ada:love").decode(),
        "Basic \udcff",
        "Bearer",
        "Bearer a b",
        "Bearer a,b",
        "Bearer a=b",
        "Bearer a\x01b",
        # A byte that is no UTF-8, as HTTP hands it over.
        "Bearer \udcff",
        "Digest love",
        "Bearer " + "x" * 8_000,
    ],
)
def test_what_is_none_is_refused_without_being_quoted(header: str) -> None:
    with pytest.raises(AuthenticationFailed) as refusal:
        read_authorization(header)
    assert "love" not in refusal.value.reason
    assert base64.b64encode(b"ada:love").decode() not in refusal.value.reason
