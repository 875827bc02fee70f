"""A crowd of Kafka clients beside HTTP clients that do not behave: what these add to the time of a record.

The crowd is that of `crowd`, at a fresh node, without and with the others, in turn; they are a process of their own.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection
from statistics import median
from typing import Final

from ...local.errors import ClusterError
from ...local.local_node import LocalNode
from ..crowds import HTTP_CROWDS, Crowd, allow_sockets, http_behaviours
from ..target import Target
from ..usage import resident_mib
from .crowd import crowd

_ARRIVAL_S: Final = 60.0
_TICK_S: Final = 1.0


def http_crowd(
    target: Target, *, name: str, clients: int, producers: int, pairs: int, seconds: int
) -> Mapping[str, float | None]:
    """Milliseconds until records of the crowd are acknowledged: medians of the runs' quantiles."""
    with target.fresh_running() as (running, node):
        found: dict[str, list[float]] = {}
        most_mib = 0.0
        for number in range(pairs):
            for is_beside in (False, True) if number % 2 else (True, False):
                with misbehaving(node, name) if is_beside else nullcontext():
                    values = crowd(running, clients=clients, producers=producers, readers=0, seconds=seconds)
                    if is_beside:
                        most_mib = max(most_mib, resident_mib(running.pids))
                for quantile in ("p50", "p99"):
                    value = values[f"crowd_acknowledged_{quantile}_ms"]
                    assert value is not None, "records were acknowledged"
                    found.setdefault(f"{'beside' if is_beside else 'alone'}_{quantile}_ms", []).append(value)
    medians = {measure: median(values) for measure, values in found.items()}
    return {**medians, "beside_p99_ratio": medians["beside_p99_ms"] / medians["alone_p99_ms"], "crowd_mib": most_mib}


@contextmanager
def misbehaving(node: LocalNode, name: str) -> Iterator[None]:
    """That crowd of HTTP clients is connected to the node meanwhile."""
    assert node.admin_port is not None, "only asked of nodes that have HTTP"
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_misbehave, args=(node.host, node.admin_port, name, there), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(_ARRIVAL_S):
            raise ClusterError(f"the crowd {name} did not arrive in {_ARRIVAL_S:.0f} s")
        try:
            here.recv()
        except EOFError:
            raise ClusterError(f"the crowd {name} was not let in") from None
        yield
    finally:
        here.close()
        process.join()


def _misbehave(host: str, port: int, name: str, ended: Connection) -> None:
    """Until the other end of the pipe is closed."""
    count = HTTP_CROWDS[name]
    allow_sockets(count)
    with Crowd(host, port, http_behaviours()[name], count, is_http=True) as members:
        members.tick()
        ended.send(None)
        while not ended.poll(_TICK_S):
            members.tick()
