"""A rate over the last samples, and how long it takes to fall to a bound. Kafka: `Rate`, `SampledStat`, `QuotaUtils`.

With N samples of W milliseconds (`quota.window.num`, `quota.window.size.seconds`) a value counts for N × W after the
last one of its sample. What counts is divided by the time since the oldest sample began, and by N - 1 whole samples at
least: a client that begins to send may send at once what its quota allows in that time.

                 oldest sample                       newest
    |------W------|------W------|--- … ---|------W------|--…   now
    ^ from here the window is measured                      ^ to here
"""

from __future__ import annotations

from .token_bucket import THROTTLE_MS_MAX


class SampledRate:
    """Values of one sensor. Times are milliseconds of one monotonic clock and never fall."""

    __slots__ = (
        "_kept_ms",
        "_least_ms",
        "_newest_end_ms",
        "_newest_last_ms",
        "_newest_start_ms",
        "_newest_total",
        "_older",
        "_older_total",
        "_sample_count",
        "_window_ms",
    )

    def __init__(self, *, sample_count: int, window_ms: int) -> None:
        """Kafka's `quota.window.num`, and `quota.window.size.seconds` in milliseconds."""
        self._sample_count = sample_count
        self._window_ms = window_ms
        self._least_ms = (sample_count - 1) * window_ms
        self._kept_ms = sample_count * window_ms
        # The newest sample: when it began (None: there is no sample), when its last value came, the sum of its values.
        self._newest_start_ms: int | None = None
        self._newest_last_ms = 0
        self._newest_total: float = 0
        # A value from then on begins another one.
        self._newest_end_ms = 0
        # The same of those before, the oldest first. Those that have become too old since are among them.
        self._older: list[tuple[int, int, float]] = []
        self._older_total: float = 0

    def record(self, value: float, now_ms: int) -> None:
        """Counts a value; one that is negative takes back what was counted before."""
        if now_ms < self._newest_end_ms:
            self._newest_last_ms = now_ms
            self._newest_total += value
        else:
            self._begin_sample(value, now_ms)

    def rate(self, now_ms: int) -> float:
        """Values a second."""
        window_ms = self.window_ms(now_ms)
        return self.total * 1000 / window_ms

    @property
    def total(self) -> float:
        """The sum of all samples, as of when one of them was last looked at."""
        return self._older_total + self._newest_total

    def window_ms(self, now_ms: int) -> int:
        """The time by which the values are divided: 1 at least."""
        self._forget_old(now_ms)
        start_ms = self._older[0][0] if self._older else self._newest_start_ms
        if start_ms is None:
            return max(self._least_ms, 1)
        elapsed_ms = now_ms - start_ms
        whole_count = elapsed_ms // self._window_ms
        if whole_count < self._sample_count - 1:
            elapsed_ms += (self._sample_count - 1 - whole_count) * self._window_ms
        return max(elapsed_ms, 1)

    def throttle_time_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing may be recorded until the rate is `bound`; 0 when it is not above.

        With R measured over a window of W milliseconds, R × W ÷ (W + X) is the bound after X = (R ÷ bound - 1) × W.
        """
        window_ms = self.window_ms(now_ms)
        rate = self.total * 1000 / window_ms
        if rate <= bound:
            return 0
        if bound <= 0:
            return THROTTLE_MS_MAX
        return min(int((rate - bound) / bound * window_ms + 0.5), THROTTLE_MS_MAX)

    def _begin_sample(self, value: float, now_ms: int) -> None:
        # For a client that is slow, it is on the path of each request.
        start_ms = self._newest_start_ms
        if start_ms is not None:
            older, total = self._older, self._newest_total
            older.append((start_ms, self._newest_last_ms, total))
            total += self._older_total
            forgotten_ms = now_ms - self._kept_ms
            while older and older[0][1] <= forgotten_ms:
                total -= older.pop(0)[2]
            # Sums of fractions leave a rest behind.
            self._older_total = total if older else 0
        self._newest_start_ms = self._newest_last_ms = now_ms
        self._newest_end_ms = now_ms + self._window_ms
        self._newest_total = value

    def _forget_old(self, now_ms: int) -> None:
        older = self._older
        forgotten_ms = now_ms - self._kept_ms
        while older and older[0][1] <= forgotten_ms:
            self._older_total -= older.pop(0)[2]
        if not older:
            self._older_total = 0
            if self._newest_start_ms is not None and self._newest_last_ms <= forgotten_ms:
                self._newest_start_ms = None
                self._newest_total = 0
                self._newest_end_ms = now_ms
