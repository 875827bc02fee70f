"""Properties of delegation tokens."""

from __future__ import annotations

from ...quorum.permissions.token_settings import DelegationTokenConfig
from .property_values import PropertyValues


def load_tokens(values: PropertyValues) -> DelegationTokenConfig | None:
    """Returns None without `delegation.token.secret.key`: there are no tokens then."""
    secret_key = values.text_or_none("delegation.token.secret.key") or ""
    config = DelegationTokenConfig(
        secret_key=secret_key.encode(),
        max_lifetime_ms=values.integer("delegation.token.max.lifetime.ms"),
        expiry_time_ms=values.integer("delegation.token.expiry.time.ms"),
        check_interval_ms=values.integer("delegation.token.expiry.check.interval.ms"),
    )
    return config if secret_key else None
