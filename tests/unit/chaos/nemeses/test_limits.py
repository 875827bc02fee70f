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
    SlowDisk,
    Stop,
    Truncation,
)
from penstock.chaos.nemeses.limits import LOSSES, OUTAGES, TORN, Promise, allowances, may_stop_quorum
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
    assert set(allowed) - set(OUTAGES) == set(LOSSES)
    assert all(sentence in allowed[loss] for loss in LOSSES)


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


def overlapping(first: AnyFault, *others: AnyFault) -> Schedule:
    """The first holds for a minute, the others begin after it, one second each, with quiet times in between."""
    later = (Step(13 + 15 * place, 1, fault) for place, fault in enumerate(others))
    return Schedule(length_s=200, steps=(Step(3, 60, first), *later))


def test_a_kill_that_still_holds_when_power_is_lost_counts_among_the_crashes() -> None:
    beyond = allowances(overlapping(Kill(selector="majority"), PowerLoss()), Promise(), node_count=3)
    assert "the others may have crashed before it was in sync again (at 13 s)" in beyond["lost-write"]
    assert allowances(overlapping(Kill(), PowerLoss()), Promise(), node_count=3) == {}, "the third keeps all"
    assert allowances(overlapping(Kill(selector="majority"), PowerLoss()), FLUSHED, node_count=3) == {}
    # One that has ended before is waited for by the nemesis.
    over = schedule_of(Kill(selector="majority"), PowerLoss(), gap_s=3)
    assert allowances(over, Promise(), node_count=3) == {}


@pytest.mark.parametrize("away", [Pause(), Stop(), Partition()])
def test_a_replica_that_is_away_leaves_one_fewer_that_must_crash(away: AnyFault) -> None:
    """With two of three in sync records are acknowledged that the third does not have."""
    schedule = Schedule(length_s=200, steps=(Step(3, 60, away), Step(10, 5, PowerLoss()), Step(12, 5, Kill())))
    beyond = allowances(schedule, Promise(), node_count=3)
    assert "the others may have crashed" in beyond["lost-write"]
    # With all three needed, none is acknowledged while one is away; and that one alone is no crash.
    assert allowances(schedule, Promise(min_insync_replicas=3), node_count=3) == {}
    assert allowances(overlapping(away, PowerLoss()), Promise(), node_count=3) == {}


def test_a_client_that_is_cut_off_puts_no_replica_out_of_sync() -> None:
    cut = Partition(selector="client-from-leader")
    schedule = Schedule(length_s=200, steps=(Step(3, 60, cut), Step(10, 5, PowerLoss()), Step(12, 5, Kill())))
    assert allowances(schedule, Promise(), node_count=3) == {}


@pytest.mark.parametrize(
    ("promise", "schedule"),
    [
        (Promise(), schedule_of(PowerLoss(selector="all"))),
        (Promise(), overlapping(Kill(selector="majority"), PowerLoss())),
        (Promise(min_insync_replicas=1), schedule_of(PowerLoss())),
        (Promise(acks="1"), schedule_of(Kill(), EmptiedDisk())),
        (Promise(), schedule_of(Kill(selector="all"), DiskError())),
    ],
)  # fmt: skip
def test_replicas_that_lost_their_power_lead_on(promise: Promise, schedule: Schedule) -> None:
    assert not {*OUTAGES} & allowances(schedule, promise, node_count=3).keys()


@pytest.mark.parametrize("damage", [EmptiedDisk(), BitFlip(), Truncation()])
@pytest.mark.parametrize("promise", [Promise(), FLUSHED])
def test_partitions_stay_leaderless_when_the_last_replica_in_sync_is_unfit(damage: AnyFault, promise: Promise) -> None:
    beyond = allowances(overlapping(Kill(selector="majority"), damage), promise, node_count=3)
    assert {*OUTAGES, *LOSSES} == set(beyond)
    sentence = f"{damage.kind} at 13 s may have hit the last replica in sync"
    assert all(sentence in beyond[outage] for outage in OUTAGES)
    # Alone it finds others in sync, and with unclean elections they lead.
    assert allowances(schedule_of(damage), promise, node_count=3) == {}
    unclean = Promise(has_unclean_elections=True, is_flushed=promise.is_flushed)
    assert not {*OUTAGES} & allowances(overlapping(Kill(selector="majority"), damage), unclean, node_count=3).keys()


def test_a_replica_that_was_alone_in_sync_and_is_emptied_leaves_no_leader() -> None:
    assert "not-whole" in allowances(schedule_of(EmptiedDisk()), Promise(min_insync_replicas=1), node_count=3)


@pytest.mark.parametrize(("node_ids", "node_count"), [("1,2", 3), ("1,2", 5), ("1", 1), ("1", 2)])
def test_the_cluster_stands_still_when_half_of_the_controllers_are_emptied(node_ids: str, node_count: int) -> None:
    schedule = schedule_of(EmptiedDisk(selector=node_ids))
    for promise in (Promise(), Promise(has_unclean_elections=True)):
        allowed = allowances(schedule, promise, node_count=node_count)
        assert "where it is half of them or more, the cluster stands still" in allowed["stall"]


def test_controllers_that_are_emptied_one_after_the_other_have_the_metadata_again() -> None:
    assert allowances(schedule_of(EmptiedDisk(selector="1"), EmptiedDisk(selector="2")), Promise(), node_count=3) == {}


def test_what_is_damaged_before_replicas_were_in_sync_again_may_leave_no_leader() -> None:
    def event(kind: str) -> Operation:
        return Operation(17, "info", NEMESIS, 5, kind, {"begin": {"kind": kind, "nodes": [2], "in_sync": False}})

    schedule = schedule_of(Kill(), BitFlip(), Kill())
    damaged = allowances(schedule, Promise(), node_count=3, events=iter([event("bit-flip")]))
    assert all("(event 17)" in damaged[outage] for outage in (*OUTAGES, *LOSSES))
    # One that is killed has what it had.
    killed = allowances(schedule, Promise(), node_count=3, events=iter([event("kill")]))
    assert set(killed) == set(LOSSES)


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


@pytest.mark.parametrize(
    ("fault", "node_count", "may_stop"),
    [
        (Kill(selector="one"), 3, False),
        (Kill(selector="majority"), 3, True),
        # Which may be two of the three controllers.
        (Kill(selector="minority"), 5, True),
        (Pause(selector="controllers"), 5, False),
        (PowerLoss(selector="one"), 1, True),
        (SlowDisk(selector="all"), 3, False),
        (Partition(selector="majority"), 3, True),
        (Partition(selector="client-from-leader"), 3, False),
    ],
)
def test_a_quorum_may_stand_still_while_half_of_the_controllers_are_hit(
    fault: AnyFault, node_count: int, may_stop: bool
) -> None:
    assert may_stop_quorum(fault, node_count) is may_stop
