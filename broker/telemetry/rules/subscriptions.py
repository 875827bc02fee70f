"""Client metrics subscriptions, and what one client is asked for. Kafka: `ClientMetricsConfigs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import re2
from msgspec import Struct

from ....protocol.checksum import crc32c
from ....quorum.configs.table import client_metrics_configs

INTERVAL_MS_DEFAULT: Final = 300_000
ALL_METRICS: Final = "*"
_INT_MASK: Final = 0xFFFF_FFFF
_INT_SIGN: Final = 0x8000_0000


class ClientDetails(Struct, frozen=True, kw_only=True):
    """What a subscription may select clients by; the fields have the names that `match` uses."""

    client_instance_id: UUID
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: int


class Subscription(Struct, frozen=True, kw_only=True):
    """`matches` are a field of `ClientDetails` and a compiled RE2 expression each; a client must match all of them."""

    metrics: tuple[str, ...]
    interval_ms: int
    matches: tuple[tuple[str, Any], ...]

    def is_match(self, client: ClientDetails) -> bool:
        return all(pattern.fullmatch(str(getattr(client, name))) is not None for name, pattern in self.matches)


class Selection(Struct, frozen=True, kw_only=True):
    """What a client is asked for: prefixes of metric names, none or all (`*`), and how often it pushes."""

    metrics: tuple[str, ...]
    interval_ms: int

    def includes(self, name: str) -> bool:
        """Whether a metric was asked for, by a prefix of its name."""
        return any(prefix == ALL_METRICS or name.startswith(prefix) for prefix in self.metrics)

    def id_for(self, client_instance_id: UUID) -> int:
        """The subscription id, an int32: CRC-32C of the selection, XOR the instance id (KIP-714).

        All brokers find the same id, so that a client may go on with another one.
        """
        checksum = crc32c(f"[{', '.join(self.metrics)}]{self.interval_ms}".encode())
        most, least = client_instance_id.int >> 64, client_instance_id.int & (2**64 - 1)
        folded = most ^ least
        number = (checksum ^ (folded >> 32) ^ folded) & _INT_MASK
        return number - 2 * (number & _INT_SIGN)


def read_subscription(values: Mapping[str, str]) -> Subscription | None:
    """The subscription with these dynamic configs; None when RE2 refuses an expression of `match`.

    Such are refused, but a subscription may have been written when they were not.
    """
    table = client_metrics_configs()
    interval_ms, metrics, patterns = (table.value(values, name) for name in ("interval.ms", "metrics", "match"))
    assert isinstance(interval_ms, int)
    assert isinstance(metrics, tuple)
    assert isinstance(patterns, tuple)
    options = re2.Options()
    options.log_errors = False
    matches = []
    for pattern in patterns:
        name, _, expression = pattern.partition("=")
        try:
            matches.append((name.strip(), re2.compile(expression.strip(), options)))
        except re2.error:
            return None
    return Subscription(metrics=metrics, interval_ms=interval_ms, matches=tuple(matches))


def select(subscriptions: Iterable[Subscription], client: ClientDetails) -> Selection:
    """All that the subscriptions of this client ask for, at the shortest of their intervals."""
    interval_ms = INTERVAL_MS_DEFAULT
    metrics: set[str] = set()
    for subscription in subscriptions:
        if subscription.is_match(client):
            metrics.update(subscription.metrics)
            interval_ms = min(interval_ms, subscription.interval_ms)
    return Selection(
        metrics=(ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics)), interval_ms=interval_ms
    )
