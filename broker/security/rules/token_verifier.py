"""Signatures of tokens (JWS, RFC 7515) against a JSON Web Key Set (RFC 7517), verified by PyJWT.

Only asymmetric algorithms are known, and a key only verifies by those of its own type: neither `alg: none` nor a public
key that is taken for a secret of HMAC gets through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ....protocol.errors import ConfigError
from ...configuration.bearer_config import BearerConfig
from .bearer import BearerToken, TokenRefused, VerifyToken
from .bearer_claims import checked_claims

if TYPE_CHECKING:
    from jwt import PyJWK

KEYS_MAX: Final = 100
"""Of one set; providers have a few."""
CANDIDATES_MAX: Final = 8
"""Keys that are tried for a token which names none."""
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}


class VerificationKey:
    """One key of a set, and by which algorithms it verifies."""

    def __init__(self, key_id: str | None, algorithms: tuple[str, ...], key: PyJWK) -> None:
        self.key_id = key_id
        self.algorithms = algorithms
        self.key = key


def read_key_set(text: bytes) -> tuple[VerificationKey, ...]:
    """The keys that can verify a token; others are left out. Raises ValueError when it is no key set."""
    jwt = load_library()
    try:
        found = json.loads(text)
        entries = found["keys"]
        assert isinstance(entries, list)
    except (ValueError, TypeError, KeyError, AssertionError, RecursionError):
        raise ValueError('it is no JSON object with a list "keys"') from None
    keys = []
    for entry in entries[:KEYS_MAX]:
        algorithms = _algorithms(entry)
        if algorithms:
            try:
                key = jwt.PyJWK(entry, algorithm=algorithms[0])
            except jwt.PyJWTError:
                continue
            keys.append(VerificationKey(entry.get("kid"), algorithms, key))
    if not keys:
        raise ValueError("it has no key of RSA, EC or Ed25519 for signatures")
    return tuple(keys)


def token_verifier(
    config: BearerConfig,
    keys: Callable[[], tuple[VerificationKey, ...]],
    on_unknown_key: Callable[[], None],
    wall_clock_ms: Callable[[], int],
) -> VerifyToken:
    """`keys` is asked for each token; `on_unknown_key` is called when it names one that is not there."""

    def verify(token: str) -> BearerToken:
        jwt = load_library()
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, RecursionError):
            raise TokenRefused("the token is no signed JSON Web Token") from None
        key_id, algorithm = header.get("kid"), header.get("alg")
        candidates = [key for key in keys() if key_id is None or key.key_id == key_id]
        if not candidates:
            on_unknown_key()
            raise TokenRefused("the token is signed with a key that is not in the key set")
        for key in candidates[:CANDIDATES_MAX]:
            if algorithm not in key.algorithms:
                continue
            try:
                payload = jwt.PyJWS().decode(token, key.key.key, algorithms=[algorithm])
            except (jwt.PyJWTError, ValueError, RecursionError):
                continue
            return checked_claims(_claims(payload), config, wall_clock_ms(), needs_issue=True)
        raise TokenRefused("the signature of the token is not of a key in the key set")

    return verify


def load_library() -> Any:
    """PyJWT, which is loaded only where tokens are verified. Raises ConfigError when it is not installed."""
    try:
        import cryptography.hazmat.primitives.asymmetric  # noqa: F401 - without it PyJWT knows HMAC alone
        import jwt
    except ImportError:
        raise ConfigError("Tokens of OAUTHBEARER need PyJWT: pip install 'penstock-broker[oauth]'.") from None
    return jwt


def _algorithms(entry: object) -> tuple[str, ...]:
    """By which a key of a set verifies; none for one that is for something else."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return ()
    operations, key_id = entry.get("key_ops", ["verify"]), entry.get("kid")
    kind, curve = entry.get("kty"), entry.get("crv")
    if not isinstance(operations, list) or "verify" not in operations or not isinstance(key_id, str | None):
        return ()
    if not isinstance(kind, str) or not isinstance(curve, str | None):
        return ()
    algorithms = _ALGORITHMS.get((kind, curve), ())
    named = entry.get("alg")
    return algorithms if named is None else tuple(one for one in algorithms if one == named)


def _claims(payload: bytes) -> Mapping[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise TokenRefused("the claims of the token are no JSON object")
    return claims
