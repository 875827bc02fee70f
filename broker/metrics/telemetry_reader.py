"""Client telemetry. Kafka: `ClientMetricsManager.ClientMetricsStats`."""

from __future__ import annotations

from ..telemetry.client_telemetry import ClientTelemetry
from .rules import telemetry_metrics as metrics
from .rules.metric import read
from .rules.readings import Readings


class TelemetryReader:
    def __init__(self, telemetry: ClientTelemetry) -> None:
        self._telemetry = telemetry

    def __call__(self) -> Readings:
        statistics = self._telemetry.statistics()
        yield read(metrics.INSTANCES, statistics.instances)
        yield read(metrics.UNKNOWN_SUBSCRIPTIONS, statistics.unknown_subscriptions)
        yield read(metrics.SERIES, statistics.series)
        yield read(metrics.PUSHES, statistics.pushes)
        yield read(metrics.THROTTLED, statistics.throttled)
        yield read(metrics.TOO_LARGE, statistics.too_large)
        yield read(metrics.UNREADABLE, statistics.unreadable)
        yield read(metrics.DROPPED, statistics.dropped_points)
