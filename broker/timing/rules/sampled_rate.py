"""A rate over the last samples, and how long it takes to fall to a bound. Kafka: `Rate`, `SampledStat`, `QuotaUtils`.

With N samples of W milliseconds (`quota.window.num`, `quota.window.size.seconds`) a value counts for N × W after the
last one of its sample. What counts is divided by the time since the oldest sample began, and by N - 1 whole samples at
least: a client that begins to send may send at once what its quota allows in that time.

                 oldest sample                       newest
    |------W------|------W------|--- … ---|------W------|--…   now
    ^ from here the window is measured                      ^ to here
"""

from __future__ import annotations

from collections import deque

from .token_bucket import THROTTLE_MS_MAX


class SampledRate:
    """Values of one sensor. Times are milliseconds of one monotonic clock and never fall."""

    __slots__ = ("_least_ms", "_newest", "_newest_end_ms", "_sample_count", "_samples", "_total", "_window_ms")

    def __init__(self, *, sample_count: int, window_ms: int) -> None:
        """Kafka's `quota.window.num`, and `quota.window.size.seconds` in milliseconds."""
        self._sample_count = sample_count
        self._window_ms = window_ms
        self._least_ms = (sample_count - 1) * window_ms
        # Each sample: when it began, when its last value came, the sum of its values.
        self._samples: deque[list[float]] = deque()
        self._newest: list[float] = []
        self._newest_end_ms = 0
        # Of all samples, those that have become too old since the newest began among them.
        self._total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        """Counts a value; one that is negative takes back what was counted before."""
        if now_ms < self._newest_end_ms:
            newest = self._newest
            newest[1] = now_ms
            newest[2] += value
            self._total += value
        else:
            self._begin_sample(value, now_ms)

    def rate(self, now_ms: int) -> float:
        """Values a second."""
        window_ms = self.window_ms(now_ms)
        return self._total * 1000 / window_ms

    def window_ms(self, now_ms: int) -> int:
        """The time by which the values are divided: 1 at least."""
        self._forget_old(now_ms)
        samples = self._samples
        if not samples:
            return max(self._least_ms, 1)
        elapsed_ms = now_ms - int(samples[0][0])
        whole_count = elapsed_ms // self._window_ms
        if whole_count < self._sample_count - 1:
            elapsed_ms += (self._sample_count - 1 - whole_count) * self._window_ms
        return max(elapsed_ms, 1)

    def throttle_time_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing may be recorded until the rate is `bound`; 0 when it is not above.

        With R measured over a window of W milliseconds, R × W ÷ (W + X) is the bound after X = (R ÷ bound - 1) × W.
        """
        window_ms = self.window_ms(now_ms)
        rate = self._total * 1000 / window_ms
        if rate <= bound:
            return 0
        if bound <= 0:
            return THROTTLE_MS_MAX
        return min(int((rate - bound) / bound * window_ms + 0.5), THROTTLE_MS_MAX)

    def _begin_sample(self, value: float, now_ms: int) -> None:
        self._forget_old(now_ms)
        self._newest = [now_ms, now_ms, value]
        self._newest_end_ms = now_ms + self._window_ms
        self._samples.append(self._newest)
        self._total += value

    def _forget_old(self, now_ms: int) -> None:
        samples = self._samples
        kept_ms = self._sample_count * self._window_ms
        while samples and now_ms - samples[0][1] >= kept_ms:
            self._total -= samples.popleft()[2]
        if not samples:
            # Sums of fractions leave a rest behind.
            self._total = 0.0
            self._newest_end_ms = now_ms
