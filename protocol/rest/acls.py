"""ACLs, which no node has yet."""

from msgspec import Struct


class AclQuery(Struct, kw_only=True):
    """Confluent's filter of ACLs."""

    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    permission: str | None = None
