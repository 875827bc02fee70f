"""How far behind consumers were: how long ago the newest that a process had read was certainly not the newest any more.

A lower bound, as of the time at which a poll began. Source: jepsen.tests.kafka, realtime-lag.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final

from .columns import ASSIGN, FAIL, NONE, OK, POLL, SUBSCRIBE, TXN, QueueColumns

_POINTS: Final = 300


def realtime_lag(columns: QueueColumns) -> Mapping[str, Any]:
    """`worst`: time, process, key and lag of the worst poll; `series`: of each key the worst lag in each slot of
    `times`. All in ns."""
    known = _KnownOffsets(columns)
    width = max(columns.completed_ns, default=0) // _POINTS + 1
    slots = [[0] * (_POINTS + 1) for _ in columns.keys]
    positions: list[dict[int, int]] = [{} for _ in columns.process_names]
    worst = (0, 0, NONE, NONE)
    for operation in range(len(columns)):
        kind = columns.function[operation]
        if columns.outcome[operation] != OK:
            continue
        one = columns.process[operation]
        if kind in (ASSIGN, SUBSCRIBE):
            # It may begin at the end of a log: nothing is said of a key before something of it was read.
            positions[one] = {}
        elif kind in (POLL, TXN):
            position = positions[one]
            for key, offset in _offsets(columns, operation):
                if offset > position.get(key, NONE):
                    position[key] = offset
            began = columns.invoked_ns[operation]
            for key, offset in position.items():
                lag = began - known.time_beyond(key, offset, began)
                if lag > 0:
                    slots[key][began // width] = max(slots[key][began // width], lag)
                    if lag > worst[0]:
                        worst = lag, began, one, key
    lag, time, process, key = worst
    return {
        "worst": {"lag": lag, "time": time}
        | ({"process": columns.process_names[process], "key": columns.keys[key]} if key != NONE else {}),
        "times": [width * slot for slot in range(_POINTS + 1)],
        "series": dict(zip(columns.keys, slots, strict=True)),
    }


class _KnownOffsets:
    """When which offset of a key was known to exist: only what was higher than all before, so both columns ascend."""

    def __init__(self, columns: QueueColumns) -> None:
        self._offsets = [array("q") for _ in columns.keys]
        self._times = [array("q") for _ in columns.keys]
        for operation in range(len(columns)):
            if columns.outcome[operation] == FAIL:
                continue
            for key, offset in _offsets(columns, operation):
                offsets = self._offsets[key]
                if offset != NONE and (not offsets or offset > offsets[-1]):
                    offsets.append(offset)
                    self._times[key].append(columns.completed_ns[operation])

    def time_beyond(self, key: int, offset: int, otherwise: int) -> int:
        """The first time at which an offset above `offset` was known, or `otherwise`."""
        at = bisect_left(self._offsets[key], offset + 1)
        return self._times[key][at] if at < len(self._offsets[key]) else otherwise


def _offsets(columns: QueueColumns, operation: int) -> list[tuple[int, int]]:
    """Keys and offsets that an operation sent to or read, in order."""
    key_of = columns.key_of
    start, end = columns.first_read[operation], columns.first_read[operation + 1]
    sent = [(key_of[columns.send_value[send]], columns.send_offset[send]) for send in columns.sends(operation)]
    if start == end:
        return sent
    offsets = columns.read_offset
    return sent + [(key_of[columns.read_value[read]], offsets[read]) for read in range(start, end)]
