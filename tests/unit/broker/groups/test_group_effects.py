"""What the rules of groups collect as effects of an event, and which timers reach which group."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import pytest
from consumer_puppet import Consumer, ConsumerPuppet
from group_puppet import GROUP, INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, SETTINGS, GroupPuppet

from penstock.broker.coordination.effects import CancelTimer, Reply, ScheduleTimer
from penstock.broker.groups.classic.timers import JoinDeadline, MemberSession, SyncDeadline
from penstock.broker.groups.consumer.member_deadlines import MemberTimeout
from penstock.broker.groups.group_shard import OffsetExpiration
from penstock.protocol.errors import ErrorCode


@pytest.fixture
def puppet() -> GroupPuppet:
    return GroupPuppet()


def test_a_generation_begins_with_these_effects_in_this_order(puppet: GroupPuppet) -> None:
    first, second = puppet.join(), puppet.join()
    deadline = JoinDeadline(GROUP, 1)
    puppet.shard.on_timer(deadline)
    # The second member extended the wait for others.
    assert puppet.shard.effects.take() == [ScheduleTimer(deadline, INITIAL_DELAY_MS)]
    puppet.shard.on_timer(deadline)
    effects = puppet.shard.effects.take()
    sessions = [MemberSession(GROUP, 1, member_id) for member_id in ("client-id1", "client-id2")]
    assert [effect for effect in effects if not isinstance(effect, Reply)] == [
        CancelTimer(deadline),
        ScheduleTimer(sessions[0], SESSION_MS),
        ScheduleTimer(sessions[1], SESSION_MS),
        ScheduleTimer(SyncDeadline(GROUP, 1, 1), REBALANCE_MS),
    ]
    assert [effect.waiter for effect in effects if isinstance(effect, Reply)] == [first, second]


def test_a_request_that_is_refused_has_no_effect(puppet: GroupPuppet) -> None:
    generation, (leader, _) = puppet.stable()
    before = puppet.timers.keys
    assert puppet.heartbeat(leader, generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert puppet.timers.keys == before


def test_no_two_kinds_of_timers_are_equal() -> None:
    kinds: tuple[Literal["session", "rebalance", "join", "sync"], ...] = ("session", "rebalance", "join", "sync")
    timers = [
        MemberSession("a", 1, "b"),
        JoinDeadline("a", 1),
        SyncDeadline("a", 1, 1),
        *(MemberTimeout("a", "b", kind) for kind in kinds),
        OffsetExpiration(),
    ]
    assert all(one != other for one, other in combinations(timers, 2))


def test_timers_of_a_group_that_was_deleted_do_not_reach_the_next_group_of_its_name(puppet: GroupPuppet) -> None:
    _, members = puppet.stable()
    puppet.join()
    timers = [key for key in puppet.timers.keys if not isinstance(key, OffsetExpiration)]
    assert {type(key) for key in timers} == {MemberSession, JoinDeadline}
    joined = [key.member_id for key in timers if isinstance(key, MemberSession)]
    puppet.leave(*((member_id, None) for member_id in joined))
    assert len(joined) == len(members) + 1
    with puppet.event() as shard:
        assert shard.offsets.delete_groups([GROUP]) == [ErrorCode.NONE]
    again = puppet.join()
    with puppet.event() as shard:
        for timer in timers:
            shard.on_timer(timer)
    assert again.is_open
    assert puppet.state == "PreparingRebalance"
    puppet.timers.wait(INITIAL_DELAY_MS)
    assert again.error is ErrorCode.NONE


def test_a_member_id_of_a_group_that_was_deleted_has_a_session_of_its_own_in_the_next() -> None:
    """Members of consumer groups choose their ids (KIP-1082)."""
    puppet = ConsumerPuppet()
    one = Consumer(puppet, "one")
    puppet.timers.wait(SETTINGS.session_timeout_ms - 1)
    one.leave()
    with puppet.event() as shard:
        assert shard.offsets.delete_groups([GROUP]) == [ErrorCode.NONE]
    assert not [key for key in puppet.timers.keys if isinstance(key, MemberTimeout)]
    Consumer(puppet, "one")
    puppet.timers.wait(SETTINGS.session_timeout_ms - 1)
    assert list(puppet.group.members) == ["one"]
    puppet.timers.wait(1)
    assert not puppet.group.members


def test_a_member_that_left_for_a_while_has_nothing_left_to_revoke() -> None:
    puppet = ConsumerPuppet({"topic": 2}, settings=SETTINGS._replace(session_timeout_ms=10**9))
    one = Consumer(puppet, "one", instance="static", rebalance_ms=REBALANCE_MS)
    Consumer(puppet, "two")
    one.puppet.beat("one", one.epoch, owned=one.owned, instance="static")
    timeout = MemberTimeout(GROUP, "one", "rebalance")
    assert timeout in puppet.timers.keys
    one.leave(-2)
    puppet.timers.wait(REBALANCE_MS)
    assert "one" in puppet.group.members
    assert timeout not in puppet.timers.keys
