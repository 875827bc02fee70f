"""How many connections a second are taken: of the broker, of a listener, and from one address (KIP-612). Pure.

Kafka: `ConnectionQuotas`. A connection above the rate of its listener (`listener.name.X.max.connection.creation.rate`)
or of the broker (`max.connection.creation.rate`) is taken, and nothing is read from it until the rates have fallen. The
listener between brokers has no part in the broker's rate, unless it is the only one. A connection above the rate of its
address (a quota of the metadata) does not count, and is closed: after the throttle time, so that its client does not
connect again at once.

Apache Kafka accepts no other connection of the listener while one waits. Here each waits by itself, for as long as all
those before it need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...timing.rules.rate_sensors import RateSensor, RateSensors

UNLIMITED: Final = 2**31 - 1
BROKER: Final = ""
"""The key of the broker's own sensor, among those of listeners."""


class ConnectionThrottle(NamedTuple):
    """What follows for a new connection above a rate."""

    throttle_time_ms: int
    is_closed: bool
    """Whether it is closed after that time; else it begins then."""


class ConnectionRates:
    """The rates of one node's connections. Times are milliseconds of a monotonic clock."""

    def __init__(self, *, sample_count: int = 11, window_ms: int = 1_000) -> None:
        """Kafka's `quota.window.num`, and `quota.window.size.seconds` in milliseconds, and their defaults."""
        self._window_ms = window_ms
        self._listeners: RateSensors[str] = RateSensors(sample_count=sample_count, window_ms=window_ms)
        self._addresses: RateSensors[str] = RateSensors(sample_count=sample_count, window_ms=window_ms)
        self._rate_max = UNLIMITED
        self._listener_rate_max: Mapping[str, int] = {}
        self._protected_listener: str | None = None
        self._quotas: Mapping[str | None, float] = {}

    def set_limits(self, *, total: int, by_listener: Mapping[str, int], protected_listener: str | None) -> None:
        """From now on. `protected_listener` is the one between brokers, where there are others."""
        self._rate_max = total
        self._listener_rate_max = by_listener
        self._protected_listener = protected_listener

    def set_quotas(self, quotas: Mapping[str | None, float]) -> None:
        """From now on an address may open so many connections a second; None has the default for all others."""
        self._quotas = quotas

    def on_connection(self, address: str, listener_name: str, now_ms: int) -> ConnectionThrottle | None:
        """Counts a connection; None when it is not above any rate."""
        sensors = self._sensors(listener_name, now_ms)
        throttle_time_ms = 0
        for sensor in sensors:
            throttle_time_ms = max(throttle_time_ms, sensor.use(1, now_ms))
        quota = self._quotas.get(address, self._quotas.get(None)) if self._quotas else None
        if quota is not None:
            of_address = self._addresses.sensor(address, quota, now_ms)
            closing_ms = of_address.use(1, now_ms)
            if closing_ms:
                for sensor in (of_address, *sensors):
                    sensor.record(-1, now_ms)
                of_address.note_throttle(closing_ms, now_ms)
                return ConnectionThrottle(min(closing_ms, self._window_ms), is_closed=True)
        if not throttle_time_ms:
            return None
        for sensor in sensors:
            sensor.note_throttle(throttle_time_ms, now_ms)
        return ConnectionThrottle(throttle_time_ms, is_closed=False)

    def _sensors(self, listener_name: str, now_ms: int) -> list[RateSensor]:
        """Those of the rates that are limited for the listener."""
        limits = [(listener_name, self._listener_rate_max.get(listener_name, UNLIMITED))]
        if listener_name != self._protected_listener:
            limits.append((BROKER, self._rate_max))
        return [self._listeners.sensor(name, limit, now_ms) for name, limit in limits if limit < UNLIMITED]
