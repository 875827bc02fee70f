"""What a node is told about delegation tokens (KIP-48)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenConfig:
    """`delegation.token.secret.key`, `.max.lifetime.ms`, `.expiry.time.ms` and `.expiry.check.interval.ms`."""

    secret_key: bytes = field(repr=False)
    max_lifetime_ms: int
    expiry_time_ms: int
    check_interval_ms: int
