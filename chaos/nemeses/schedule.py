"""When which fault begins and ends: drawn from a seed, or read from a small file.

    # TOML, or the same as JSON. Times are seconds since the load began.
    length_s = 60
    [[steps]]
    at_s = 10
    duration_s = 8
    fault = { kind = "partition", selector = "leaders", mode = "silence" }

A drawn schedule begins and ends with a quiet time, has quiet times in between, and stays within what
docs/guarantees.md promises (`limits.py`) unless it is asked to go beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from ...local.errors import ClusterError
from ..faults.kinds import Kind, split_name
from .fault import FAULTS, SINGLE_NODE, AnyFault, DamageFault, Fault, RollingRestart

# After a damaged node was started: it has caught up and is in sync by then, where the nemesis does not see it earlier.
SETTLED_S: Final = 8.0
FIRST_QUIET_S: Final = 3.0
# An election and a session of a broker are over by then: what is wrong now is wrong for a reason of its own.
LAST_QUIET_S: Final = 5.0
_SHORTEST_S: Final = 1.5
# Within a session (9 s by default), and past it.
_DURATIONS_S: Final = ((_SHORTEST_S, 4.0), (3.0, 9.0), (9.0, 15.0))
_QUIET_S: Final = (1.0, 6.0)
# Times are rounded.
_MARGIN_S: Final = 0.1
# How likely a fault begins while the one before it holds.
_OVERLAP: Final = 0.25
# What is promised holds while a clock is wrong by an hour at most.
_CLOCK_OFFSETS_MS: Final = (-3_500_000, -60_000, -1_500, 1_500, 60_000, 3_500_000)
_CHOICES: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "partition": {"mode": ("silence", "reset", "refusal")},
    "slow-link": {"latency_ms": (40, 100, 400), "jitter_ms": (0, 10, 30)},
    "bandwidth": {"kilobytes_s": (4, 8, 16)},
    "packet-loss": {"percent": (5, 15, 30)},
    "connection-resets": {"interval_ms": (100, 300, 1_000)},
    "clock-bump": {"offset_ms": _CLOCK_OFFSETS_MS},
    "clock-strobe": {"offset_ms": _CLOCK_OFFSETS_MS, "interval_ms": (10, 50, 200)},
    "slow-disk": {"delay_ms": (5, 20, 100), "probability": (0.1, 0.5)},
    "disk-error": {"operation": ("write", "sync"), "count": (1, 3, None)},
    "failed-read": {"count": (1, 2, 5)},
    "truncation": {"size_bytes": (1, 100, 5_000)},
    "segment-size": {"size_bytes": (2_048, 16_384)},
    "segment-age": {"age_ms": (300, 2_000)},
}
# What damages data is drawn for one node; a name with a selector may ask for more. Reads that fail are drawn for
# leaders, as other nodes hardly ever read a log.
_DRAWN_SELECTORS: Final[dict[str, tuple[str, ...]]] = {
    **{kind: SINGLE_NODE for kind, fault in FAULTS.items() if issubclass(fault, DamageFault)},
    "failed-read": ("leaders", "all"),
}
_SYNCING: Final = ("controllers", "majority")


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`fault` begins `at_s` seconds after the load began, and ends `duration_s` later."""

    at_s: float
    duration_s: float
    fault: AnyFault

    @property
    def end_s(self) -> float:
        return self.at_s + self.duration_s


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`steps` in the order of their beginnings. At `length_s` everything has healed; `seed` draws whom they hit."""

    length_s: float
    steps: tuple[Step, ...] = ()
    seed: int = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which faults are declared, each once."""
        return tuple(sorted({step.fault.kind for step in self.steps}))

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1)


def decode(text: bytes, *, where: str, is_toml: bool = False) -> Schedule:
    """Raises ClusterError: what was expected, what was found, and where."""
    try:
        schedule = msgspec.toml.decode(text, type=Schedule) if is_toml else msgspec.json.decode(text, type=Schedule)
    except (msgspec.MsgspecError, ValueError) as error:
        known = f"; kinds are {', '.join(FAULTS)}" if ".kind`" in str(error) else ""
        raise ClusterError(f"{where} is no schedule: {error}{known}") from error
    # TOML has infinite numbers, and some that are none.
    if not 0 < schedule.length_s < math.inf:
        raise ClusterError(f"{where}: length_s is {schedule.length_s:g}; expected how many seconds the load lasts")
    for number, step in enumerate(schedule.steps):
        if not 0 <= step.at_s <= step.end_s <= schedule.length_s:
            raise ClusterError(
                f"{where}, steps[{number}]: {step.fault.kind} lasts from {step.at_s:g} s to {step.end_s:g} s; expected "
                f"a time between 0 and length_s, which is {schedule.length_s:g} s"
            )
    steps = tuple(sorted(schedule.steps, key=lambda step: step.at_s))
    return msgspec.structs.replace(schedule, steps=steps)


def read_schedule(path: Path) -> Schedule:
    """The schedule in a `.toml` or `.json` file. Raises ClusterError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror or error}") from error
    return decode(text, where=path.name, is_toml=path.suffix == ".toml")


def draw(seed: int, names: Sequence[str], *, length_s: float) -> Schedule:
    """Faults of these names (`kill`, `partition:leaders`), each at least once. The same arguments give the same one.

    A name without a selector draws one within what is promised; with one it hits that, whatever is promised. Raises
    ClusterError for a name that no fault has, and for a time that is too short.
    """
    chosen = [split_name(name) for name in names]
    end_s = length_s - LAST_QUIET_S
    needed_s = FIRST_QUIET_S + LAST_QUIET_S + sum(_needed_s(kind) for kind, _ in chosen)
    if length_s < needed_s:
        raise ClusterError(
            f"{len(chosen)} kinds of faults with quiet times take at least {needed_s:g} s, and the schedule has "
            f"{length_s:g} s"
        )
    random = Random(f"schedule {seed}")
    steps: list[Step] = []
    at_s = FIRST_QUIET_S
    waiting = random.sample(chosen, len(chosen))
    while chosen:
        is_first_round = bool(waiting)
        kind, selector = waiting.pop() if waiting else random.choice(chosen)
        fault = _draw_fault(random, kind, selector)
        at_s = _begin_s(random, steps, fault, at_s)
        reserved_s = sum(_needed_s(one) for one, _ in waiting)
        longest_s = end_s - at_s - reserved_s - (_quiet_s(fault.kind) if waiting else 0)
        if longest_s < _SHORTEST_S and not is_first_round:
            break
        duration_s = min(random.uniform(*random.choice(_DURATIONS_S)), longest_s)
        steps.append(Step(round(at_s, 3), round(duration_s, 3), fault))
        # Quiet for as long as leaves time for those that have not been there yet.
        slack_s = end_s - reserved_s - steps[-1].end_s
        quiet_s = max(_quiet_s(fault.kind), min(random.uniform(*_QUIET_S), slack_s))
        at_s = max(one.end_s for one in steps) + quiet_s
    return Schedule(length_s=length_s, steps=tuple(sorted(steps, key=lambda step: step.at_s)), seed=seed)


def _begin_s(random: Random, steps: Sequence[Step], fault: AnyFault, at_s: float) -> float:
    """`at_s`, or while the last fault holds, if it is the only one and the two may."""
    if not steps or random.random() >= _OVERLAP or not _may_overlap(steps[-1].fault, fault):
        return at_s
    begin_s = steps[-1].at_s + steps[-1].duration_s * random.uniform(0.2, 0.8)
    return at_s if any(step.end_s > begin_s for step in steps[:-1]) else begin_s


def _draw_fault(random: Random, kind: Kind, selector: str | None) -> AnyFault:
    values: dict[str, Any] = {name: random.choice(choices) for name, choices in _CHOICES.get(kind.name, {}).items()}
    if kind.selectors:
        values["selector"] = selector or random.choice(_DRAWN_SELECTORS.get(kind.name, kind.selectors))
    if values.get("operation") == "sync":
        # Logs are hardly ever synced unless `flush.messages` asks for it; the metadata journals of controllers are.
        values["path"] = "*"
        values["selector"] = selector or random.choice(_SYNCING)
    fault: AnyFault = msgspec.convert({"kind": kind.name, **values}, type=AnyFault)
    return fault


def _needed_s(kind: Kind) -> float:
    return _SHORTEST_S + _quiet_s(kind.name)


def _quiet_s(kind: str) -> float:
    """Behind a fault of this kind, at least: until what was damaged is whole again."""
    return SETTLED_S + _MARGIN_S if issubclass(FAULTS[kind], DamageFault) else _QUIET_S[0]


def _may_overlap(one: Fault, other: Fault) -> bool:
    """Whether a drawn schedule may have both at a time: of different groups, and nothing beside what damages data."""
    return (
        one.group != other.group
        and {one.group, other.group} != {"processes", "disks"}
        and not any(isinstance(fault, DamageFault | RollingRestart) for fault in (one, other))
    )
