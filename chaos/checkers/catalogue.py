"""The checkers of histories by their names, and those of each workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..histories.operation import Header
from .finding import Checker
from .list_append import check_list_append
from .queue.checker import check_queue

CHECKERS: Final[Mapping[str, Checker]] = {"queue": check_queue, "list-append": check_list_append}

_OF_WORKLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue": ("queue",),
    "queue-subscribe": ("queue",),
    "queue-transactions": ("queue",),
    "queue-transactions-subscribe": ("queue",),
    "idempotent": ("queue",),
    "list-append": ("list-append",),
}


def checkers_of(header: Header) -> Mapping[str, Checker]:
    """Those that judge a history with this header. Raises LookupError for a workload that has none."""
    names = _OF_WORKLOADS.get(header.workload)
    if names is None:
        known = ", ".join(sorted(_OF_WORKLOADS))
        raise LookupError(f"no checker knows histories of the workload {header.workload!r} (known are: {known})")
    return {name: CHECKERS[name] for name in names}
