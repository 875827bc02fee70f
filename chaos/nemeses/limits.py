"""Which schedules go beyond what docs/guarantees.md promises, and which findings are allowed for that. Pure.

A run with such a schedule is a run like any other, and what it loses is told; only the verdict names the sentence that
allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from ...local.quorum_settings import VOTERS_MAX
from ..histories.operation import NEMESIS, Operation
from .fault import (
    FAULTS,
    BitFlip,
    ClockBump,
    ClockStrobe,
    DamageFault,
    DiskError,
    DiskFull,
    EmptiedDisk,
    Fault,
    Kill,
    LinkFault,
    MinIsr,
    NodeFault,
    NoDescriptors,
    OperatorFault,
    Partition,
    Pause,
    PowerLoss,
    Restart,
    RollingRestart,
    SlowDisk,
    Stop,
    Truncation,
)
from .schedule import SETTLED_S, Schedule, Step

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
# As the checkers name what comes of a partition, or a cluster, that stays without a leader after everything has healed:
# clients of it end with errors, and never come to the end of what they read.
OUTAGES: Final = ("stall", "not-whole", "client-failure")
# Of a transaction that another one's end has ended.
TORN: Final = ("G1a", "lost-write")


# What no node loses data by, nor ends by, in sync or not.
HARMLESS: Final = (Pause, SlowDisk)
# By what of its disk a node may end: a sync of its last log directory, or the metadata's journal, fails.
ENDING: Final = (DiskError, DiskFull, NoDescriptors)
# After these a replica does not lead on with what it has left: its disk is another one, or it may be damaged below the
# recovery point. One that lost its power cuts a torn end off and leads.
UNFIT: Final = (EmptiedDisk, BitFlip, Truncation)
# By what of a process, beside a crash, a replica is out of sync while it holds.
_AWAY: Final = (Pause, Stop, Restart)


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


def may_stop_quorum(fault: Fault, node_count: int) -> bool:
    """Whether no controller may lead while it holds, for as long as it holds."""
    if isinstance(fault, Partition):
        return fault.selector != "client-from-leader"
    voters = min(VOTERS_MAX, node_count)
    return (_crashes(fault) or isinstance(fault, _AWAY)) and 2 * _hit_max(fault, node_count) >= voters


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
    events = tuple(events)
    sentence = next(_losses(schedule, promise, node_count, events), None)
    if sentence is not None:
        allowed |= dict.fromkeys(LOSSES, sentence)
    outage = next(_outages(schedule, promise, node_count, events), None)
    if outage is not None:
        allowed |= dict.fromkeys(OUTAGES, outage)
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
    for sentence, _ in _beyond(schedule, promise, node_count):
        yield sentence
    for step in steps:
        if isinstance(step.fault, ClockBump | ClockStrobe) and abs(step.fault.offset_ms) > _HOUR_MS:
            yield "A wall clock that is wrong by more than an hour is believed: retention may delete by it."
    if any(_loses_data(step.fault, promise) for step in steps):
        yield from _compounded(events)


def _outages(
    schedule: Schedule, promise: Promise, node_count: int, events: Iterable[Operation]
) -> Iterator[str]:  # fmt: skip
    """What leaves something without a leader for good: everything that is down comes back when a run heals."""
    steps = schedule.steps
    voters = min(VOTERS_MAX, node_count)
    for number, step in enumerate(steps):
        if not isinstance(step.fault, EmptiedDisk):
            continue
        emptied = sum(
            _hit_max(one.fault, node_count) for one in _near(steps, number) if isinstance(one.fault, EmptiedDisk)
        )
        if 2 * min(emptied, voters) >= voters:
            yield (
                f"The disks of up to {min(emptied, voters)} of {voters} controllers were emptied at once: where it is "
                f"half of them or more, the cluster stands still (at {step.at_s:g} s)."
            )
    if promise.has_unclean_elections:
        return
    for _, near in _beyond(schedule, promise, node_count):
        unfit = next((one for one in near if isinstance(one.fault, UNFIT)), None)
        if unfit is not None:
            yield (
                f"{unfit.fault.kind} at {unfit.at_s:g} s may have hit the last replica in sync: its partitions have "
                "no leader until an unclean election is asked for."
            )
    yield from _compounded(events, UNFIT)


def _beyond(schedule: Schedule, promise: Promise, node_count: int) -> Iterator[tuple[str, Sequence[Step]]]:
    """Where so many replicas may have lost data, or crashed beside one that did, that it was all that were in sync: the
    sentence, and the faults that it is about."""
    steps = schedule.steps
    min_isr = min(
        [promise.min_insync_replicas, *(step.fault.value for step in steps if isinstance(step.fault, MinIsr))]
    )
    flushed = "" if promise.is_flushed else " without flush.messages=1"
    for number, step in enumerate(steps):
        if not _loses_data(step.fault, promise):
            continue
        near = _near(steps, number)
        damaged = sum(_hit_max(other.fault, node_count) for other in near if _loses_data(other.fault, promise))
        crashed = sum(_hit_max(other.fault, node_count) for other in near if _crashes(other.fault))
        # Nothing is acknowledged with fewer than these in sync, so that no more count for those that are away.
        away = min(
            sum(_away_max(other.fault, node_count) for other in near if other.at_s <= step.end_s),
            promise.replication_factor - min_isr,
        )
        if damaged >= min_isr:
            yield (
                (
                    f"Data of up to {min(damaged, node_count)} nodes were taken at once{flushed}: more than "
                    f"min.insync.replicas less one, which is {min_isr - 1}."
                ),
                near,
            )
        if crashed + away >= promise.replication_factor:
            yield (
                (
                    f"A replica lost data{flushed}, and the others may have crashed before it was in sync again "
                    f"(at {step.at_s:g} s)."
                ),
                near,
            )


def _near(steps: Sequence[Step], number: int) -> Sequence[Step]:
    """This one, those that hold when it begins, and those that begin before what it damaged is settled. Of those that
    ended before, the nemesis waits until replicas are in sync, or says that they are not (`in_sync`)."""
    step = steps[number]
    return [
        other
        for place, other in enumerate(steps)
        if (place >= number or other.end_s > step.at_s) and other.at_s <= step.end_s + SETTLED_S
    ]


def _compounded(events: Iterable[Operation], kinds: tuple[type[Fault], ...] = (Fault,)) -> Iterator[str]:
    """What hit a node, of these kinds, while replicas were not in sync."""
    for event in events:
        begin: Any = event.value.get("begin") if event.process == NEMESIS and isinstance(event.value, dict) else None
        kind = FAULTS.get(event.f, Fault)
        may_matter = issubclass(kind, kinds) and not issubclass(kind, HARMLESS)
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


def _away_max(fault: Fault, node_count: int) -> int:
    """How many replicas at most are out of sync while this holds, though their nodes do not crash."""
    if isinstance(fault, Partition):
        # One is enough to count: see where this is used.
        return 0 if fault.selector == "client-from-leader" else node_count
    if isinstance(fault, RollingRestart):
        return 1
    return _hit_max(fault, node_count) if isinstance(fault, _AWAY) else 0


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
