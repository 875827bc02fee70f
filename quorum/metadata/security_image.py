"""Credentials, delegation tokens and quotas of clients, as the metadata image has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from msgspec import Struct


class ScramUser(NamedTuple):
    """Whose credential, and for which mechanism (KIP-554: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512)."""

    name: str
    mechanism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """What a server keeps of a password (RFC 5802 §3)."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


class DelegationToken(Struct, frozen=True, kw_only=True):
    """A delegation token (KIP-48) without its HMAC. Principals are "type:name", times milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: (entity type, name, or None for the default), in the order of the types (KIP-546)."""
Quotas: TypeAlias = Mapping[str, float]
"""Values by the keys of quotas."""
