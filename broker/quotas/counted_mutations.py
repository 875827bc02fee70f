"""What one request has taken from the quota of its client's changes of topics (KIP-599).

Kafka: `StrictControllerMutationQuota`, `PermissiveControllerMutationQuota`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...quorum.decisions.mutation_quota import NO_MUTATIONS, MutationAllowance, Mutations
from ..timing.rules.rate_sensors import RateSensor


class CountedMutations:
    """A `MutationQuota`."""

    __slots__ = ("_is_strict", "_now_ms", "_sensor", "_settled_ms", "_throttle_time_ms")

    def __init__(self, sensor: RateSensor, now_ms: Callable[[], int], *, is_strict: bool) -> None:
        self._sensor = sensor
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._throttle_time_ms = 0
        self._settled_ms = 0

    def allowance(self) -> MutationAllowance:
        sensor = self._sensor
        return MutationAllowance(sensor.bucket.tokens(sensor.bound, self._now_ms()), self._is_strict)

    def settle(self, mutations: Mutations) -> None:
        if mutations == NO_MUTATIONS:
            return
        sensor, now_ms = self._sensor, self._now_ms()
        sensor.record(mutations.partition_count, now_ms)
        sensor.bucket.take(mutations.partition_count, sensor.bound, now_ms)
        if mutations.is_exceeded:
            self._settled_ms = now_ms
            self._throttle_time_ms = sensor.bucket.throttle_time_ms(sensor.bound, now_ms)
            sensor.note_throttle(self._throttle_time_ms, now_ms)

    def throttle_time_ms(self) -> int:
        """Less what has passed since, as the change had to be committed."""
        return max(self._throttle_time_ms - (self._now_ms() - self._settled_ms), 0)
