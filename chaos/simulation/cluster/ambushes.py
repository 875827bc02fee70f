"""Faults that wait for their instant: while one request is in flight, the state that it describes changes.

Faults at random seldom meet the milliseconds in which a node asks for something. An ambush holds up one connection, as
lost segments do that TCP repeats later and later, while all others go on; meanwhile one machine has one misfortune or
more; then the request arrives. One that is held up for longer than its sender waits is sent again by another
connection, so it arrives twice, the first one last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Final, NamedTuple

from ....protocol.apis import ApiKey
from .cluster_faults import ClusterFaults
from .loop import SimulatedLoop
from .machine import BROKER_PORT, CONTROLLER_PORT, Machine
from .network import Network
from .transport import StreamTransport

# How likely a request between nodes is to be held up.
_CHANCES: Final[Mapping[int, float]] = {
    ApiKey.ALTER_PARTITION: 0.4,
    ApiKey.BROKER_REGISTRATION: 0.05,
    ApiKey.BROKER_HEARTBEAT: 0.002,
    ApiKey.FETCH: 0.001,
    ApiKey.ADD_PARTITIONS_TO_TXN: 0.02,
    ApiKey.WRITE_TXN_MARKERS: 0.05,
}
# How likely the node that such a request goes to is to be stopped in good order meanwhile.
_STOP_CHANCES: Final[Mapping[int, float]] = {
    ApiKey.PRODUCE: 0.0005,
    ApiKey.JOIN_GROUP: 0.02,
    ApiKey.SYNC_GROUP: 0.02,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0.001,
    ApiKey.OFFSET_COMMIT: 0.001,
    ApiKey.INIT_PRODUCER_ID: 0.02,
    ApiKey.ADD_PARTITIONS_TO_TXN: 0.003,
    ApiKey.TXN_OFFSET_COMMIT: 0.01,
    ApiKey.END_TXN: 0.01,
    ApiKey.WRITE_TXN_MARKERS: 0.01,
}
# From the request on: it may be under way, be answered, or wait for other nodes.
_STOP_DELAY_MAX_S: Final = 0.02
# Until the node is started again, if it has ended by then.
_STOPPED_MAX_S: Final = 3.0
# For how many seconds: within a restart, within a session, past the time that its sender waits for an answer.
_HOLDS_S: Final = ((0.05, 0.5), (0.5, 3.0), (0.5, 3.0), (4.0, 8.0))
_PORTS: Final = (BROKER_PORT, CONTROLLER_PORT)
# A process that is started again at once.
_DOWN_MAX_S: Final = 0.2

# How long the world stays another one, after the request has arrived.
_LONGER_MAX_S: Final = 0.5


class _Ambush(NamedTuple):
    victim: Machine
    sender: Machine
    receiver: Machine
    hold_s: float


class Ambushes:
    """One at a time. `begin` comes first."""

    def __init__(
        self,
        faults: ClusterFaults,
        machines: Mapping[int, Machine],
        *,
        loop: SimulatedLoop,
        network: Network,
        random: Random,
    ) -> None:
        self._faults = faults
        self._machines = {machine.host: machine for machine in machines.values()}
        self._loop = loop
        self._network = network
        self._random = random
        self._end_s = 0.0
        self._has_company = True

    def begin(self) -> None:
        self._network.hold_up = self._hold_up

    def end(self) -> None:
        """What is held up arrives when it does."""
        self._network.hold_up = None
        self._end_s = 0.0

    @property
    def is_under_way(self) -> bool:
        return self._loop.time() < self._end_s

    @property
    def is_alone(self) -> bool:
        """Nothing else is to go wrong now."""
        return self.is_under_way and not self._has_company

    def _hold_up(self, end: StreamTransport, data: bytes) -> float:
        key = int.from_bytes(data[4:6], "big")
        if key not in _CHANCES and key not in _STOP_CHANCES:
            return 0.0
        sender, receiver = self._machines.get(end.process.host), self._machines.get(end.peer[0])
        # Answers have no key: what they have there may look like one.
        if receiver is None or sender is receiver or end.peer[1] not in _PORTS:
            return 0.0
        if self._random.random() < _STOP_CHANCES.get(key, 0.0) * self._weight("stop-under-way"):
            self._stop_under_way(ApiKey(key), receiver)
        chance = _CHANCES.get(key, 0.0) * self._weight("ambush")
        if not chance or sender is None or self.is_under_way or self._random.random() >= chance:
            return 0.0
        return self._spring(ApiKey(key), sender, receiver)

    def _weight(self, kind: str) -> float:
        return self._faults.profile.weight(kind)

    def _stop_under_way(self, key: ApiKey, receiver: Machine) -> None:
        """The node that the request goes to ends in good order while it answers, and is started again."""

        def stop() -> None:
            if self._faults.stop(receiver):
                self._faults.note("stop under way", key.name, receiver.node_id)
                self._faults.later(self._random.uniform(0, _STOPPED_MAX_S), partial(self._faults.start, receiver))

        self._faults.later(self._random.uniform(0, _STOP_DELAY_MAX_S), stop)

    def _spring(self, key: ApiKey, sender: Machine, receiver: Machine) -> float:
        random = self._random
        hold_s = random.uniform(*random.choice(_HOLDS_S))
        self._end_s = self._loop.time() + hold_s
        self._has_company = random.random() < 0.5
        others = [machine for machine in self._machines.values() if machine not in (sender, receiver)]
        victim = random.choice(others if others and random.random() < 0.7 else list(self._machines.values()))
        self._faults.note("ambush", key.name, sender.node_id, receiver.node_id, f"{hold_s:.3f}")
        plan = random.choice((self._replace, self._leave_behind, self._take_away, self._mix))
        plan(_Ambush(victim=victim, sender=sender, receiver=receiver, hold_s=hold_s))
        return hold_s

    # What becomes untrue.

    def _replace(self, ambush: _Ambush) -> None:
        """The victim is another process when the request arrives, and the sender does not know that one."""
        self._part(ambush.victim, ambush.sender, ambush.hold_s + self._random.uniform(0, _LONGER_MAX_S))
        self._faults.later(0.0, partial(self._restart, ambush.victim))

    def _leave_behind(self, ambush: _Ambush) -> None:
        """The sender gets nothing from the victim any more."""
        self._part(ambush.victim, ambush.sender, ambush.hold_s + self._random.uniform(0, _LONGER_MAX_S))

    def _take_away(self, ambush: _Ambush) -> None:
        """The receiver, and perhaps the sender, believes the victim gone, and it is back when the request arrives."""
        away_s = ambush.hold_s * self._random.uniform(0.5, 0.9)
        self._part(ambush.victim, ambush.receiver, away_s)
        if self._random.random() < 0.5:
            self._part(ambush.victim, ambush.sender, ambush.hold_s + self._random.uniform(0, _LONGER_MAX_S))

    def _mix(self, ambush: _Ambush) -> None:
        """One or more, at any time."""
        random, victim = self._random, ambush.victim
        misfortunes: list[Callable[[float], None]] = [
            lambda _: self._restart(victim),
            lambda duration_s: self._pause(victim, duration_s),
            lambda duration_s: self._part(victim, ambush.sender, duration_s),
            lambda duration_s: self._part(victim, ambush.receiver, duration_s),
        ]
        for misfortune in random.sample(misfortunes, random.choice((1, 2, 2, 3))):
            at_s = random.uniform(0, ambush.hold_s)
            self._faults.later(at_s, partial(misfortune, random.uniform(0, ambush.hold_s)))

    # How.

    def _restart(self, victim: Machine) -> None:
        if self._faults.crash(victim, has_power=self._random.random() < 0.3):
            self._faults.later(self._random.uniform(0, _DOWN_MAX_S), partial(self._faults.start, victim))

    def _pause(self, victim: Machine, duration_s: float) -> None:
        if victim.is_up and not victim.is_paused:
            self._faults.note("pause", victim.node_id)
            victim.pause()
            self._faults.later(duration_s, victim.resume)

    def _part(self, one: Machine, other: Machine, duration_s: float) -> None:
        if one is not other:
            self._faults.note("cut", one.host, other.host)
            for source, target in ((one.host, other.host), (other.host, one.host)):
                self._network.cut(source, target)
                self._faults.later(duration_s, partial(self._network.heal, source, target))
