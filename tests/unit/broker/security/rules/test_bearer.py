"""OAUTHBEARER's messages, and what a token must say."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens import ISSUER, NOW_S, claims, unsigned

from penstock.broker.configuration.bearer_config import BearerConfig
from penstock.broker.security.rules.bearer import TOKEN_LETTERS_MAX, BearerExchange, BearerToken, TokenRefused
from penstock.broker.security.rules.bearer_claims import checked_claims, unsigned_verifier
from penstock.broker.security.rules.sasl_exchange import AuthenticationFailed, Proved
from penstock.protocol.structs import replace

NOW_MS = 1000 * NOW_S
CONFIG = BearerConfig(
    jwks_url=None,
    refresh_ms=1,
    backoff_ms=1,
    backoff_ms_max=1,
    audiences=("kafka", "other"),
    issuer=ISSUER,
    scope_claim="scope",
    sub_claim="sub",
    skew_ms=30_000,
)


def message(token: str, *, header: str = "n,,", more: str = "") -> bytes:
    return f"{header}\x01auth=Bearer {token}\x01{more}\x01".encode()


def verify(token: str) -> BearerToken:
    if token != "good":
        raise TokenRefused("it is not good", status="insufficient_scope", scope="write")
    return BearerToken(name="alice", expiry_ms=77)


@pytest.mark.parametrize(
    "first",
    [
        message("good"),
        message("good", header="n,a=alice,"),
        message("good", more="traceId=12 3\x01x=\x01"),
        b"n,,\x01auth=bearer  good\x01\x01",
    ],
)
def test_a_good_token_proves_whom_it_names_until_it_ends(first: bytes) -> None:
    assert BearerExchange(verify).step(first) == Proved(principal="User:alice", expiry_ms=77)


def test_a_refused_token_is_told_as_json_and_then_ends_the_exchange() -> None:
    exchange = BearerExchange(verify)
    assert exchange.step(message("bad")) == b'{"status":"insufficient_scope","scope":"write"}'
    # Whatever the client says now, a good token, too.
    with pytest.raises(AuthenticationFailed) as refused:
        exchange.step(message("good"))
    assert refused.value.reason == "it is not good"
    assert refused.value.message == '{"status":"insufficient_scope","scope":"write"}'


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01token=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer go\x00od\x01\x01",
        b"n,,\x01auth=Bearer good;\x01\x01",
        b"\xff",
        message("good", header="n,a=bob,"),
        message("g" * TOKEN_LETTERS_MAX),
    ],
)
def test_anything_else_is_refused(first: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        BearerExchange(verify).step(first)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"aud": ["x", "other"]},
        {"exp": NOW_S - 29.5},
        {"iat": NOW_S + 30, "nbf": NOW_S + 30},
        {"scope": ["a", "b"]},
    ],
)
def test_claims_that_are_right_within_the_skew(changed: dict[str, Any]) -> None:
    whole = claims(**changed)
    token = checked_claims(whole, CONFIG, NOW_MS, needs_issue=True)
    assert token == BearerToken(name="alice", expiry_ms=int(1000 * whole["exp"]))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"exp": None}, "does not say when it expires"),
        ({"exp": NOW_S - 30}, "has expired"),
        ({"exp": "tomorrow"}, "claim exp of the token is not a time"),
        ({"exp": True}, "claim exp of the token is not a time"),
        ({"exp": float("inf")}, "claim exp of the token is not a time"),
        ({"exp": 1 << 80}, "claim exp of the token is not a time"),
        ({"exp": -1}, "claim exp of the token is not a time"),
        ({"iat": None}, "does not say when it was issued"),
        ({"iat": NOW_S + 31}, "issued in the future"),
        ({"nbf": NOW_S + 31}, "valid in the future"),
        ({"iss": None}, "another issuer"),
        ({"iss": "https://issuer.example/"}, "another issuer"),
        ({"iss": [ISSUER]}, "another issuer"),
        ({"aud": None}, "another audience"),
        ({"aud": "Kafka"}, "another audience"),
        ({"aud": ["kafka2", 7]}, "another audience"),
        ({"aud": {"kafka": 1}}, "another audience"),
        ({"sub": None}, "no claim sub"),
        ({"sub": " "}, "no claim sub"),
        ({"sub": ["alice"]}, "no claim sub"),
    ],
)
def test_claims_that_are_wrong(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TokenRefused, match=sentence):
        checked_claims(claims(**changed), CONFIG, NOW_MS, needs_issue=True)


def test_the_claims_of_names_and_scopes_may_have_other_names() -> None:
    config = replace(CONFIG, sub_claim="client", scope_claim="scp", required_scopes=("read", "write"))
    whole = claims(sub=None, client="job", scp=["read write"])
    assert checked_claims(whole, config, NOW_MS, needs_issue=True).name == "job"
    with pytest.raises(TokenRefused) as refused:
        checked_claims(claims(client="job", scp="read"), config, NOW_MS, needs_issue=True)
    assert (refused.value.status, refused.value.scope) == ("insufficient_scope", "read write")


UNSIGNED = unsigned_verifier(replace(CONFIG, audiences=(), issuer=None, skew_ms=0), lambda: NOW_MS)


def test_an_unsigned_token_is_read_where_such_are_taken() -> None:
    assert UNSIGNED(unsigned(iat=None)) == BearerToken(name="alice", expiry_ms=NOW_MS + 300_000)


@pytest.mark.parametrize(
    "token",
    [
        unsigned(header={"alg": "RS256"}),
        unsigned(header={"alg": "NONE"}),
        unsigned(signature="x"),
        unsigned(exp=NOW_S),
        unsigned().split(".")[0],
        "a.b.",
        "..",
        f"{base64.urlsafe_b64encode(json.dumps([1]).encode()).decode()}.e30.",
        f"{base64.urlsafe_b64encode(b'[' * 20_000).decode()}.e30.",
    ],
)
def test_a_token_that_is_not_one_without_a_signature_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        UNSIGNED(token)


@settings(max_examples=200)
@given(st.lists(st.one_of(st.binary(max_size=80), st.text(max_size=40).map(lambda text: message(text))), max_size=3))
def test_messages_of_any_kind_prove_nothing(messages: list[bytes]) -> None:
    exchange = BearerExchange(UNSIGNED)
    for one in messages:
        try:
            assert not isinstance(exchange.step(one), Proved)
        except AuthenticationFailed:
            return
