"""Requests and connections. Kafka: `RequestChannel.Metrics`, `SocketServer`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode
from ...protocol.own_apis import api_name
from ..network.connection_host import Authentication
from ..network.dispatch import Dispatcher
from ..network.listeners import Listeners
from ..network.rules.request_statistics import RequestStatistics, RequestTimes
from .rules import traffic_metrics as metrics
from .rules.metric import Reading, read, summary_of
from .rules.readings import WALKED_PER_TURN, Readings
from .rules.traffic_metrics import PROCESSOR

STAGES: Final = (
    metrics.QUEUE_TIME,
    metrics.LOCAL_TIME,
    metrics.REMOTE_TIME,
    metrics.SEND_TIME,
    metrics.TOTAL_TIME,
)
"""In the order of `request_statistics.STAGES`."""
FETCH_OF_NODE: Final = "FetchFollower"
FETCH_OF_CLIENT: Final = "FetchConsumer"
AUTHENTICATIONS: Final = (
    (Authentication(is_successful=True, is_renewal=False), metrics.AUTHENTICATIONS_SUCCESSFUL),
    (Authentication(is_successful=False, is_renewal=False), metrics.AUTHENTICATIONS_FAILED),
    (Authentication(is_successful=True, is_renewal=True), metrics.REAUTHENTICATIONS_SUCCESSFUL),
    (Authentication(is_successful=False, is_renewal=True), metrics.REAUTHENTICATIONS_FAILED),
)
SOFTWARE_MAX: Final = 100
"""Names and versions of client software, which clients choose, with series of their own; others are OTHER_SOFTWARE."""
OTHER_SOFTWARE: Final = "other"
UNKNOWN_SOFTWARE: Final = "unknown"


class RequestReader:
    """Of the listeners of a node: those of its broker, of its controller, or both."""

    def __init__(self, statistics: Sequence[RequestStatistics], now_ms: Callable[[], int]) -> None:
        self._statistics = statistics
        self._now_ms = now_ms

    def __call__(self) -> Readings:
        counts: Counter[tuple[str, ...]] = Counter()
        errors: Counter[tuple[str, ...]] = Counter()
        times: defaultdict[str, list[RequestTimes]] = defaultdict(list)
        for one in self._statistics:
            for kind in one.kinds.values():
                for name in names_of(kind.api_key, is_of_node=kind.is_of_node):
                    counts[name, str(kind.api_version)] += kind.count
            for (api_key, error), count in one.errors.items():
                errors[api_name(api_key), ErrorCode(error).name] += count
            for (api_key, is_of_node), stages in one.times.items():
                for name in names_of(api_key, is_of_node=is_of_node):
                    times[name].append(stages)
        yield Reading(metrics.REQUEST_COUNT, list(counts.items()))
        yield Reading(metrics.REQUEST_ERRORS, list(errors.items()))
        now_ms = self._now_ms()
        for number, metric in enumerate(STAGES):
            yield None
            yield Reading(
                metric,
                [
                    ((name,), summary_of([stages.histograms[number] for stages in parts], now_ms))
                    for name, parts in times.items()
                ],
            )


class ConnectionReader:
    def __init__(self, listeners: Sequence[Listeners], dispatchers: Sequence[Dispatcher]) -> None:
        self._listeners = listeners
        self._dispatchers = dispatchers

    def __call__(self) -> Readings:
        all_of_them = [listeners.statistics() for listeners in self._listeners]
        opened: Counter[str] = Counter()
        present: Counter[str] = Counter()
        for one in all_of_them:
            opened.update(one.opened_by_listener)
            present.update(one.open_by_listener)
        yield Reading(metrics.CONNECTION_COUNT, [((name, PROCESSOR), present[name]) for name in opened])
        yield Reading(metrics.CONNECTIONS_OPENED, [((name, PROCESSOR), count) for name, count in opened.items()])
        yield Reading(
            metrics.CONNECTIONS_CLOSED, [((name, PROCESSOR), count - present[name]) for name, count in opened.items()]
        )
        authentications: Counter[tuple[str, Authentication]] = Counter()
        for one in all_of_them:
            authentications.update(one.authentications)
        for kind, metric in AUTHENTICATIONS:
            counts = [(name, count) for (name, found), count in authentications.items() if found == kind]
            yield Reading(metric, [((name, PROCESSOR), count) for name, count in counts])
        yield from self._read_software()
        yield read(metrics.EXPIRED_CONNECTIONS, sum(one.sessions_expired for one in all_of_them))
        yield read(metrics.CONNECTIONS_IDLE_CLOSED, sum(one.connections_idle_closed for one in all_of_them))
        yield read(metrics.CONNECTIONS_REFUSED, sum(one.connections_refused for one in all_of_them))
        yield read(metrics.CONNECTIONS_THROTTLED, sum(one.connections_throttled for one in all_of_them))
        yield read(metrics.CONNECTIONS_FAILED, sum(one.connections_failed for one in all_of_them))
        yield read(metrics.NETWORK_BYTES_IN, sum(one.bytes_in for one in all_of_them))
        yield read(metrics.NETWORK_BYTES_OUT, sum(one.bytes_out for one in all_of_them))
        used = sum(one.request_memory_bytes for one in all_of_them)
        yield read(metrics.MEMORY_USED, used)
        yield read(metrics.MEMORY_AVAILABLE, sum(one.request_memory_limit_bytes for one in all_of_them) - used)
        yield read(metrics.UNEXPECTED_ERRORS, sum(one.unexpected_errors for one in self._dispatchers))

    def _read_software(self) -> Readings:
        counts: Counter[tuple[str, ...]] = Counter()
        known: set[tuple[str, str]] = set()
        walked = 0
        for listeners in self._listeners:
            for listener_name, software in listeners.client_software():
                walked += 1
                if walked % WALKED_PER_TURN == 0:
                    yield None
                name, _, version = software.partition("/")
                labels = name, version or UNKNOWN_SOFTWARE
                if labels not in known:
                    if len(known) < SOFTWARE_MAX:
                        known.add(labels)
                    else:
                        labels = OTHER_SOFTWARE, OTHER_SOFTWARE
                counts[(*labels, listener_name, PROCESSOR)] += 1
        yield Reading(metrics.CONNECTIONS_BY_SOFTWARE, list(counts.items()))


def names_of(api_key: int, *, is_of_node: bool) -> tuple[str, ...]:
    """As Kafka's label `request` has them: fetch requests are told twice."""
    if api_key == ApiKey.FETCH:
        return api_name(api_key), FETCH_OF_NODE if is_of_node else FETCH_OF_CLIENT
    return (api_name(api_key),)
