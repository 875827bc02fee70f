"""A token bucket: a rate that may be exceeded for a while, by what was not used before (KIP-599). Kafka: `TokenBucket`.

Tokens come at the rate, up to what it brings in the burst time; a bucket begins full. What is taken may leave a debt:
who finds one waits until it is paid.
"""

from __future__ import annotations

from typing import Final

THROTTLE_MS_MAX: Final = 2**31 - 1
"""The field of a response has no more."""


class TokenBucket:
    """Times are milliseconds of one monotonic clock; rates are tokens a second."""

    __slots__ = ("_burst_ms", "_tokens", "_updated_ms")

    def __init__(self, *, burst_ms: int) -> None:
        """Kafka's `controller.quota.window.num` times `controller.quota.window.size.seconds`, in milliseconds."""
        self._burst_ms = burst_ms
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def tokens(self, rate: float, now_ms: int) -> float:
        """How many there are; negative for a debt."""
        most = rate * self._burst_ms / 1000
        if self._updated_ms is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + rate * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: int) -> None:
        """Takes so many, whether they are there or not; a negative count is given back."""
        self._tokens = min(rate * self._burst_ms / 1000, self.tokens(rate, now_ms) - count)

    def throttle_time_ms(self, rate: float, now_ms: int) -> int:
        """How long the debt takes at this rate; 0 without one."""
        tokens = self.tokens(rate, now_ms)
        return min(int(-tokens / rate * 1000 + 0.5), THROTTLE_MS_MAX) if tokens < 0 else 0
