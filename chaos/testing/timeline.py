"""What happened to a cluster and to its clients during a test, in the order of time: what a failed test shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final

from msgspec import Struct

from ...client import clock
from ...client.admin import Admin, AdminError
from .requests_seen import read_requests

_ANSWER_S: Final = 10.0
_NS_PER_MS: Final = 1_000_000
_LINES_MAX: Final = 200
"""Of one test; the last ones, because a test fails at its end."""


class Moment(Struct, frozen=True, order=True):
    """`time_ns` is of the clock that all processes share; `source` is a node, or what acts on the cluster."""

    time_ns: int
    source: str
    text: str


class Timeline:
    """Since `begin`, which begins it anew."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._moments: list[Moment] = []
        self._start_ns = clock.monotonic_ns()

    def begin(self) -> None:
        with self._mutex:
            self._moments.clear()
            self._start_ns = clock.monotonic_ns()

    def note(self, text: str) -> None:
        with self._mutex:
            self._moments.append(Moment(clock.monotonic_ns(), "test", text))

    def text(self, admins: Iterable[str], request_logs: Mapping[int, Path]) -> str:
        """Faults, changes of leaders as the first node of `admins` that answers tells them, and requests of clients."""
        with self._mutex:
            moments = list(self._moments)
        start_ns = self._start_ns
        moments += _events(admins, start_ns)
        for node_id, path in request_logs.items():
            moments += [
                Moment(seen.time_ns, f"node {node_id}", seen.text)
                for seen in read_requests(path)
                if seen.time_ns >= start_ns
            ]
        return "\n".join(lines_of(sorted(moments), start_ns)) or "nothing happened"


def lines_of(moments: Iterable[Moment], start_ns: int) -> list[str]:
    """Seconds since the start, the source, the text; one line for what was repeated, at most so many lines."""
    lines: list[str] = []
    last: Moment | None = None
    count = 0
    for moment in moments:
        if last is not None and (moment.source, moment.text) == (last.source, last.text):
            count += 1
            lines[-1] = f"{_line(last, start_ns)} (×{count}, until {_seconds(moment, start_ns)})"
            continue
        last, count = moment, 1
        lines.append(_line(moment, start_ns))
    if len(lines) > _LINES_MAX:
        return [f"… {len(lines) - _LINES_MAX} lines before", *lines[-_LINES_MAX:]]
    return lines


def _line(moment: Moment, start_ns: int) -> str:
    return f"{_seconds(moment, start_ns)}  {moment.source:<7} {moment.text}"


def _seconds(moment: Moment, start_ns: int) -> str:
    return f"{(moment.time_ns - start_ns) / 1e9:8.3f}"


def _events(admins: Iterable[str], start_ns: int) -> list[Moment]:
    """Those of the first node that answers; their times are of the wall clock."""
    offset_ns = clock.monotonic_ns() - clock.now_ms() * _NS_PER_MS
    for url in admins:
        try:
            with Admin(url, timeout_s=_ANSWER_S) as admin:
                events = [json.loads(line[5:]) for line in admin.follow_events(follow=False) if line[:5] == b"data:"]
        except AdminError:
            continue
        moments = [Moment(event["timestamp_ms"] * _NS_PER_MS + offset_ns, "cluster", _told(event)) for event in events]
        return [moment for moment in moments if moment.time_ns >= start_ns]
    return []


def _told(event: Mapping[str, Any]) -> str:
    fields = {
        key: value for key, value in event.items() if key not in ("id", "kind", "timestamp_ms") and value is not None
    }
    return " ".join([event["kind"], *(f"{key}={value}" for key, value in fields.items())])
