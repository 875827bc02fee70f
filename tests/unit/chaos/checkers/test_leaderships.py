"""What the judge of leaderships finds, and what it lets pass."""

from __future__ import annotations

from penstock.chaos.checkers.leaderships import NO_LEADER, ClusterState, PartitionState, judge_leaderships


def state(
    leader: int,
    epoch: int,
    isr: tuple[int, ...],
    *,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    process: str = "first",
) -> ClusterState:
    """Of one partition on brokers 1 and 2; `process` is that of broker 1."""
    partition = PartitionState(leader=leader, leader_epoch=epoch, isr=isr, elr=elr, last_known_elr=last_known)
    return ClusterState(offset=epoch, processes={1: process, 2: "other"}, partitions={"p": partition})


BOTH = state(1, 1, (1, 2))


def test_a_replaced_process_that_refills_before_it_leads_is_right() -> None:
    history = [
        BOTH,
        state(2, 2, (2,), process="second"),
        state(2, 2, (2, 1), process="second"),
        state(1, 3, (2, 1), process="second"),
    ]
    assert judge_leaderships(history) == []


def test_a_replaced_process_that_stays_in_sync_is_found() -> None:
    after = state(2, 2, (1, 2), process="second")
    assert len(judge_leaderships([BOTH, after])) == 1
    assert judge_leaderships([BOTH, after], stopped_cleanly={"first"}) == []


def test_a_replaced_process_that_goes_on_leading_is_found() -> None:
    assert len(judge_leaderships([BOTH, state(1, 1, (1, 2), process="second")])) == 1


def test_a_leader_that_was_not_in_sync_is_found() -> None:
    (found,) = judge_leaderships([state(2, 2, (2,)), state(1, 3, (1,))])
    assert "was not in sync before" in found


def test_a_leader_out_of_its_isr_is_found() -> None:
    (found,) = judge_leaderships([BOTH, state(1, 2, (2,))])
    assert "which is not in sync" in found


def test_another_leader_in_the_same_epoch_is_found() -> None:
    (found,) = judge_leaderships([BOTH, state(2, 1, (2,))])
    assert "in the same epoch" in found


def test_the_eligible_and_then_the_last_known_leader_may_lead() -> None:
    leaderless = state(NO_LEADER, 2, (), elr=(1,))
    assert judge_leaderships([BOTH, leaderless, state(1, 3, (1,))]) == []
    last_known = state(NO_LEADER, 2, (), last_known=(1,))
    assert judge_leaderships([BOTH, last_known, state(1, 3, (1,))]) == []
    assert len(judge_leaderships([BOTH, last_known, state(2, 3, (2,))])) == 1


def test_the_last_known_leader_may_lead_when_the_only_eligible_one_is_replaced() -> None:
    """It had lost its place itself before."""
    leaderless = state(NO_LEADER, 2, (), elr=(1,), last_known=(2,))
    assert judge_leaderships([BOTH, leaderless, state(2, 3, (2,), process="second")]) == []
    assert len(judge_leaderships([BOTH, leaderless, state(2, 3, (2,))])) == 1
