"""One run of an application and its cluster from one seed: the cluster starts, the scenario runs, the world ends."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

from msgspec import Struct

from ....local.errors import ClusterError
from ...testing.broker_properties import DEFAULTS, text_of
from ..cluster.loop import new_loop
from ..cluster.machine import Machine
from ..cluster.network import Network
from ..cluster.process import Process, current_process
from ..cluster.trace_log import TraceLog, without_addresses
from ..cluster.world import World
from .simulated_cluster import SimulatedCluster
from .turns import Turns

T = TypeVar("T")

LIMIT_S: Final = 7200.0
"""Of virtual time, that a scenario lasts at most unless it says otherwise."""
NODES_MAX: Final = 9
_APPLICATION_HOST: Final = "10.0.1.1"
_OBSERVER_HOST: Final = "10.0.3.1"
# Of what clusters of tests have in common: waiting costs no time here, so this one has Kafka's own times.
_COUNTS: Final = {key: value for key, value in DEFAULTS.items() if key.endswith(".num.partitions")}
_ASYNCIO: Final = str(Path(asyncio.__file__).parent)
_STORY_LINES_MAX: Final = 200
# Of every request and its answer, and of each thing that went as it should.
_NO_STORY: Final = (" arrive ", " connect ", " INFO ")


class SimulationOptions(Struct, frozen=True, kw_only=True):
    """`nodes` are controllers and brokers; `config` are broker properties of Kafka. Raises ClusterError."""

    nodes: int = 3
    config: Mapping[str, object] | None = None
    limit_s: float = LIMIT_S

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= NODES_MAX:
            raise ClusterError(f"nodes is a number from 1 to {NODES_MAX}: found {self.nodes}")

    @property
    def properties(self) -> dict[str, str]:
        return {**_COUNTS, **{key: text_of(value) for key, value in (self.config or {}).items()}}


class ApplicationRun:
    """`story` and `trace_hash` are there afterwards, too, when `run` has raised what the scenario raised."""

    def __init__(
        self, world: World, seed: int, options: SimulationOptions, *, trace: Callable[[str], None] | None = None
    ) -> None:
        """The world is that of the interpreter; `trace` gets every line."""
        world.seed(seed)
        random = Random(f"application {seed}")
        self._hash = sha256()
        self._write_line = trace
        self._lines: deque[str] = deque(maxlen=_STORY_LINES_MAX)
        self._failures: list[str] = []
        self._options = options
        self._loop = loop = new_loop(Random(random.getrandbits(64)))
        world.loop_s = loop.time
        loop.network = Network(loop, Random(random.getrandbits(64)), self._trace)
        loop.on_exception = self._on_exception
        ids = tuple(range(1, options.nodes + 1))
        self._machines = {
            node_id: Machine(
                node_id, ids, options.properties,
                loop=loop, network=loop.network, wall_clock_ms=world.wall_clock_ms,
                random=Random(random.getrandbits(64)), trace=self._trace, on_failure=self._on_failure,
            )
            for node_id in ids
        }  # fmt: skip
        self._application = Process("application", _APPLICATION_HOST)
        self._log = TraceLog(self._trace)
        self._cluster = SimulatedCluster(
            self._machines, self._application, Process("observer", _OBSERVER_HOST),
            loop=loop, turns=Turns(loop, self._trace), log=self._log, random=random, properties=options.properties,
        )  # fmt: skip

    def run(self, scenario: Callable[[SimulatedCluster], Coroutine[Any, Any, T]]) -> T:
        """Returns what the scenario returns, and raises what it raises; ClusterError when it does not end, or a node
        ends with an exception that none of its code expects."""
        with _logged(self._log):
            for machine in self._machines.values():
                machine.start()
            task = self._application.run(lambda: self._loop.create_task(self._play(scenario)))
            end_s = self._loop.time() + self._options.limit_s
            self._loop.call_at(end_s, _nothing)
            self._loop.run_until(lambda: task.done() or self._loop.time() >= end_s or bool(self._failures))
        for process in self._cluster.processes:
            for name, error in process.lost_exceptions():
                if error is not _error_of(task):
                    self._trace(f"task {name} of {process} ended by {type(error).__name__}: {error}")
        if task.done():
            result: T = task.result()
            return result
        if self._failures:
            raise ClusterError(f"this is a defect of Penstock: {self._failures[0]}")
        raise ClusterError(f"the scenario did not end within {self._options.limit_s:g} s of virtual time{_place(task)}")

    async def _play(self, scenario: Callable[[SimulatedCluster], Coroutine[Any, Any, T]]) -> T:
        await self._cluster.wait_ready()
        return await scenario(self._cluster)

    @property
    def virtual_s(self) -> float:
        return self._loop.time()

    @property
    def trace_hash(self) -> str:
        """Of all that happened: equal runs have equal ones."""
        return self._hash.hexdigest()

    @property
    def story(self) -> str:
        """Faults, starts and ends of nodes, and warnings of nodes and clients; the last ones, where there are many."""
        return "\n".join(self._lines) or "nothing happened"

    def _trace(self, line: str) -> None:
        line = f"{self._loop.time():.6f} {line}"
        self._hash.update(line.encode() + b"\n")
        if not any(part in line for part in _NO_STORY):
            self._lines.append(line)
        if self._write_line is not None:
            self._write_line(line)

    def _on_failure(self, machine: Machine, reason: str) -> None:
        """A node that gives up, as for a disk that fails: the trace has the reason already."""

    def _on_exception(self, context: dict[str, Any]) -> None:
        process, error = current_process(), context.get("exception")
        sentence = without_addresses(f"{process}: {context.get('message')}: {type(error).__name__}: {error}")
        self._trace(f"exception {sentence}")
        if process is not None and process.name.startswith("node-"):
            self._failures.append(sentence)


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


def _place(task: asyncio.Task[Any]) -> str:
    """Where it waits: its innermost coroutine outside of asyncio."""
    place = ""
    coroutine: Any = task.get_coro()
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_ASYNCIO):
            place = f": it waits in {code.co_qualname}, {code.co_filename}:{frame.f_lineno}"
        coroutine = coroutine.cr_await
    return place


@contextmanager
def _logged(log: TraceLog) -> Iterator[None]:
    """Nodes log to the trace alone; what clients warn of goes there, too."""
    nodes, root = logging.getLogger("penstock"), logging.getLogger()
    before = nodes.level, nodes.propagate
    nodes.setLevel(logging.INFO)
    nodes.propagate = False
    nodes.addHandler(log)
    root.addHandler(log)
    try:
        yield
    finally:
        root.removeHandler(log)
        nodes.removeHandler(log)
        nodes.setLevel(before[0])
        nodes.propagate = before[1]


def _nothing() -> None:
    """Time is to come this far."""
