"""What a test or a program holds in hand to run an application with its cluster in virtual time.

    Simulation(seed=7).run(scenario)

It works only in an interpreter whose clock and chance are a simulation's: the plugin of pytest starts one for each test
that asks for `penstock_sim`, and `python -m penstock.chaos.simulation.application.program FILE` one for a program.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from ....local.errors import ClusterError
from ..cluster.world import World
from .application_run import LIMIT_S, ApplicationRun, SimulationOptions
from .simulated_cluster import SimulatedCluster

T = TypeVar("T")
Scenario = Callable[[SimulatedCluster], Coroutine[Any, Any, T]]

PROGRAM: Final = "penstock.chaos.simulation.application.program"
# What nodes import while they start: before the first scenario, or it would not be the same run as later ones.
_LOADED_BY_NODES: Final = (
    ".broker.node.controller_listener",
    ".broker.cluster.remote_controller_channel",
    ".broker.node.voter_link",
    ".quorum.links.stream_links",
    ".quorum.decisions.bootstrap",
    ".quorum.metadata.event_derivation",
    ".quorum.metadata.event_ring",
)
_PREPARED: Final = "penstock.chaos.simulation.application.prepared_world"


class Simulation:
    """The same seed and the same scenario give the same run. Each `run` has a new cluster."""

    def __init__(
        self, *, seed: int = 0, nodes: int = 3, config: Mapping[str, object] | None = None, limit_s: float = LIMIT_S,
        trace: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        """`limit_s` is how much virtual time a scenario has; `trace` gets every line. Raises ClusterError."""
        for name in _LOADED_BY_NODES:
            importlib.import_module(name, "penstock")
        self.seed = seed
        self._options = SimulationOptions(nodes=nodes, config=config, limit_s=limit_s)
        self._trace = trace
        self._runs: list[ApplicationRun] = []

    def run(self, scenario: Scenario[T]) -> T:
        """Calls the scenario with a `SimulatedCluster` whose nodes have started. Returns and raises what it does."""
        run = ApplicationRun(_world(), self.seed, self._options, trace=self._trace)
        self._runs.append(run)
        was_enabled = gc.isenabled()
        # What is collected, and when, depends on all that this interpreter did before.
        gc.disable()
        try:
            return run.run(scenario)
        finally:
            # Tasks that did not end are no news: their world is no more.
            gc.freeze()
            if was_enabled:
                gc.enable()

    @property
    def trace_hash(self) -> str:
        """Of the last run: equal runs have equal ones."""
        return self._last.trace_hash

    @property
    def virtual_s(self) -> float:
        """How long the last run lasted, in virtual time."""
        return self._last.virtual_s

    @property
    def story(self) -> str:
        """What happened in the runs: faults, starts and ends of nodes, warnings."""
        return "\n".join(run.story for run in self._runs) or "no scenario has been run"

    @property
    def _last(self) -> ApplicationRun:
        if not self._runs:
            raise ClusterError("no scenario has been run")
        return self._runs[-1]


def _world() -> World:
    if _PREPARED not in sys.modules:
        raise ClusterError(
            f"clock and chance of this interpreter are real: start the program by `python -m {PROGRAM} FILE`"
        )
    from .prepared_world import WORLD

    return WORLD
