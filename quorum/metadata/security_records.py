"""The metadata records of who may do what, under Kafka's names: permissions, credentials, tokens, quotas.

They are written as `records.py` describes. A credential holds what a server needs to check a password (RFC 5802 §3),
never the password; of a delegation token the log has everything but its HMAC (KIP-900).
"""

from collections.abc import Mapping
from typing import ClassVar
from uuid import UUID

from msgspec import Struct


class DelegationTokenRecord(Struct, frozen=True, kw_only=True):
    """A token exists, or its expiration changed. `owner`, `requester` and `renewers` are principals as "type:name".

    Times are milliseconds since 1970.
    """

    TYPE: ClassVar[int] = 10
    VERSION: ClassVar[int] = 0

    token_id: str
    owner: str
    requester: str
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    renewers: tuple[str, ...] = ()
    unknown_fields: Mapping[int, object] = {}


class UserScramCredentialRecord(Struct, frozen=True, kw_only=True):
    """A user has a credential of a mechanism, in place of an earlier one (KIP-554: 1 SHA-256, 2 SHA-512)."""

    TYPE: ClassVar[int] = 11
    VERSION: ClassVar[int] = 0

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    unknown_fields: Mapping[int, object] = {}

    def __repr__(self) -> str:
        return f"UserScramCredentialRecord(name={self.name!r}, mechanism={self.mechanism})"


class ClientQuotaEntity(Struct, frozen=True, kw_only=True):
    """A part of whom a quota is for; without a name it is for all who have none of their own."""

    entity_type: str
    entity_name: str | None = None
    unknown_fields: Mapping[int, object] = {}


class ClientQuotaRecord(Struct, frozen=True, kw_only=True):
    """A quota of an entity was set, or removed (KIP-546). `value` is in the unit of `key`."""

    TYPE: ClassVar[int] = 14
    VERSION: ClassVar[int] = 0

    entity: tuple[ClientQuotaEntity, ...]
    key: str
    value: float = 0.0
    remove: bool = False
    unknown_fields: Mapping[int, object] = {}


class AccessControlEntryRecord(Struct, frozen=True, kw_only=True):
    """An ACL exists. Its enumerations are the numbers of Kafka's protocol (`protocol/acls.py`)."""

    TYPE: ClassVar[int] = 18
    VERSION: ClassVar[int] = 0

    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    unknown_fields: Mapping[int, object] = {}


class RemoveAccessControlEntryRecord(Struct, frozen=True, kw_only=True):
    """An ACL is gone."""

    TYPE: ClassVar[int] = 19
    VERSION: ClassVar[int] = 0

    id: UUID
    unknown_fields: Mapping[int, object] = {}


class RemoveUserScramCredentialRecord(Struct, frozen=True, kw_only=True):
    """A user's credential of a mechanism is gone."""

    TYPE: ClassVar[int] = 22
    VERSION: ClassVar[int] = 0

    name: str
    mechanism: int
    unknown_fields: Mapping[int, object] = {}


class RemoveDelegationTokenRecord(Struct, frozen=True, kw_only=True):
    """A token is gone."""

    TYPE: ClassVar[int] = 26
    VERSION: ClassVar[int] = 0

    token_id: str
    unknown_fields: Mapping[int, object] = {}
