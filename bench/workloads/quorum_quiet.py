"""A cluster that is left alone, idle or on a machine that others use up: its quorum must keep its leader."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ...client import clock
from ..pauses import slowest_answer
from ..quorum_state import cluster_pids, quorum_state, wait_settled
from ..target import Target
from ..usage import measured

_LOOK_S: Final = 5.0
_SPIN: Final = "while True: pass"
_MILLISECONDS: Final = 1000


def quorum_quiet(target: Target, *, minutes: float, is_busy: bool) -> Mapping[str, float | None]:
    """Look on for so long. `is_busy`: beside as many processes that only compute as there are processors."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}) as cluster:
        cluster.start()
        nodes = tuple(cluster.nodes.values())
        first_epoch = epoch = wait_settled(cluster).epoch
        end_s = clock.monotonic_s() + 60 * minutes
        spinning = _spinning(os.cpu_count() or 1 if is_busy else 0)
        with measured(cluster_pids(cluster)) as usage, spinning, slowest_answer(nodes) as slowest:
            while clock.monotonic_s() < end_s:
                clock.pause(min(_LOOK_S, max(0.0, end_s - clock.monotonic_s())))
                for node in nodes:
                    state = quorum_state(node)
                    epoch = epoch if state is None else max(epoch, state.epoch)
    return {
        "minutes": minutes,
        "elections": float(epoch - first_epoch),
        "others_cores": usage.others_cores,
        "quiet_slowest_ms": slowest.seconds * _MILLISECONDS,
    }


@contextmanager
def _spinning(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
