"""The checkers of histories by their names, and those of each workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..histories.operation import Header
from .counters import check_counters
from .exactly_once import check_exactly_once
from .finding import Checker
from .group_auto_commit import check_group
from .idempotence import check_idempotence
from .list_append import check_list_append
from .liveness import check_liveness
from .metadata_operations import check_metadata
from .queue.checker import check_queue
from .registers import check_registers

CHECKERS: Final[Mapping[str, Checker]] = {
    "queue": check_queue,
    "list-append": check_list_append,
    "idempotent": check_idempotence,
    "exactly-once": check_exactly_once,
    "group-auto-commit": check_group,
    "register": check_registers,
    "counter": check_counters,
    "metadata": check_metadata,
    "liveness": check_liveness,
}
# Of every workload.
_ALWAYS: Final = ("liveness",)

_OF_WORKLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue": ("queue",),
    "queue-java": ("queue",),
    "queue-subscribe": ("queue",),
    "queue-transactions": ("queue",),
    "queue-transactions-subscribe": ("queue",),
    "list-append": ("list-append",),
    "idempotent": ("queue", "idempotent"),
    "exactly-once": ("exactly-once",),
    "group-auto-commit": ("group-auto-commit",),
    "register": ("register",),
    "counter": ("counter",),
    "metadata": ("metadata",),
}


def checkers_of(header: Header) -> Mapping[str, Checker]:
    """Those that judge a history with this header. Raises LookupError for a workload that has none."""
    names = _OF_WORKLOADS.get(header.workload)
    if names is None:
        known = ", ".join(sorted(_OF_WORKLOADS))
        raise LookupError(f"no checker knows histories of the workload {header.workload!r} (known are: {known})")
    return {name: CHECKERS[name] for name in (*names, *_ALWAYS)}
