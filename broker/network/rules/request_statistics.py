"""Requests by API and version: how many, their times by stages, their errors. Kafka: `RequestMetrics`.

| stage  | from                                         | to                                        |
|--------|----------------------------------------------|-------------------------------------------|
| queue  | its bytes arrived, behind those of others    | its handler begins                        |
| local  | its handler begins                           | the handler returns, or has answered      |
| remote | the handler returned without an answer       | the answer                                |
| send   | the answer                                   | it is handed to the socket, in its turn   |

Every request is counted. While there are many of a kind one of several is timed and stands for all of these, as Kafka's
histograms are samples, too: `adapt` decides how many, from how many came since it was called last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...timing.rules.duration_histogram import DurationHistogram

MANY_PER_S: Final = 200
"""Requests of a kind, from which on one of `SAMPLE_MASK` + 1 is timed: 0.1 % of a core measures all of less."""
SAMPLE_MASK: Final = 15
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

    __slots__ = ("_adapted_count", "api_key", "api_version", "count", "is_of_node", "mask", "times")

    def __init__(self, api_key: int, api_version: int, times: RequestTimes, *, is_of_node: bool) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.is_of_node = is_of_node
        self.times = times
        self.count = 0
        self.mask = 0
        """A request is timed whose number has none of these bits."""
        self._adapted_count = 0

    def adapt(self, elapsed_s: float) -> None:
        is_many = self.count - self._adapted_count > MANY_PER_S * elapsed_s
        self._adapted_count = self.count
        self.mask = SAMPLE_MASK if is_many else 0


class TimedRequest:
    """The times of one request, in nanoseconds of one clock."""

    __slots__ = ("_clock_ns", "_times", "_weight", "answered_ns", "begun_ns", "received_ns", "returned_ns")

    def __init__(self, kind: RequestKind, clock_ns: Callable[[], int], received_ns: int) -> None:
        self._times = kind.times
        self._weight = kind.mask + 1
        self._clock_ns = clock_ns
        self.received_ns = received_ns
        self.begun_ns = clock_ns()
        self.returned_ns = 0
        self.answered_ns = 0

    def on_returned(self) -> None:
        """The handler returned without an answer."""
        self.returned_ns = self._clock_ns()

    def on_answered(self) -> None:
        self.answered_ns = self._clock_ns()

    def on_sent(self) -> None:
        now_ns = self._clock_ns()
        times, weight, answered_ns = self._times, self._weight, self.answered_ns
        returned_ns = self.returned_ns or answered_ns
        times.queue.add(self.begun_ns - self.received_ns, weight)
        times.local.add(returned_ns - self.begun_ns, weight)
        times.remote.add(answered_ns - returned_ns, weight)
        times.send.add(now_ns - answered_ns, weight)
        times.total.add(now_ns - self.received_ns, weight)


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
