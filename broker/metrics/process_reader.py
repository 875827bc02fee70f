"""The event loop and garbage collection of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ... import __version__
from ..timing.rules.duration_histogram import longest_s
from .loop_watch import LoopWatch
from .rules import process_metrics as metrics
from .rules import traffic_metrics
from .rules.metric import Reading, read, summary_of
from .rules.readings import Readings
from .rules.traffic_metrics import PROCESSOR


class ProcessReader:
    def __init__(self, watch: LoopWatch, node_id: int) -> None:
        self._watch = watch
        self._node_id = node_id

    def __call__(self) -> Readings:
        watch = self._watch
        now_ms = watch.now_ms()
        yield Reading(metrics.BUILD_INFO, [((__version__, str(self._node_id)), 1)])
        for metric, longest, histogram in (
            (metrics.LOOP_LAG, metrics.LOOP_LAG_MAX, watch.lags),
            (metrics.TURN_LENGTH, metrics.TURN_LENGTH_MAX, watch.turns),
            (metrics.GARBAGE_PAUSES, metrics.GARBAGE_PAUSE_MAX, watch.garbage_pauses),
        ):
            yield read(metric, summary_of([histogram], now_ms, unit=1.0))
            yield read(longest, longest_s(histogram.recent(now_ms)))
        idle = watch.idle_ratio()
        yield read(traffic_metrics.PROCESSOR_IDLE, idle)
        yield Reading(traffic_metrics.PROCESSOR_IDLE_EACH, [((PROCESSOR,), idle)])
        yield read(traffic_metrics.PROCESSOR_IDLE_PERCENT, idle)
        yield read(traffic_metrics.HANDLER_IDLE_PERCENT, idle)


class CertificateReader:
    """How long the certificates of listeners are valid."""

    def __init__(self, expiries: Callable[[], Mapping[str, int]]) -> None:
        """`expiries`: seconds since 1970, by listener name."""
        self._expiries = expiries

    def __call__(self) -> Readings:
        yield Reading(metrics.CERTIFICATE_EXPIRY, [((name,), expiry) for name, expiry in self._expiries().items()])
