"""What holds of a delegation token (KIP-48): its password, its time, and whose it is."""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Final

from ..metadata.security_image import DelegationToken

_KNOWN_HMACS: Final = 10_000


@lru_cache(_KNOWN_HMACS)
def hmac_of(secret_key: bytes, token_id: str) -> bytes:
    """Return what is the password of a token: HMAC-SHA-512 of its id, 64 bytes."""
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    return token.max_timestamp_ms < now_ms or token.expiration_timestamp_ms < now_ms


def is_owner_or_renewer(token: DelegationToken, principal: str) -> bool:
    """Return whether a principal ("type:name") may describe the token without any permission."""
    return principal in (token.owner, token.requester, *token.renewers)
