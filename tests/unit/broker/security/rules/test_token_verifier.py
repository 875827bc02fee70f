"""Signatures of tokens: which are taken, and every known way around them."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from tokens import ISSUER, NOW_S, claims, ec_key, ed_key, jwk, key_set, public_pem, rsa_key, token, unsigned

from penstock.broker.configuration.bearer_config import BearerConfig
from penstock.broker.security.rules.bearer import BearerToken, TokenRefused, VerifyToken
from penstock.broker.security.rules.token_verifier import read_key_set, token_verifier

CONFIG = BearerConfig(
    jwks_url="file:///keys",
    refresh_ms=1,
    backoff_ms=1,
    backoff_ms_max=1,
    audiences=("kafka",),
    issuer=ISSUER,
    scope_claim="scope",
    sub_claim="sub",
    skew_ms=30_000,
)
ALICE = BearerToken(name="alice", expiry_ms=1000 * (NOW_S + 300))


class Issuer:
    """Its key set, and the tokens with a key that is not in it."""

    def __init__(self, *keys: dict[str, str]) -> None:
        self.keys = read_key_set(key_set(*keys))
        self.unknown_count = 0
        self.verify: VerifyToken = token_verifier(CONFIG, lambda: self.keys, self.note, lambda: 1000 * NOW_S)

    def note(self) -> None:
        self.unknown_count += 1


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer(jwk(rsa_key(), "one"), jwk(ec_key(), "ec"), jwk(ed_key(), "ed"), jwk(rsa_key(1), "two", alg="RS512"))


def test_tokens_of_every_kind_of_key_are_taken(issuer: Issuer) -> None:
    assert issuer.verify(token(rsa_key())) == ALICE
    assert issuer.verify(token(rsa_key(), algorithm="PS384")) == ALICE
    assert issuer.verify(token(ec_key(), "ec", "ES256")) == ALICE
    assert issuer.verify(token(ed_key(), "ed", "EdDSA")) == ALICE
    assert issuer.verify(token(rsa_key(1), "two", "RS512")) == ALICE
    # Without a name of its key any of the set may verify it.
    assert issuer.verify(token(ec_key(), None, "ES256")) == ALICE


def signed_by_hmac(secret: bytes, header: dict[str, Any]) -> str:
    """As one makes a token who knows public keys only."""
    whole = unsigned(header=header).rstrip(".")
    signature = hmac.digest(secret, whole.encode(), "sha256")
    return f"{whole}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def forged() -> dict[str, str]:
    good = token(rsa_key())
    header, payload, signature = good.split(".")
    root = base64.urlsafe_b64encode(json.dumps(claims(sub="root")).encode()).decode().rstrip("=")
    return {
        "alg none": unsigned(),
        "alg none with a key": unsigned(header={"alg": "none", "kid": "one"}),
        "alg nOnE": unsigned(header={"alg": "nOnE", "kid": "one"}),
        "none with the signature of another": unsigned(header={"alg": "none", "kid": "one"}, signature=signature),
        "public key as a secret": signed_by_hmac(public_pem(rsa_key()), {"alg": "HS256", "kid": "one"}),
        "public key as a secret, without name": signed_by_hmac(public_pem(rsa_key()), {"alg": "HS256"}),
        "other claims": f"{header}.{root}.{signature}",
        "no signature": f"{header}.{payload}.",
        "another key under its name": token(rsa_key(2)),
        "another algorithm than the key's": token(rsa_key(1), "two", "RS256"),
        "RSA with the name of an EC key": token(rsa_key(), "ec"),
        "key in the header": token_with_own_key(),
        "expired": token(rsa_key(), exp=NOW_S - 31),
        "of the future": token(rsa_key(), iat=NOW_S + 31),
        "another audience": token(rsa_key(), aud="others"),
        "another issuer": token(rsa_key(), iss="https://evil.example"),
        "no end": token(rsa_key(), exp=None),
        "four parts": f"{good}.x",
        "two parts": f"{header}.{payload}",
        "nothing": "",
        "dots": "..",
        "deep header": f"{base64.urlsafe_b64encode(b'[' * 30_000).decode()}.e30.AA",
        "key id of another kind": unsigned(header={"alg": "RS256", "kid": ["one"]}, signature="AA"),
        "algorithm of another kind": unsigned(header={"alg": ["RS256"], "kid": "one"}, signature="AA"),
    }


def token_with_own_key() -> str:
    import jwt

    return jwt.encode(claims(sub="root"), rsa_key(2), algorithm="RS256", headers={"jwk": jwk(rsa_key(2), None)})


def test_forged_tokens_are_refused_and_not_quoted(issuer: Issuer) -> None:
    for what, one in forged().items():
        refusal = ""
        try:
            issuer.verify(one)
        except TokenRefused as refused:
            refusal = str(refused)
        assert refusal, f"{what} was taken"
        assert len(one) < 10 or one[-8:] not in refusal


def test_a_key_that_is_not_there_is_asked_for_and_then_verifies() -> None:
    issuer = Issuer(jwk(rsa_key(), "one"))
    with pytest.raises(TokenRefused, match="not in the key set"):
        issuer.verify(token(rsa_key(1), "new"))
    assert issuer.unknown_count == 1
    issuer.keys = read_key_set(key_set(jwk(rsa_key(1), "new")))
    assert issuer.verify(token(rsa_key(1), "new")) == ALICE
    with pytest.raises(TokenRefused):
        issuer.verify(token(rsa_key(), "one"))
    assert issuer.unknown_count == 2


def test_keys_for_other_purposes_and_secrets_are_left_out() -> None:
    secret = {"kty": "oct", "kid": "secret", "k": base64.urlsafe_b64encode(b"s" * 32).decode()}
    keys = read_key_set(
        key_set(
            jwk(rsa_key(), "one"),
            secret,
            jwk(rsa_key(1), "two", use="enc"),
            jwk(ec_key(), "ec", alg="HS256"),
            {"kty": "X"},
        )
    )
    assert [key.key_id for key in keys] == ["one"]


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": [1, null, {"kty": []}]}', b'{"keys": []}', b"[" * 100_000, b"\xff"],
)
def test_what_is_no_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        read_key_set(text)
