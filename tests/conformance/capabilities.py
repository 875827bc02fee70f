"""What this broker cannot do yet: the reasons for which a test of another project's suite does not pass."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """One reason; its value is how the lists in `not_yet/` and `docs/conformance.md` name it."""

    ACLS = "ACLs"
    CLIENT_TELEMETRY = "client telemetry"
    COMPACTION = "compaction"
    CONSUMER_GROUPS = "consumer groups"
    DELEGATION_TOKENS = "delegation tokens"
    FEATURE_LEVELS = "changing feature levels"
    QUOTAS = "quotas"
    REPLICATION_THROTTLES = "throttled replication"
    SASL = "SASL"
    SHARE_GROUPS = "share groups"
    STREAMS_GROUPS = "streams groups"
    TIERED_STORAGE = "tiered storage"
    TLS = "TLS"
    TRANSACTIONS = "transactions"
