"""Which schedules go beyond what docs/guarantees.md promises, and which findings are allowed for that. Pure.

A run with such a schedule is a run like any other, and what it loses is told; only the verdict names the sentence that
allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ..histories.operation import NEMESIS, Operation
from .fault import (
    FAULTS,
    ClockBump,
    ClockStrobe,
    DamageFault,
    DiskError,
    DiskFull,
    Fault,
    Kill,
    LinkFault,
    MinIsr,
    NodeFault,
    NoDescriptors,
    OperatorFault,
    Pause,
    PowerLoss,
    RollingRestart,
    SlowDisk,
)

if TYPE_CHECKING:
    from .schedule import Schedule

# After a damaged node was started: it has caught up and is in sync by then, where the nemesis does not see it earlier.
SETTLED_S: Final = 8.0
_HOUR_MS: Final = 3_600_000

# As the checkers name what comes of records that were acknowledged and are gone, of offsets that are given anew, and of
# committed offsets that are gone with their records; what is lost still has its place in the order by which cycles and
# lists are judged. Values that were never written, or not committed, are no losses.
LOSSES: Final = (
    "lost-write", "unseen", "inconsistent-offsets", "poll-skip", "int-poll-skip", "nonmonotonic-poll",
    "int-nonmonotonic-poll", "nonmonotonic-send", "int-nonmonotonic-send", "nonmonotonic-read", "non-linearizable",
    "lost-output", "duplicate-output", "reordered-output", "skipped", "incompatible-order", "internal",
    "G0", "G0-process", "G0-realtime", "G1c", "G1c-process", "G1c-realtime",
)  # fmt: skip
# Of a transaction that another one's end has ended.
TORN: Final = ("G1a", "lost-write")


# What no node loses data by, nor ends by, in sync or not.
HARMLESS: Final = (Pause, SlowDisk)
# By what of its disk a node may end: a sync of its last log directory, or the metadata's journal, fails.
ENDING: Final = (DiskError, DiskFull, NoDescriptors)


class Promise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of topics and producers that decide what is promised."""

    acks: Literal["all", "1", "0"] = "all"
    min_insync_replicas: int = 2
    replication_factor: int = 3
    is_flushed: bool = False
    """`flush.messages=1`."""
    has_unclean_elections: bool = False
    """`unclean.leader.election.enable=true`."""
    transaction_version: int = 2


def may_overlap(one: Fault, other: Fault) -> bool:
    """Whether a drawn schedule may have both at a time: of different groups, and nothing beside what damages data."""
    return (
        one.group != other.group
        and {one.group, other.group} != {"processes", "disks"}
        and not any(isinstance(fault, DamageFault | RollingRestart) for fault in (one, other))
    )


def allowances(
    schedule: Schedule, promise: Promise, *, node_count: int, events: Iterable[Operation] = ()
) -> dict[str, str]:
    """Types of findings that these faults allow, with the sentence that allows them; empty within what is promised.

    `events` are those of the nemesis: what it found out of sync when it hit once more counts too.
    """
    allowed: dict[str, str] = {}
    if schedule.steps and promise.transaction_version < 2:
        allowed |= dict.fromkeys(
            TORN,
            "Transactions of version 1 cannot tell an EndTxn that arrives late from one that is meant (KAFKA-17754).",
        )
    sentence = next(_losses(schedule, promise, node_count, events), None)
    if sentence is not None:
        allowed |= dict.fromkeys(LOSSES, sentence)
    return allowed


def _losses(
    schedule: Schedule, promise: Promise, node_count: int, events: Iterable[Operation]
) -> Iterator[str]:  # fmt: skip
    steps = schedule.steps
    moves_leaders = any(
        isinstance(step.fault, LinkFault | NodeFault | RollingRestart | OperatorFault) for step in steps
    )
    if promise.has_unclean_elections and moves_leaders:
        yield "With unclean.leader.election.enable=true a replica that is not in sync may lead: nothing is promised."
    if promise.acks != "all" and moves_leaders:
        yield f"acks={promise.acks} promises nothing beyond the leader: what only a leader had is gone with it."
    min_isr = min(
        [promise.min_insync_replicas, *(step.fault.value for step in steps if isinstance(step.fault, MinIsr))]
    )
    flushed = "" if promise.is_flushed else " without flush.messages=1"
    for number, step in enumerate(steps):
        if not _loses_data(step.fault, promise):
            continue
        near = [other for other in steps[number:] if other.at_s <= step.end_s + SETTLED_S]
        damaged = sum(_hit_max(other.fault, node_count) for other in near if _loses_data(other.fault, promise))
        crashed = sum(_hit_max(other.fault, node_count) for other in near if _crashes(other.fault))
        if damaged >= min_isr:
            yield (
                f"Data of up to {min(damaged, node_count)} nodes were taken at once{flushed}: more than "
                f"min.insync.replicas less one, which is {min_isr - 1}."
            )
        if crashed >= promise.replication_factor:
            yield (
                f"A replica lost data{flushed}, and the others may have crashed before it was in sync again "
                f"(at {step.at_s:g} s)."
            )
    for step in steps:
        if isinstance(step.fault, ClockBump | ClockStrobe) and abs(step.fault.offset_ms) > _HOUR_MS:
            yield "A wall clock that is wrong by more than an hour is believed: retention may delete by it."
    if any(_loses_data(step.fault, promise) for step in steps):
        yield from _compounded(events)


def _compounded(events: Iterable[Operation]) -> Iterator[str]:
    for event in events:
        begin: Any = event.value.get("begin") if event.process == NEMESIS and isinstance(event.value, dict) else None
        may_matter = not issubclass(FAULTS.get(event.f, Fault), HARMLESS)
        if isinstance(begin, dict) and begin.get("in_sync") is False and may_matter:
            yield (
                f"A node was hit by {event.f} before all replicas were in sync again after an earlier fault "
                f"(event {event.index})."
            )


def _loses_data(fault: Fault, promise: Promise) -> bool:
    """Whether a node has less afterwards than it acknowledged."""
    return isinstance(fault, DamageFault) and not (isinstance(fault, PowerLoss) and promise.is_flushed)


def _crashes(fault: Fault) -> bool:
    """Whether a node may end by it without a word."""
    return isinstance(fault, (Kill, DamageFault, *ENDING))


def _hit_max(fault: Fault, node_count: int) -> int:
    """How many nodes at most."""
    assert isinstance(fault, NodeFault)
    match fault.selector:
        case "one" | "leaders" | "controllers":
            return 1
        case "minority":
            return max(1, (node_count - 1) // 2)
        case "majority":
            return max(node_count // 2 + 1, node_count - 1)
        case "all":
            return node_count
        case node_ids:
            return len(node_ids.split(","))
