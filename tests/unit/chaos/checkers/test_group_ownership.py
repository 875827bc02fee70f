"""What the judge of a group's members takes for a violation, and what not."""

from __future__ import annotations

from penstock.chaos.checkers.group_ownership import GroupOwnership


def test_one_epoch_gives_a_partition_to_one_member() -> None:
    group = GroupOwnership()
    group.on_assigned("a", 3, [0, 1])
    group.on_assigned("a", 3, [0, 1])
    group.on_assigned("b", 4, [1])
    assert group.violations == []
    group.on_assigned("b", 3, [1])
    assert group.violations == ["b and a both have partition 1 in epoch 3"]


def test_epochs_never_fall_for_a_member() -> None:
    group = GroupOwnership()
    group.on_epoch("a", 3)
    group.on_epoch("a", 3)
    group.on_epoch("b", 2)
    assert group.violations == []
    group.on_epoch("a", 2)
    assert group.violations == ["a gets epoch 2 after epoch 3"]


def test_who_joins_later_is_not_of_an_earlier_epoch() -> None:
    group = GroupOwnership()
    before = group.highest_epoch
    group.on_epoch("a", 3)
    # It had asked before that was heard of.
    group.on_epoch("b", 2, joined_above=before)
    assert group.violations == []
    group.on_epoch("c", 2, joined_above=group.highest_epoch)
    assert group.violations == ["c gets epoch 2 after epoch 3"]


def test_what_is_held_is_given_to_no_other_member_within_the_session() -> None:
    group = GroupOwnership()
    group.hold("a", [0], asked_s=0.0, now_s=1.0)
    group.on_session("a", 6.0)
    group.hold("b", [0], asked_s=2.0, now_s=5.0)
    assert group.violations == ["b is given partition 0, which a has and has not let go"]


def test_what_was_let_go_or_whose_session_is_over_or_cannot_be_ordered_may_be_given() -> None:
    group = GroupOwnership()
    group.hold("a", [0, 1, 2], asked_s=0.0, now_s=1.0)
    group.on_session("a", 6.0)
    group.release("a", [0])
    group.hold("b", [0], asked_s=2.0, now_s=3.0)
    group.hold("b", [1], asked_s=2.0, now_s=6.0)
    # Its answer may have been made before the one to the other.
    group.hold("b", [2], asked_s=0.5, now_s=3.0)
    assert group.violations == []
