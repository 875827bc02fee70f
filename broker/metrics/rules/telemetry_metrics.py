"""Client telemetry (KIP-714); what clients push has the names that they give it."""

from __future__ import annotations

from typing import Final

from .metric import attribute, own

CLIENTS: Final = "kafka.server:type=client-metrics"

INSTANCES: Final = attribute(CLIENTS, "instance-count", "Client instances that this broker knows.")
UNKNOWN_SUBSCRIPTIONS: Final = attribute(
    CLIENTS, "unknown-subscription-request-count", "Pushes with a subscription id that is out of date."
)
SERIES: Final = own("gauge", "penstock_client_telemetry_series", "Series that clients have pushed.")
PUSHES: Final = own("counter", "penstock_client_telemetry_pushes_total", "Pushes of clients that were taken in.")
THROTTLED: Final = own("counter", "penstock_client_telemetry_throttled_total", "Requests that came before their time.")
TOO_LARGE: Final = own(
    "counter",
    "penstock_client_telemetry_too_large_total",
    "Pushes larger than telemetry.max.bytes, compressed or uncompressed.",
)
UNREADABLE: Final = own(
    "counter", "penstock_client_telemetry_unreadable_total", "Pushes that are not OpenTelemetry's format."
)
DROPPED: Final = own(
    "counter",
    "penstock_client_telemetry_dropped_points_total",
    "Pushed data points that were not asked for, are no series, or had no room.",
)
