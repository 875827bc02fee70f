"""The checkers of histories by their names, and those of each workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..histories.operation import Header
from .finding import Checker
from .queue.checker import check_queue

CHECKERS: Final[Mapping[str, Checker]] = {"queue": check_queue}

_OF_WORKLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue": ("queue",),
    "queue-subscribe": ("queue",),
    "queue-transactions": ("queue",),
    "queue-transactions-subscribe": ("queue",),
    "idempotent": ("queue",),
}


def checkers_of(header: Header) -> Mapping[str, Checker]:
    """Those that judge a history with this header. Raises LookupError for a workload that has none."""
    names = _OF_WORKLOADS.get(header.workload)
    if names is None:
        known = ", ".join(sorted(_OF_WORKLOADS))
        raise LookupError(f"no checker knows histories of the workload {header.workload!r} (known are: {known})")
    return {name: CHECKERS[name] for name in names}
