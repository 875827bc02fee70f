"""What a schedule allows to be lost: nothing within docs/guarantees.md, and beyond it with a sentence that says so."""

from __future__ import annotations

import pytest
from told_history import Told

from penstock.chaos.checkers.list_append import check_list_append
from penstock.chaos.checkers.queue.checker import check_queue
from penstock.chaos.histories.operation import NEMESIS, Header, Operation
from penstock.chaos.nemeses.fault import (
    AnyFault,
    BitFlip,
    ClockBump,
    DiskError,
    EmptiedDisk,
    Kill,
    MinIsr,
    Partition,
    Pause,
    PowerLoss,
    PreferredElection,
)
from penstock.chaos.nemeses.limits import LOSSES, TORN, Promise, allowances
from penstock.chaos.nemeses.schedule import Schedule, Step

FLUSHED = Promise(is_flushed=True)


def schedule_of(*faults: AnyFault, gap_s: float = 20) -> Schedule:
    return Schedule(length_s=200, steps=tuple(Step(3 + gap_s * place, 2, fault) for place, fault in enumerate(faults)))


@pytest.mark.parametrize(
    ("promise", "faults"),
    [
        (Promise(), [Kill(selector="all"), Partition(selector="leaders"), Pause(selector="majority")]),
        (Promise(), [PowerLoss(), Kill(), PowerLoss(selector="leaders"), BitFlip(), EmptiedDisk()]),
        (Promise(min_insync_replicas=3), [PowerLoss(selector="1,2")]),
        (FLUSHED, [PowerLoss(selector="all"), PowerLoss(selector="majority")]),
        (Promise(), [ClockBump(offset_ms=-3_500_000), MinIsr(value=2), PreferredElection()]),
    ],
)  # fmt: skip
def test_what_is_promised_allows_nothing(promise: Promise, faults: list[AnyFault]) -> None:
    assert allowances(schedule_of(*faults), promise, node_count=3) == {}


@pytest.mark.parametrize(
    ("promise", "faults", "sentence"),
    [
        (Promise(), [PowerLoss(selector="all")], "Data of up to 3 nodes were taken at once without flush.messages=1"),
        (Promise(), [PowerLoss(selector="1,2")], "more than min.insync.replicas less one, which is 1"),
        (Promise(min_insync_replicas=1), [PowerLoss()], "more than min.insync.replicas less one, which is 0"),
        (Promise(), [MinIsr(value=1), PowerLoss()], "more than min.insync.replicas less one, which is 0"),
        (FLUSHED, [EmptiedDisk(selector="1,2")], "Data of up to 2 nodes were taken at once:"),
        (Promise(acks="1"), [Kill()], "acks=1 promises nothing beyond the leader"),
        (Promise(acks="0"), [PreferredElection()], "acks=0 promises nothing beyond the leader"),
        (Promise(has_unclean_elections=True), [Partition()], "a replica that is not in sync may lead"),
        (Promise(), [ClockBump(offset_ms=-3_700_000)], "wrong by more than an hour"),
    ],
)  # fmt: skip
def test_what_goes_beyond_allows_losses_and_says_why(promise: Promise, faults: list[AnyFault], sentence: str) -> None:
    allowed = allowances(schedule_of(*faults), promise, node_count=3)
    assert set(allowed) == set(LOSSES)
    assert all(sentence in why for why in allowed.values())


def test_all_that_comes_of_a_log_that_was_cut_is_allowed() -> None:
    """What was acknowledged at 2 is lost; the next leader's log ended at 1."""
    queue = Told()
    queue.send(1, "t-0", 0, 10)
    queue.send(1, "t-0", 2, 11)
    queue.poll(4, {"t-0": [[0, 10], [2, 11]]})
    queue.send(2, "t-0", 1, 20)
    queue.send(2, "t-0", 2, 21)
    queue.poll(4, {"t-0": [[2, 21]]})
    queue.poll(3, {"t-0": [[0, 10], [1, 20], [2, 21]]}, final=True)
    lists = Told(Header(workload="list-append"))
    for appended, elements in ((1, [1]), (2, [1, 2]), (3, [1, 3])):
        lists.begin(1, "txn", [["append", "t-0", appended]])
        lists.end(1)
        lists.begin(2, "txn", [["r", "t-0", None]], final=appended == 3)
        lists.end(2, [["r", "t-0", elements]])
    types = {*check_queue(queue.history()).counts, *check_list_append(lists.history()).counts}
    assert {"G0-realtime", "incompatible-order", "lost-write"} <= types
    assert types <= {*LOSSES}


def test_power_of_one_and_the_kill_of_the_others_before_it_is_in_sync_goes_beyond() -> None:
    faults = PowerLoss(), Kill(selector="majority")
    assert allowances(schedule_of(*faults, gap_s=20), Promise(), node_count=3) == {}
    near = allowances(schedule_of(*faults, gap_s=5), Promise(), node_count=3)
    assert "the others may have crashed before it was in sync again" in near["lost-write"]
    assert allowances(schedule_of(*faults, gap_s=5), FLUSHED, node_count=3) == {}


def test_a_node_that_may_end_by_its_disk_counts_as_one_that_crashed() -> None:
    faults = PowerLoss(), DiskError(selector="minority", operation="sync"), Kill()
    near = allowances(schedule_of(*faults, gap_s=3), Promise(), node_count=3)
    assert "the others may have crashed before it was in sync again" in near["lost-write"]


def test_a_node_hit_before_the_last_damage_was_in_sync_goes_beyond_too() -> None:
    event = Operation(17, "info", NEMESIS, 5, "kill", {"begin": {"kind": "kill", "nodes": [2], "in_sync": False}})
    allowed = allowances(schedule_of(PowerLoss(), Kill()), Promise(), node_count=3, events=[event])
    assert (
        "hit by kill before all replicas were in sync again after an earlier fault (event 17)" in allowed["lost-write"]
    )
    # Nothing is lost by a node that stands still.
    paused = Operation(17, "info", NEMESIS, 5, "pause", event.value)
    assert allowances(schedule_of(PowerLoss(), Pause()), Promise(), node_count=3, events=[paused]) == {}
    # What was synced is no loss of power's, but a disk can be emptied of it.
    assert allowances(schedule_of(PowerLoss(), Kill()), FLUSHED, node_count=3, events=[event]) == {}
    assert allowances(schedule_of(EmptiedDisk(), Kill()), FLUSHED, node_count=3, events=[event])


def test_transactions_of_version_1_may_be_torn() -> None:
    allowed = allowances(schedule_of(Kill()), Promise(transaction_version=1), node_count=3)
    assert set(allowed) == set(TORN)
    assert "KAFKA-17754" in allowed["G1a"]
