"""What the rules of consumer groups are for, step by step on whole nodes."""

from __future__ import annotations

from collections.abc import Callable

from group_scenario import GroupScenario


def kip_1251_a_partition_is_not_committed_with_an_epoch_from_before_it_was_given() -> GroupScenario:
    it = GroupScenario()
    it.produce("A", 3)
    it.join("one")
    it.join("two")
    joined = it.member_epoch("two")
    it.beat("one")
    it.say("-- What one has had since the old epoch it may commit with that.")
    it.commit("one", 2, epoch=joined - 1)
    it.leave("one")
    it.beat_until_given("two")
    it.say("-- A request of two from before does not set the group back: two did not have the partition then.")
    it.commit("two", 0, epoch=joined)
    it.fetch_offset()
    it.commit("two", 3, epoch=it.member_epoch("two"))
    it.fetch_offset()
    return it


STORIES: tuple[Callable[[], GroupScenario], ...] = (
    kip_1251_a_partition_is_not_committed_with_an_epoch_from_before_it_was_given,
)
