"""How many cores there are for this process, and those that it starts."""

from __future__ import annotations

import os


def count_cores() -> int:
    """Those that it may run on, by its affinity: a container or `taskset` may leave it some of the machine's.

    A limit of CPU time (cgroup `cpu.max`, `docker run --cpus`) is no affinity: all cores are counted then.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
