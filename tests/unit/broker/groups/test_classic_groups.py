"""What Apache Kafka's coordinator does for groups of the classic protocol, a rule at a time."""

import pytest
from group_puppet import (
    CONFIG,
    GROUP,
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    GroupPuppet,
)

from penstock.broker.groups.classic.records import GROUP_METADATA_KEY, GROUP_METADATA_VALUE
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.structs import replace


@pytest.fixture
def puppet() -> GroupPuppet:
    return GroupPuppet()


def test_a_first_rebalance_waits_for_others_who_start_now(puppet: GroupPuppet) -> None:
    first = puppet.join()
    puppet.timers.wait(INITIAL_DELAY_MS - 1)
    second = puppet.join()
    puppet.timers.wait(INITIAL_DELAY_MS)
    assert first.is_open
    assert second.is_open
    puppet.timers.wait(1)
    assert first.answer.generation_id == second.answer.generation_id == 1
    assert [member.member_id for member in first.answer.members] == ["client-id1", "client-id2"]
    assert second.answer.members == ()
    assert first.answer.leader == second.answer.leader == "client-id1"


def test_the_wait_for_others_goes_on_when_one_leaves(puppet: GroupPuppet) -> None:
    stays, leaves = puppet.join(), puppet.join()
    assert puppet.leave(("client-id2", None)) == [ErrorCode.NONE]
    assert leaves.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert stays.is_open
    assert puppet.leave(("client-id1", None)) == [ErrorCode.NONE]
    assert puppet.state == "Empty"


def test_the_wait_for_others_ends_with_the_rebalance_timeout(puppet: GroupPuppet) -> None:
    joins = [puppet.join(rebalance_ms=5_000)]
    for _ in range(8):
        puppet.timers.wait(1_000)
        joins.append(puppet.join(rebalance_ms=5_000))
    assert not joins[0].is_open


def test_every_member_hears_its_part_when_the_leader_has_assigned(puppet: GroupPuppet) -> None:
    joins = [puppet.join(), puppet.join()]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    leader, follower = (join.answer.member_id for join in joins)
    waiting = puppet.sync(follower, 1)
    assert waiting.is_open
    assert puppet.sync(leader, 1, {leader: b"a", follower: b"b"}).answer.assignment == b"a"
    assert waiting.answer.assignment == b"b"
    assert puppet.state == "Stable"
    assert puppet.sync(follower, 1).answer.assignment == b"b"


def test_a_member_that_the_leader_forgot_gets_an_empty_part(puppet: GroupPuppet) -> None:
    joins = [puppet.join(), puppet.join()]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    leader, follower = (join.answer.member_id for join in joins)
    puppet.sync(leader, 1, {leader: b"a"})
    assert puppet.sync(follower, 1).answer.assignment == b""


def test_a_dynamic_member_is_told_its_id_first(puppet: GroupPuppet) -> None:
    asked = puppet.join(requires_member_id=True)
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    joined = puppet.join(asked.answer.member_id, requires_member_id=True)
    puppet.timers.wait(INITIAL_DELAY_MS)
    assert joined.answer.member_id == asked.answer.member_id
    assert joined.error is ErrorCode.NONE


def test_a_member_that_never_comes_back_with_its_id_holds_up_no_rebalance(puppet: GroupPuppet) -> None:
    generation, (leader, _) = puppet.stable()
    puppet.join(requires_member_id=True)
    again = puppet.join(leader)
    follower = puppet.join("client-id2")
    assert again.is_open
    puppet.timers.wait(SESSION_MS)
    assert again.answer.generation_id == follower.answer.generation_id == generation + 1


def test_a_member_of_no_group_or_of_another_is_unknown(puppet: GroupPuppet) -> None:
    assert puppet.join("nobody").error is ErrorCode.UNKNOWN_MEMBER_ID
    puppet.stable()
    assert puppet.join("nobody").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert puppet.heartbeat("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError) as raised:
        puppet.sync("nobody", 1)
    assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_without_a_common_protocol_is_refused(puppet: GroupPuppet) -> None:
    puppet.stable(protocols={"range": b"", "sticky": b""})
    assert puppet.join(protocols={"other": b""}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert puppet.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert puppet.join(protocols={"other": b"", "sticky": b""}).is_open


def test_a_member_that_names_a_protocol_twice_is_one_that_knows_it(puppet: GroupPuppet) -> None:
    generation, (member,) = puppet.stable(1)
    twice = puppet.join(protocols=[("range", b"a"), ("range", b"b")])
    again = puppet.join(member)
    assert (again.error, twice.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert again.answer.generation_id == generation + 1
    assert [one.metadata for one in again.answer.members] == [b"meta", b"a"]


def test_the_protocol_is_the_one_that_all_know_and_most_like_best(puppet: GroupPuppet) -> None:
    joins = [
        puppet.join(protocols={"alone": b"", "range": b"", "sticky": b""}),
        puppet.join(protocols={"sticky": b"", "range": b""}),
        puppet.join(protocols={"sticky": b"", "range": b""}),
    ]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    assert {join.answer.protocol_name for join in joins} == {"sticky"}


def test_who_speaks_for_another_generation_is_refused(puppet: GroupPuppet) -> None:
    generation, (leader, _) = puppet.stable()
    assert puppet.heartbeat(leader, generation) is ErrorCode.NONE
    assert puppet.heartbeat(leader, generation - 1) is ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(KafkaError) as raised:
        puppet.sync(leader, generation + 1)
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION


def test_heartbeats_tell_of_a_rebalance(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    newcomer = puppet.join()
    assert puppet.heartbeat(leader, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    with pytest.raises(KafkaError) as raised:
        puppet.sync(leader, generation)
    assert raised.value.code is ErrorCode.REBALANCE_IN_PROGRESS
    again = [puppet.join(leader), puppet.join(follower)]
    assert {join.answer.generation_id for join in [*again, newcomer]} == {generation + 1}


def test_members_that_do_not_join_again_are_removed_with_the_rebalance_timeout(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    newcomer = puppet.join()
    again = puppet.join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        assert again.is_open
        puppet.heartbeat(follower, generation)
        puppet.timers.wait(5_000)
    assert [member.member_id for member in again.answer.members] == [leader, newcomer.answer.member_id]
    assert puppet.heartbeat(follower, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_without_heartbeats_is_removed_with_its_session(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    puppet.timers.wait(SESSION_MS - 1)
    puppet.heartbeat(leader, generation)
    puppet.timers.wait(1)
    assert puppet.heartbeat(follower, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert puppet.heartbeat(leader, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert puppet.join(leader).answer.generation_id == generation + 1


def test_who_waits_for_an_answer_needs_no_heartbeats(puppet: GroupPuppet) -> None:
    joins = [puppet.join(), puppet.join()]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    follower = joins[1].answer.member_id
    waiting = puppet.sync(follower, 1)
    for _ in range(4):
        puppet.timers.wait(SESSION_MS // 2)
        puppet.heartbeat(joins[0].answer.member_id, 1)
    assert waiting.is_open
    puppet.sync(joins[0].answer.member_id, 1, {follower: b"b"})
    assert waiting.answer.assignment == b"b"


def test_members_that_do_not_ask_for_their_part_are_removed(puppet: GroupPuppet) -> None:
    joins = [puppet.join(), puppet.join()]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    leader, silent = (join.answer.member_id for join in joins)
    puppet.sync(leader, 1, {leader: b"a"})
    for _ in range(REBALANCE_MS // 5_000):
        puppet.heartbeat(leader, 1)
        puppet.heartbeat(silent, 1)
        puppet.timers.wait(5_000)
    assert puppet.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert puppet.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_leaves_is_gone_at_once(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    assert puppet.leave((follower, None), ("nobody", None)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    again = puppet.join(leader)
    assert again.answer.generation_id == generation + 1
    assert [member.member_id for member in again.answer.members] == [leader]


def test_the_leader_leaves_and_another_leads(puppet: GroupPuppet) -> None:
    _, (leader, follower) = puppet.stable()
    puppet.leave((leader, None))
    assert puppet.join(follower).answer.leader == follower


def test_a_group_that_all_have_left_is_empty_and_written(puppet: GroupPuppet) -> None:
    generation, members = puppet.stable()
    puppet.leave(*[(member, None) for member in members])
    assert puppet.state == "Empty"
    successor = puppet.restarted()
    assert successor.state == "Empty"
    joined = successor.join()
    successor.timers.wait(INITIAL_DELAY_MS)
    assert joined.answer.generation_id == generation + 2


def test_a_follower_that_joins_again_with_the_same_hears_the_same_generation(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    assert puppet.join(follower).answer.generation_id == generation
    assert puppet.state == "Stable"
    assert puppet.join(leader).is_open
    assert puppet.state == "PreparingRebalance"


def test_a_follower_that_joins_again_with_something_else_makes_a_rebalance(puppet: GroupPuppet) -> None:
    _, (_, follower) = puppet.stable()
    assert puppet.join(follower, protocols={"range": b"other"}).is_open
    assert puppet.state == "PreparingRebalance"


def test_a_group_has_no_more_members_than_it_may() -> None:
    puppet = GroupPuppet(config=replace(CONFIG, group_max_size=2))
    _, (leader, _) = puppet.stable()
    assert puppet.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert puppet.join(leader).is_open


def test_a_static_member_that_comes_back_gets_what_it_had_without_a_rebalance(puppet: GroupPuppet) -> None:
    generation, (old,) = puppet.stable(1, instance_id="one")
    back = puppet.join(instance_id="one")
    assert back.answer.generation_id == generation
    assert back.answer.skip_assignment
    new = back.answer.member_id
    assert new != old
    assert puppet.sync(new, generation, instance_id="one").answer.assignment == old.encode()
    assert puppet.heartbeat(old, generation, "one") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_comes_back_before_it_asked_for_its_part_makes_no_rebalance(puppet: GroupPuppet) -> None:
    joins = [puppet.join(), puppet.join(instance_id="one")]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    leader, old = (join.answer.member_id for join in joins)
    assert puppet.sync(leader, 1, {leader: b"a", old: b"b"}).error is ErrorCode.NONE
    new = puppet.join(instance_id="one").answer.member_id
    assert puppet.sync(new, 1, instance_id="one").answer.assignment == b"b"
    for _ in range(0, 2 * REBALANCE_MS, SESSION_MS // 2):
        puppet.timers.wait(SESSION_MS // 2)
        assert puppet.heartbeat(leader, 1) is ErrorCode.NONE
        assert puppet.heartbeat(new, 1, "one") is ErrorCode.NONE


def test_a_static_leader_of_an_older_client_is_not_told_that_it_leads(puppet: GroupPuppet) -> None:
    generation, (old,) = puppet.stable(1, instance_id="one")
    back = puppet.join(instance_id="one", may_skip_assignment=False)
    assert back.answer.generation_id == generation
    assert back.answer.leader == old != back.answer.member_id
    assert not back.answer.skip_assignment
    assert back.answer.members == ()


def test_a_static_member_that_comes_back_while_others_join_fences_its_predecessor(puppet: GroupPuppet) -> None:
    _, (leader,) = puppet.stable(1, instance_id="one")
    other = puppet.join()
    waiting = puppet.join(leader, instance_id="one")
    assert waiting.answer.generation_id == 2
    back = puppet.join(instance_id="one")
    assert puppet.heartbeat(leader, 2, "one") is ErrorCode.FENCED_INSTANCE_ID
    assert back.is_open
    assert puppet.join(other.answer.member_id).answer.generation_id == back.answer.generation_id == 3


def test_a_static_member_may_be_away_for_its_session(puppet: GroupPuppet) -> None:
    generation, _ = puppet.stable(1)
    joined = puppet.join(instance_id="one", session_ms=90_000)
    again = puppet.join("client-id1")
    assert joined.answer.generation_id == again.answer.generation_id == generation + 1
    puppet.sync("client-id1", generation + 1, {})
    puppet.sync(joined.answer.member_id, generation + 1, instance_id="one")
    puppet.leave(("client-id1", None))
    newcomer = puppet.join()
    puppet.timers.wait(REBALANCE_MS)
    assert newcomer.answer.generation_id == generation + 2
    assert {member.group_instance_id for member in newcomer.answer.members} == {None, "one"}


def test_a_static_member_is_removed_by_its_instance(puppet: GroupPuppet) -> None:
    puppet.stable(1, instance_id="one")
    assert puppet.leave(("", "two"), ("", "one")) == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert puppet.state == "Empty"


def test_a_static_member_that_is_removed_while_it_waits_is_told(puppet: GroupPuppet) -> None:
    joins = [puppet.join(instance_id="one"), puppet.join(instance_id="two")]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    _, follower = (join.answer.member_id for join in joins)
    waiting = puppet.sync(follower, 1, instance_id="two")
    assert waiting.is_open
    assert puppet.leave(("", "two")) == [ErrorCode.NONE]
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_assignment_that_is_not_written_reaches_no_member(puppet: GroupPuppet) -> None:
    joins = [puppet.join(), puppet.join()]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    leader, follower = (join.answer.member_id for join in joins)
    waiting = puppet.sync(follower, 1)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert puppet.sync(leader, 1, {leader: b"a", follower: b"b"}).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert puppet.state == "PreparingRebalance"


def test_a_static_member_that_is_not_written_does_not_take_the_place(puppet: GroupPuppet) -> None:
    generation, (old,) = puppet.stable(1, instance_id="one")
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert puppet.join(instance_id="one").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert puppet.heartbeat(old, generation, "one") is ErrorCode.NONE
    puppet.timers.wait(SESSION_MS)
    assert puppet.state == "Empty"


def test_a_group_that_is_not_written_is_not_there(puppet: GroupPuppet) -> None:
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(AssertionError, match="COORDINATOR_NOT_AVAILABLE"):
        puppet.join()
    assert puppet.shard.groups.find(GROUP) is None


def test_a_new_coordinator_goes_on_with_the_generation_and_its_parts(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    successor = puppet.restarted()
    assert successor.state == "Stable"
    assert successor.heartbeat(leader, generation) is ErrorCode.NONE
    assert successor.sync(follower, generation).answer.assignment == follower.encode()
    successor.timers.wait(SESSION_MS)
    assert successor.state == "Empty"


def test_waiting_members_are_told_when_the_coordinator_moves(puppet: GroupPuppet) -> None:
    joined = puppet.join()
    puppet.unload()
    assert joined.error is ErrorCode.NOT_COORDINATOR


def test_a_join_that_is_sent_again_replaces_the_one_that_waits(puppet: GroupPuppet) -> None:
    _, (leader, _) = puppet.stable()
    first = puppet.join(leader)
    second = puppet.join(leader)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.is_open


def test_records_are_those_of_apache_kafka(puppet: GroupPuppet) -> None:
    puppet.stable(1)
    record = puppet.log.records[-1]
    assert record.value is not None
    assert GROUP_METADATA_KEY.read(record.key) == (GROUP,)
    value = GROUP_METADATA_VALUE.read(record.value)
    assert value.members[0].assignment == b"client-id1"
    # Version 3: "consumer", generation 1, "range", the leader, the time, one member.
    assert record.key == b"\0\2\0\5group"
    assert record.value.startswith(b"\0\3\0\10consumer\0\0\0\1\0\5range\0\12client-id1")
