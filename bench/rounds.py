"""Rounds: every cell on every target in turn, one right after the other, the order changing each time.

Whatever else the machine does then falls on all targets alike, and a drift over the minutes on none of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import click
from confluent_kafka import KafkaException

from ..client import clock
from ..client.terminal import say
from ..local.errors import ClusterError
from .cells import Cell
from .results import Observation
from .target import Target
from .wire import RequestRefusedError

REST_S: Final = 2.0
"""Before each measurement. The topics of the one before leave the disk after a second, and freeing their pages takes as
much CPU as reading them: that is no part of the next load."""


def measure(
    targets: Sequence[Target],
    cells: Sequence[Cell],
    rounds: int,
    tell: Callable[[Observation], None],
    begin: Callable[[Cell, Target, int, int], None] = lambda _cell, _target, _done, _total: None,
) -> tuple[Observation, ...]:
    """Measure everything; calls `tell` with each observation as it is made, and `begin` before each, with how many are
    done and how many there are in all.

    A cell that fails is an observation without values: what the others found is not lost with it. Nor is it by Ctrl-C,
    which ends the measuring early.
    """
    observations: list[Observation] = []
    try:
        _measure_into(observations, targets, cells, rounds, tell, begin)
    except KeyboardInterrupt:
        say(f"Stopped after {len(observations)} measurements.")
    return tuple(observations)


def _measure_into(
    observations: list[Observation],
    targets: Sequence[Target],
    cells: Sequence[Cell],
    rounds: int,
    tell: Callable[[Observation], None],
    begin: Callable[[Cell, Target, int, int], None],
) -> None:
    total = rounds * sum(cell.is_possible(target) for cell in cells for target in targets)
    for number in range(rounds):
        for place, cell in enumerate(cells):
            order = targets if (number + place) % 2 == 0 else targets[::-1]
            for target in order:
                if not cell.is_possible(target):
                    continue
                begin(cell, target, len(observations), total)
                clock.pause(REST_S)
                observation = _observe(cell, target, number)
                observations.append(observation)
                tell(observation)


def _observe(cell: Cell, target: Target, number: int) -> Observation:
    try:
        return Observation(cell=cell.name, target=target.name, round=number, values=cell.run(target))
    except click.ClickException as error:
        reason = error.message
    except (KafkaException, RequestRefusedError, ClusterError, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
    return Observation(cell=cell.name, target=target.name, round=number, values={}, error=reason)
