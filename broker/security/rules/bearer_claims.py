"""What the claims of a token must say (RFC 7519). Kafka: `BrokerJwtValidator`, `OAuthBearerUnsecuredJws`.

Its signature was verified before; or it has none, where unsigned tokens are taken.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...configuration.bearer_config import BearerConfig
from .bearer import BearerToken, TokenRefused, VerifyToken

_EXPIRY_S_MAX: Final = 1 << 40


def checked_claims(claims: Mapping[str, Any], config: BearerConfig, now_ms: int, *, needs_issue: bool) -> BearerToken:
    """`needs_issue`: the token must say when it was issued. Raises TokenRefused."""
    expiry_ms = _time_ms(claims, "exp")
    issue_ms, start_ms = _time_ms(claims, "iat"), _time_ms(claims, "nbf")
    if expiry_ms is None:
        raise TokenRefused("the token does not say when it expires")
    if issue_ms is None and needs_issue:
        raise TokenRefused("the token does not say when it was issued")
    if expiry_ms <= now_ms - config.skew_ms:
        raise TokenRefused("the token has expired")
    for what, time_ms in (("issued", issue_ms), ("valid", start_ms)):
        if time_ms is not None and time_ms > now_ms + config.skew_ms:
            raise TokenRefused(f"the token is {what} in the future")
    if config.issuer is not None and claims.get("iss") != config.issuer:
        raise TokenRefused("the token is of another issuer")
    if config.audiences and not set(config.audiences) & set(_strings(claims, "aud")):
        raise TokenRefused("the token is for another audience")
    name = claims.get(config.sub_claim)
    if not isinstance(name, str) or not name.strip():
        raise TokenRefused(f"the token has no claim {config.sub_claim}")
    _check_scopes(claims, config)
    return BearerToken(name=name, expiry_ms=expiry_ms)


def unsigned_claims(token: str) -> Mapping[str, Any]:
    """The claims of a token without a signature. Raises TokenRefused."""
    header, separator, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    if not separator or signature:
        raise TokenRefused("an unsigned token has two parts and an empty one")
    if _json(header).get("alg") != "none":
        raise TokenRefused("the token is signed, and only unsigned ones are taken here")
    return _json(payload)


def unsigned_verifier(config: BearerConfig, wall_clock_ms: Callable[[], int]) -> VerifyToken:
    """Of tokens that anyone can make."""
    return lambda token: checked_claims(unsigned_claims(token), config, wall_clock_ms(), needs_issue=False)


def _check_scopes(claims: Mapping[str, Any], config: BearerConfig) -> None:
    # A provider writes them in one text or in a list.
    scopes = {scope for text in _strings(claims, config.scope_claim) for scope in text.split()}
    missing = [scope for scope in config.required_scopes if scope not in scopes]
    if missing:
        raise TokenRefused(
            "the token lacks a scope", status="insufficient_scope", scope=" ".join(config.required_scopes)
        )


def _strings(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = claims.get(name)
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """RFC 7519: seconds since 1970, perhaps with a fraction."""
    value = claims.get(name)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= value < _EXPIRY_S_MAX:
        raise TokenRefused(f"the claim {name} of the token is not a time")
    return int(value * 1000)


def _json(part: str) -> Mapping[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise TokenRefused("a part of the token is not a JSON object")
    return value
