"""Requests by API and version: how many, their times by stages, their errors. Kafka: `RequestMetrics`.

| stage  | from                                         | to                                        |
|--------|----------------------------------------------|-------------------------------------------|
| queue  | its bytes arrived, behind those of others    | its handler begins                        |
| local  | its handler begins                           | the handler returns, or has answered      |
| remote | the handler returned without an answer       | the answer                                |
| send   | the answer                                   | it is handed to the socket, in its turn   |

Every request is counted. While there are many of a kind one of several is timed and stands for all of these, as Kafka's
histograms are samples, too: `adapt` decides how many, from how many came since it was called last, and `on_timed` when
a burst comes before it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...timing.rules.duration_histogram import NS_PER_S, DurationHistogram

MANY_PER_S: Final = 200
"""Requests of a kind, from which on one of several is timed: 0.1 % of a core measures all of less."""
FEW_OF: Final = 16
"""Then it is one of so many at least."""
TIMED_PER_S: Final = 100
"""So many of a kind are timed when there are more still: 30,000 in the five minutes of the quantiles."""
BURST_MAX: Final = 32
"""Of a kind, so many are timed before ever fewer are, until it is known how many there are."""
STAGES: Final = ("queue", "local", "remote", "send", "total")
KINDS_MAX: Final = 2048
"""APIs, versions and kinds of client: there are fewer than 1,200, and other versions never get a header."""
VERSION_BITS: Final = 8
OF_NODE: Final = 1 << 24
"""In the key of a kind: the client is another node of the cluster. Fetch requests of followers are told apart so."""


class RequestTimes:
    """The stages of the requests of one API."""

    __slots__ = STAGES

    def __init__(self) -> None:
        self.queue = DurationHistogram()
        self.local = DurationHistogram()
        self.remote = DurationHistogram()
        self.send = DurationHistogram()
        self.total = DurationHistogram()

    @property
    def histograms(self) -> tuple[DurationHistogram, ...]:
        """In the order of `STAGES`."""
        return self.queue, self.local, self.remote, self.send, self.total


class RequestKind:
    """The requests of one API in one version."""

    __slots__ = ("_adapted_count", "_timed_count", "api_key", "api_version", "count", "is_of_node", "mask", "times")

    def __init__(self, api_key: int, api_version: int, times: RequestTimes, *, is_of_node: bool) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.is_of_node = is_of_node
        self.times = times
        self.count = 0
        self.mask = 0
        """A request is timed whose number has none of these bits."""
        self._adapted_count = 0
        self._timed_count = 0

    def on_timed(self) -> None:
        """Another request of this kind is timed."""
        self._timed_count += 1
        if self._timed_count % BURST_MAX == 0:
            self.mask = max(FEW_OF - 1, self.mask << 1 | 1)

    def adapt(self, elapsed_s: float) -> None:
        self._timed_count = 0
        arrived, self._adapted_count = self.count - self._adapted_count, self.count
        if arrived <= MANY_PER_S * elapsed_s:
            self.mask = 0
            return
        one_of = max(FEW_OF, int(arrived / (TIMED_PER_S * elapsed_s)))
        # The power of two below: a mask has no holes.
        self.mask = (1 << one_of.bit_length() - 1) - 1


NO_KIND: Final = RequestKind(-1, -1, RequestTimes(), is_of_node=False)
"""Of no request."""


class RequestTimer:
    """The times of one request, by the clock that tells, in seconds, when it was received."""

    __slots__ = ("_answered_s", "_begun_s", "_clock_s", "_received_s", "_returned_s", "_times", "_weight")

    def __init__(self, kind: RequestKind, clock_s: Callable[[], float], received_s: float) -> None:
        self._times = kind.times
        self._weight = kind.mask + 1
        kind.on_timed()
        self._clock_s = clock_s
        self._received_s = received_s
        self._begun_s = clock_s()
        self._returned_s: float | None = None
        self._answered_s = self._begun_s

    def on_returned(self) -> None:
        """The handler returned without an answer."""
        self._returned_s = self._clock_s()

    def on_answered(self) -> None:
        self._answered_s = self._clock_s()

    def on_sent(self) -> None:
        sent_s = self._clock_s()
        times, weight = self._times, self._weight
        received_s, begun_s, answered_s = self._received_s, self._begun_s, self._answered_s
        returned_s = answered_s if self._returned_s is None else self._returned_s
        times.queue.add(round(NS_PER_S * (begun_s - received_s)), weight)
        times.local.add(round(NS_PER_S * (returned_s - begun_s)), weight)
        times.remote.add(round(NS_PER_S * (answered_s - returned_s)), weight)
        times.send.add(round(NS_PER_S * (sent_s - answered_s)), weight)
        times.total.add(round(NS_PER_S * (sent_s - received_s)), weight)


class RequestStatistics:
    """Of all connections of one kind of listener."""

    def __init__(self) -> None:
        self._kinds: dict[int, RequestKind] = {}
        self._times: dict[tuple[int, bool], RequestTimes] = {}
        self._errors: dict[tuple[int, int], int] = {}

    @property
    def kinds(self) -> Mapping[int, RequestKind]:
        """By `api_key << VERSION_BITS | api_version`, with `OF_NODE` for those of nodes."""
        return self._kinds

    @property
    def count(self) -> int:
        """Requests since start."""
        return sum(kind.count for kind in self._kinds.values())

    @property
    def times(self) -> Mapping[tuple[int, bool], RequestTimes]:
        """By API key, and whether the client is a node."""
        return self._times

    @property
    def errors(self) -> Mapping[tuple[int, int], int]:
        """Errors in responses, by API key and error code, since start."""
        return self._errors

    def add_kind(self, api_key: int, api_version: int, of_node: int) -> RequestKind:
        """`of_node` is `OF_NODE` or 0."""
        times = self._times.setdefault((api_key, bool(of_node)), RequestTimes())
        kind = RequestKind(api_key, api_version, times, is_of_node=bool(of_node))
        if len(self._kinds) < KINDS_MAX:
            self._kinds[api_key << VERSION_BITS | api_version | of_node] = kind
        return kind

    def note_error(self, api_key: int, error_code: int) -> None:
        key = api_key, error_code
        self._errors[key] = self._errors.get(key, 0) + 1

    def adapt(self, elapsed_s: float, now_ms: int) -> None:
        """Called about once a second, with the time since the last call."""
        for kind in self._kinds.values():
            kind.adapt(elapsed_s)
        for times in self._times.values():
            for histogram in times.histograms:
                histogram.rotate(now_ms)
