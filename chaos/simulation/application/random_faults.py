"""Faults that the seed draws while an application runs: those of `penstock simulate`, which the cluster survives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from ..cluster.ambushes import Ambushes
from ..cluster.cluster_faults import ClusterFaults
from ..cluster.cluster_state import ClusterState
from ..cluster.delays import Delays
from ..cluster.loop import SimulatedLoop
from ..cluster.machine import Machine
from ..cluster.process import KERNEL, Process
from ..cluster.profiles import Profile
from ..cluster.trace_log import TraceLog
from .newest_metadata import NewestMetadata
from .turns import Turns

_STEP_MAX_S = 0.2


class RandomFaults:
    """From `begin` to `end`. `counts` are the faults so far, by name."""

    def __init__(
        self, profile: Profile, machines: Mapping[int, Machine], applications: Sequence[Process], *,
        loop: SimulatedLoop, turns: Turns, metadata: NewestMetadata, log: TraceLog, random: Random, is_flushed: bool,
        duration_s: float,
    ) -> None:  # fmt: skip
        """`is_flushed`: nodes acknowledge only what is synced, so any may lose its power. After `duration_s` it ends by
        itself."""
        self._loop = loop
        self._turns = turns
        self._random = random
        self._state = state = ClusterState(machines, metadata, metadata.places)
        registrations = [metadata.registration(*place) for place in metadata.places()]
        network = loop.network
        self._faults = faults = ClusterFaults(
            machines, applications,
            loop=loop, network=network, random=Random(random.getrandbits(64)), trace=turns.note,
            is_whole=state.is_whole, has_caught_up=state.has_caught_up, is_flushed=is_flushed,
            is_replicated=all(one is not None and len(one.replicas) > 1 for one in registrations),
            counts=state.counts, may_count=state.may_count, leaders=state.leaders, profile=profile,
            active_controller=lambda: log.active_controller, on_crash_of_all=_nothing,
            has_offline_directory=lambda process: process.name in log.directory_losers,
        )  # fmt: skip
        self._ambushes = Ambushes(
            faults, machines, loop=loop, network=network, random=Random(random.getrandbits(64))
        )  # fmt: skip
        self._delays = Delays(faults, machines, network=network, random=Random(random.getrandbits(64)))
        self._end_s = loop.time() + duration_s
        self._is_over = False

    @property
    def counts(self) -> Counter[str]:
        return self._faults.counts

    @property
    def is_settled(self) -> bool:
        """All nodes run, and every replica is in sync."""
        return self._state.is_whole() and self._faults.is_settled

    def what_is_missing(self) -> str:
        return self._state.what_is_missing()

    def begin(self) -> None:
        self._turns.after_each.append(self._faults.after_turn)
        self._ambushes.begin()
        self._delays.begin()
        self._step()

    def _step(self) -> None:
        if self._loop.time() >= self._end_s:
            self.end()
        if self._is_over:
            self._faults.keep_up()
        elif not self._ambushes.is_alone:
            self._faults.step()
            self._delays.step()
        if not (self._is_over and self.is_settled):
            delay_s = self._random.uniform(0, _STEP_MAX_S)
            self._loop.call_later(delay_s, self._turns.between, self._step, context=KERNEL)

    def end(self) -> None:
        """Heals: nodes that are down come back, later ones after those that they need."""
        if self._is_over:
            return
        self._is_over = True
        self._ambushes.end()
        self._delays.end()
        self._faults.heal_all()

    def forget(self) -> None:
        """Once all is settled."""
        self._turns.after_each.remove(self._faults.after_turn)


def _nothing() -> None:
    """Files are not looked at."""
