"""Sensors with a bound, one for each key: what those that share a quota have used. Kafka: `SensorAccess`, `Sensor`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from .sampled_rate import SampledRate
from .token_bucket import TokenBucket

K = TypeVar("K", bound=Hashable)

SENSOR_IDLE_MS_MAX: Final = 3_600_000
"""A sensor that recorded nothing for so long is dropped. Kafka: InactiveSensorExpirationTimeSeconds."""
EXPIRY_INTERVAL_MS: Final = 30_000
"""How often idle sensors are looked for, while new ones come; without new ones memory does not grow."""
THROTTLE_WINDOW_MS: Final = 30_000
"""Averages are over two of these. Kafka: `Avg` of two samples of 30 s."""
SENSORS_MAX: Final = 50_000
"""About 30 MB. A client with ever new client ids must not take the memory of a node: with one more, the half that was
used least recently is dropped. Apache Kafka has no such bound."""


DROPPED: Final = -1
"""In place of a throttle time: the sensor is not of its clients any more."""


class RateSensor(SampledRate):
    """One rate and its bound, in values a second."""

    __slots__ = ("_bound", "_made_ms", "_most", "_room", "_throttles", "bucket")

    def __init__(self, *, sample_count: int, window_ms: int, bound: float, now_ms: int) -> None:
        super().__init__(sample_count=sample_count, window_ms=window_ms)
        # So much may be in the newest sample with a rate within the bound, whatever passes of the window: no window is
        # shorter than that, and samples that are too old only make the rate higher.
        self._room = self._most = 0.0
        self.bound = bound
        self.bucket = TokenBucket(burst_ms=sample_count * window_ms)
        """For quotas that are of tokens: it holds as much as comes in all samples."""
        self._made_ms = now_ms
        # Of the present window and the one before: when it began, how many throttle times, and their sum.
        self._throttles: list[tuple[int, int, int]] = []

    @property
    def last_used_ms(self) -> int:
        return self._made_ms if self._newest_start_ms is None else self._newest_last_ms

    @property
    def bound(self) -> float:
        return self._bound

    @bound.setter
    def bound(self, bound: float) -> None:
        self._bound = bound
        self._most = bound * self._least_ms / 1000
        self._room = self._most - self._older_total

    def record(self, value: float, now_ms: int) -> None:
        super().record(value, now_ms)
        self._room = self._most - self._older_total

    @property
    def is_dropped(self) -> bool:
        return self._most < 0

    def drop(self) -> None:
        """From now on another one counts for its clients."""
        self._most = self._room = -math.inf

    def use(self, value: float, now_ms: int) -> int:
        """Counts; returns for how long nothing may be recorded, so that the rate falls to the bound.

        DROPPED if it does not count any more.
        """
        # On the path of each request of a client with a quota: `record`, without another call.
        if now_ms < self._newest_end_ms:
            self._newest_last_ms = now_ms
            self._newest_total = total = self._newest_total + value
        else:
            self._begin_sample(value, now_ms)
            self._room = self._most - self._older_total
            total = value
        if total <= self._room:
            return 0
        return DROPPED if self.is_dropped else self.throttle_time_ms(self._bound, now_ms)

    def left(self, now_ms: int) -> float:
        """How much may be used now, so that the rate is the bound; negative when it is above."""
        window_ms = self.window_ms(now_ms)
        return self._bound * window_ms / 1000 - self.total

    def note_throttle(self, throttle_time_ms: int, now_ms: int) -> None:
        """Something was throttled because of this sensor."""
        throttles = self._throttles
        if throttles and now_ms - throttles[-1][0] < THROTTLE_WINDOW_MS:
            begun_ms, count, total_ms = throttles[-1]
            throttles[-1] = begun_ms, count + 1, total_ms + throttle_time_ms
        else:
            throttles[:] = [*throttles[-1:], (now_ms, 1, throttle_time_ms)]

    def average_throttle_ms(self, now_ms: int) -> float:
        """Of the throttle times of the last minute; 0 without any."""
        recent = [one for one in self._throttles if now_ms - one[0] < 2 * THROTTLE_WINDOW_MS]
        count = sum(count for _, count, _ in recent)
        return sum(total_ms for _, _, total_ms in recent) / count if count else 0.0


class RateSensors(Generic[K]):
    """The sensors of one kind of quota."""

    def __init__(self, *, sample_count: int, window_ms: int, sensors_max: int = SENSORS_MAX) -> None:
        """The number of samples, and how long each is."""
        self._sample_count = sample_count
        self._window_ms = window_ms
        self._sensors_max = sensors_max
        self._sensors: dict[K, RateSensor] = {}
        self._expired_ms: int | None = None

    def __len__(self) -> int:
        return len(self._sensors)

    def __iter__(self) -> Iterator[tuple[K, RateSensor]]:
        return iter(self._sensors.items())

    def sensor(self, key: K, bound: float, now_ms: int) -> RateSensor:
        """The sensor of a key, which has that bound from now on; what was recorded before still counts."""
        sensor = self._sensors.get(key)
        if sensor is not None:
            sensor.bound = bound
            return sensor
        if self._expired_ms is None:
            self._expired_ms = now_ms
        if now_ms - self._expired_ms >= EXPIRY_INTERVAL_MS:
            self._expired_ms = now_ms
            self._drop_unused_since(now_ms - SENSOR_IDLE_MS_MAX)
        if len(self._sensors) >= self._sensors_max:
            times = sorted(sensor.last_used_ms for sensor in self._sensors.values())
            self._drop_unused_since(times[len(times) // 2])
        made = self._sensors[key] = RateSensor(
            sample_count=self._sample_count, window_ms=self._window_ms, bound=bound, now_ms=now_ms
        )
        return made

    def _drop_unused_since(self, last_used_ms: int) -> None:
        unused = [key for key, sensor in self._sensors.items() if sensor.last_used_ms <= last_used_ms]
        for key in unused:
            self._sensors.pop(key).drop()
