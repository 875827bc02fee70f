"""Quotas of clients. Kafka: `ClientQuotaManager`'s sensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from ....quorum.metadata.quota_precedence import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaClients,
)
from ...timing.rules.rate_sensors import RateSensors
from . import quota_metrics as metrics
from .metric import Metric, Reading
from .readings import Readings

SENSORS_MAX: Final = 1000
"""Of each kind of quota, with series of their own: the first that clients used."""
RESOURCES: Final = {
    PRODUCER_BYTE_RATE: ("Produce", metrics.BYTE_RATE),
    CONSUMER_BYTE_RATE: ("Fetch", metrics.BYTE_RATE),
    REQUEST_PERCENTAGE: ("Request", metrics.REQUEST_TIME),
    CONTROLLER_MUTATION_RATE: ("ControllerMutation", metrics.MUTATION_RATE),
}


class QuotaReader:
    def __init__(self, sensors: Mapping[str, RateSensors[QuotaClients]], monotonic_ms: Callable[[], int]) -> None:
        """`sensors` by the keys of quotas; only clients with a quota have one."""
        self._sensors = sensors
        self._monotonic_ms = monotonic_ms

    def __call__(self) -> Readings:
        now_ms = self._monotonic_ms()
        rates: dict[Metric, list[tuple[tuple[str, ...], float]]] = {metric: [] for _, metric in RESOURCES.values()}
        throttles: list[tuple[tuple[str, ...], float]] = []
        tokens: list[tuple[tuple[str, ...], float]] = []
        for key, (resource, metric) in RESOURCES.items():
            for clients, sensor in islice(self._sensors[key], SENSORS_MAX):
                labels = (resource, clients.user, clients.client_id)
                rates[metric].append((labels, sensor.rate(now_ms)))
                throttles.append((labels, sensor.average_throttle_ms(now_ms)))
                if key == CONTROLLER_MUTATION_RATE:
                    tokens.append((labels, sensor.bucket.tokens(sensor.bound, now_ms)))
            yield None
        for metric, samples in rates.items():
            yield Reading(metric, samples)
        yield Reading(metrics.TOKENS, tokens)
        yield Reading(metrics.THROTTLE_TIME, throttles)
