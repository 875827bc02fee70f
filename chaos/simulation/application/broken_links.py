"""The links of a simulated cluster that a test has cut or slowed: several faults may hold of one link."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..cluster.network import Network

Direction: TypeAlias = tuple[str, str]
"""From one host to another."""


class BrokenLinks:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._cuts: list[frozenset[Direction]] = []
        self._slows: list[tuple[frozenset[Direction], float]] = []

    def cut(self, directions: Iterable[Direction]) -> Callable[[], None]:
        """Nothing gets through until what is returned is called."""
        chosen = frozenset(directions)
        self._cuts.append(chosen)
        for direction in sorted(chosen):
            self._network.cut(*direction)

        def heal() -> None:
            self._cuts.remove(chosen)
            for direction in sorted(chosen.difference(*self._cuts)):
                self._network.heal(*direction)

        return heal

    def slow(self, directions: Iterable[Direction], delay_s: float) -> Callable[[], None]:
        """What is sent arrives so much later; faults of one link add up."""
        slow = (frozenset(directions), delay_s)
        self._slows.append(slow)
        self._give_delays()

        def heal() -> None:
            self._slows.remove(slow)
            self._give_delays()

        return heal

    def _give_delays(self) -> None:
        self._network.slow.clear()
        for directions, delay_s in self._slows:
            for direction in sorted(directions):
                self._network.slow[direction] = self._network.slow.get(direction, 0.0) + delay_s
