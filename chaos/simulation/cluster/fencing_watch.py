"""Counts brokers that are fenced though nothing is wrong with them: whatever happens to the active controller.

A broker is well while its process runs, is not stopped or paused, no link of it is cut or slow, and no request between
nodes is held up. Where it is fenced after it has been well for longer than a session, as has a majority of voters, the
controllers did not take its heartbeats in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ....quorum.metadata.image import MetadataImage
from .machine import Machine
from .network import Network

# What a broker has after a session's beginning: an answer that was under way, and the next heartbeat.
_MARGIN_S: Final = 1.0
# Of the session from which on it must not happen: voters elect a new leader, and brokers find it, well within it.
STRICT_SESSION_MS: Final = 9_000


class FencingWatch:
    """`look` is called several times a second. `count` counts fencings, of which `violations` tells where a session is
    so long that there must be none."""

    def __init__(
        self,
        machines: Iterable[Machine],
        *,
        network: Network,
        session_ms: int,
        image: Callable[[], MetadataImage | None],
        now_s: Callable[[], float],
        is_held_up: Callable[[], bool],
    ) -> None:
        self.count = 0
        self.violations: list[str] = []
        self._machines = tuple(machines)
        self._network = network
        self._session_ms = session_ms
        self._image = image
        self._now_s = now_s
        self._is_held_up = is_held_up
        self._well_since_s: dict[int, float] = {}
        self._majority_since_s: float | None = None
        self._unfenced: dict[int, int] = {}
        """Epochs of brokers that were not fenced when last looked at."""

    def look(self) -> None:
        now_s = self._now_s()
        touched = {host for link in (*self._network.cuts, *self._network.slow) for host in link}
        is_held_up = self._is_held_up()
        for machine in self._machines:
            if self._is_well(machine) and machine.host not in touched and not is_held_up:
                self._well_since_s.setdefault(machine.node_id, now_s)
            else:
                self._well_since_s.pop(machine.node_id, None)
        voters = [machine for machine in self._machines if machine.is_voter]
        if 2 * sum(machine.node_id in self._well_since_s for machine in voters) <= len(voters):
            self._majority_since_s = None
        elif self._majority_since_s is None:
            self._majority_since_s = now_s
        self._look_at_brokers(now_s)

    def _is_well(self, machine: Machine) -> bool:
        return (
            machine.is_ready and not machine.is_stopping and not machine.is_paused and machine.clock_offset_ms == 0
        )  # fmt: skip

    def _look_at_brokers(self, now_s: float) -> None:
        image = self._image()
        if image is None:
            return
        since_s = now_s - self._session_ms / 1000 - _MARGIN_S
        for machine in self._machines:
            broker = image.brokers.get(machine.node_id)
            if broker is None or machine.is_voter:
                continue
            epoch = self._unfenced.pop(machine.node_id, None)
            if not broker.is_fenced:
                self._unfenced[machine.node_id] = broker.epoch
            elif epoch == broker.epoch and not broker.in_controlled_shutdown:
                is_well = self._well_since_s.get(machine.node_id, now_s) < since_s
                if is_well and self._majority_since_s is not None and self._majority_since_s < since_s:
                    self._count(machine.node_id, now_s)

    def _count(self, node_id: int, now_s: float) -> None:
        self.count += 1
        if self._session_ms >= STRICT_SESSION_MS:
            self.violations.append(
                f"FENCED: broker {node_id} was fenced at {now_s:.3f} s, though it and a majority of voters were well "
                f"for longer than a session of {self._session_ms} ms"
            )
