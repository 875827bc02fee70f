"""An issuer of tokens: its keys, its key set, and tokens that are as a test wants them."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
NOW_S = 1_700_000_000


@cache
def rsa_key(_number: int = 0) -> rsa.RSAPrivateKey:
    """Another one for each number. Making one takes a tenth of a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(key: Any, key_id: str | None, **more: str) -> dict[str, str]:
    """The public key as a set has it."""
    algorithm = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    maker: Any = next((made for kind, made in algorithm.items() if isinstance(key, kind)), OKPAlgorithm)
    entry = json.loads(maker.to_jwk(key.public_key()))
    entry.pop("key_ops", None)
    return {**entry, **({} if key_id is None else {"kid": key_id}), **more}


def key_set(*keys: dict[str, str]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def claims(**changed: Any) -> dict[str, Any]:
    """Of alice, valid for five minutes; None leaves one out."""
    whole = {
        "iss": ISSUER,
        "sub": "alice",
        "aud": "kafka",
        "iat": NOW_S,
        "exp": NOW_S + 300,
        **changed,
    }
    return {name: value for name, value in whole.items() if value is not None}


def token(key: Any, key_id: str | None = "one", algorithm: str = "RS256", **changed: Any) -> str:
    headers = {} if key_id is None else {"kid": key_id}
    return jwt.encode(claims(**changed), key, algorithm=algorithm, headers=headers)


def unsigned(header: dict[str, Any] | None = None, signature: str = "", **changed: Any) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part(header or {'alg': 'none'})}.{part(claims(**changed))}.{signature}"
