"""What Apache Kafka's coordinator does for members of the consumer protocol (KIP-848), a rule at a time."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_puppet import REBALANCE_TIMEOUT_MS, Consumer, ConsumerPuppet, image_of, topic_id
from group_puppet import CONFIG, GROUP, SETTINGS

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.structs import replace

ALL = {("topic", partition) for partition in range(6)}


@pytest.fixture
def puppet() -> ConsumerPuppet:
    return ConsumerPuppet()


def refusal(puppet: ConsumerPuppet, *arguments: Any, **options: Any) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        puppet.beat(*arguments, **options)
    return caught.value


def test_a_first_member_has_all_partitions_at_once(puppet: ConsumerPuppet) -> None:
    response = puppet.join_consumer("one")
    assert (response.member_id, response.member_epoch) == ("one", 2)
    assert response.heartbeat_interval.total_seconds() == 5
    assert response.assignment is not None
    (assigned,) = response.assignment.topic_partitions
    assert assigned.topic_id == topic_id("topic")
    assert assigned.partitions == tuple(range(6))
    assert puppet.group.state.value == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    second = Consumer(puppet, "two")
    assert (second.epoch, second.partitions) == (3, set())
    assert puppet.group.state.value == "Reconciling"
    # Told to give up half, it has its epoch of before until it has.
    first.beat()
    assert (first.epoch, len(first.partitions)) == (2, 3)
    second.beat()
    assert second.partitions == set()
    first.beat()
    assert first.epoch == 3
    second.beat()
    assert second.partitions == ALL - first.partitions
    assert puppet.group.state.value == "Stable"


def test_an_assignment_is_told_when_it_changes_or_all_is_said(puppet: ConsumerPuppet) -> None:
    puppet.join_consumer("one")
    assert puppet.beat("one", 2).assignment is None
    assert puppet.beat("one", 2, owned={"topic": range(6)}).assignment is None
    full = puppet.beat("one", 2, owned={"topic": range(6)}, topics=["topic"], rebalance_ms=1_000)
    assert full.assignment is not None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rebalance_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {"topic": [1]}}, "TopicPartitions must be empty when (re-)joining."),
        ({"topics": None}, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."),
        ({"member": ""}, "MemberId can't be empty."),
        ({"instance": ""}, "InstanceId can't be empty."),
        ({"rack": ""}, "RackId can't be empty."),
        ({"epoch": -3}, "MemberEpoch is invalid."),
        ({"epoch": -2}, "InstanceId can't be null."),
    ],
)
def test_requests_that_say_too_little_are_refused(
    puppet: ConsumerPuppet, options: dict[str, Any], sentence: str
) -> None:
    said: dict[str, Any] = {"member": "one", "epoch": 0, "topics": ["topic"], "owned": {}, "rebalance_ms": 1, **options}
    error = refusal(puppet, **said)
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, sentence)


def test_a_member_of_version_0_is_given_an_id(puppet: ConsumerPuppet) -> None:
    response = puppet.join_consumer("", api_version=0)
    assert response.member_id == "id1"


def test_an_assignor_that_there_is_not_is_refused(puppet: ConsumerPuppet) -> None:
    error = refusal(puppet, "one", 0, topics=["topic"], owned={}, rebalance_ms=1, assignor="sticky")
    assert error.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert error.message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_the_assignor_that_most_members_name_is_used() -> None:
    puppet = ConsumerPuppet({"a": 3, "b": 3})
    members = [Consumer(puppet, name, topics=["a", "b"], assignor="range") for name in ("one", "two")]
    puppet.settle(*members)
    # Runs of partitions, of both topics alike.
    assert members[0].partitions == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
    third = Consumer(puppet, "three", topics=["a", "b"], assignor="range")
    puppet.settle(*members, third)
    assert third.partitions == {("a", 1), ("b", 1)}


def test_an_unknown_member_is_refused(puppet: ConsumerPuppet) -> None:
    assert refusal(puppet, "one", 1).code is ErrorCode.GROUP_ID_NOT_FOUND
    puppet.join_consumer("one")
    error = refusal(puppet, "two", 1)
    assert error.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert error.message == f"Member two is not a member of group {GROUP}."
    assert refusal(puppet, "two", -1).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_epoch_that_is_not_the_members_is_fenced(puppet: ConsumerPuppet) -> None:
    puppet.join_consumer("one")
    error = refusal(puppet, "one", 3, owned={})
    assert error.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert error.message == (
        "The consumer group member has a greater member epoch (3) than the one known by the group coordinator (2). "
        "The member must abandon all its partitions and rejoin."
    )


def test_the_epoch_before_is_good_when_the_answer_was_lost(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    second = Consumer(puppet, "two")
    first.beat()
    lost = puppet.beat("one", first.epoch, owned=first.owned)
    assert lost.member_epoch == 3
    assert puppet.beat("one", 2, owned=first.owned).member_epoch == 3
    # With what it must have given up, it has not understood.
    assert refusal(puppet, "one", 2, owned={"topic": range(6)}).code is ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal(puppet, "one", 2).code is ErrorCode.FENCED_MEMBER_EPOCH
    assert second.partitions == set()


def test_a_member_that_begins_anew_keeps_its_partitions(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    second = Consumer(puppet, "two")
    puppet.settle(first, second)
    again = puppet.join_consumer("two")
    assert again.member_epoch == 3
    assert again.assignment is not None
    assert {("topic", int(one)) for one in again.assignment.topic_partitions[0].partitions} == second.partitions


def test_partitions_of_a_member_that_leaves_are_given_to_others(puppet: ConsumerPuppet) -> None:
    first, second = Consumer(puppet, "one"), Consumer(puppet, "two")
    puppet.settle(first, second)
    second.leave()
    assert puppet.group.epoch == 4
    assert puppet.group.state.value == "Assigning"
    puppet.settle(first)
    assert first.partitions == ALL
    assert first.epoch == 4


def test_a_member_that_is_not_heard_is_removed_after_its_session(puppet: ConsumerPuppet) -> None:
    first, second = Consumer(puppet, "one"), Consumer(puppet, "two")
    puppet.settle(first, second)
    puppet.timers.wait(SETTINGS.session_timeout_ms - 1)
    first.beat()
    puppet.timers.wait(1)
    assert list(puppet.group.members) == ["one"]
    puppet.settle(first)
    assert first.partitions == ALL


def test_a_member_that_does_not_give_up_in_time_is_removed(puppet: ConsumerPuppet) -> None:
    first, second = Consumer(puppet, "one"), Consumer(puppet, "two")
    first.beat()
    stubborn = {"topic": range(6)}
    for _ in range(5):
        puppet.timers.wait(REBALANCE_TIMEOUT_MS // 6)
        puppet.beat("one", 2, owned=stubborn)
        second.beat()
    puppet.timers.wait(REBALANCE_TIMEOUT_MS // 6)
    assert list(puppet.group.members) == ["two"]
    puppet.settle(second)
    assert second.partitions == ALL


def test_a_member_that_gives_up_in_time_stays(puppet: ConsumerPuppet) -> None:
    first, second = Consumer(puppet, "one"), Consumer(puppet, "two")
    first.beat()
    first.beat()
    for _ in range(4):
        puppet.timers.wait(REBALANCE_TIMEOUT_MS // 2)
        puppet.settle(first, second)
    assert len(puppet.group.members) == 2


def test_a_removal_that_could_not_be_written_is_tried_again(puppet: ConsumerPuppet) -> None:
    puppet.join_consumer("one")
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaError):
        puppet.timers.wait(SETTINGS.session_timeout_ms)
    assert list(puppet.group.members) == ["one"]
    puppet.timers.wait(1_000)
    assert not puppet.group.members


def test_a_heartbeat_that_could_not_be_written_changes_nothing(puppet: ConsumerPuppet) -> None:
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refusal(puppet, "one", 0, topics=["topic"], owned={}, rebalance_ms=1).code is (
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    assert puppet.shard.groups.find_consumer(GROUP) is None


def test_a_group_has_so_many_members_at_most() -> None:
    config = replace(CONFIG, consumer=replace(CONFIG.consumer, max_size=1))
    puppet = ConsumerPuppet(config=config)
    puppet.join_consumer("one")
    error = refusal(puppet, "two", 0, topics=["topic"], owned={}, rebalance_ms=1)
    assert error.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert error.message == "The consumer group has reached its maximum capacity of 1 members."
    assert puppet.join_consumer("one").error_code == 0


def test_more_members_than_partitions_leave_some_idle_who_take_over(puppet: ConsumerPuppet) -> None:
    puppet = ConsumerPuppet({"topic": 2})
    members = [Consumer(puppet, str(number)) for number in range(4)]
    puppet.settle(*members)
    assert sorted(len(member.partitions) for member in members) == [0, 0, 1, 1]
    busy = next(member for member in members if member.partitions)
    members.remove(busy)
    busy.leave()
    puppet.settle(*members)
    assert sorted(len(member.partitions) for member in members) == [0, 1, 1]


# Static members.


def test_a_static_member_that_comes_back_has_what_it_had(puppet: ConsumerPuppet) -> None:
    first, second = Consumer(puppet, "one", instance="i1"), Consumer(puppet, "two", instance="i2")
    puppet.settle(first, second)
    had, epoch = second.partitions, puppet.group.epoch
    second.leave(-2)
    first.beat()
    assert len(first.partitions) == 3
    back = Consumer(puppet, "three", instance="i2")
    assert back.partitions == had
    assert (back.epoch, puppet.group.epoch) == (epoch, epoch)
    assert list(puppet.group.members) == ["one", "three"]


def test_an_instance_that_is_in_use_is_not_given_to_another(puppet: ConsumerPuppet) -> None:
    Consumer(puppet, "one", instance="i1")
    error = refusal(puppet, "two", 0, topics=["topic"], owned={}, rebalance_ms=1, instance="i1")
    assert error.code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert error.message == (
        "Static member two with instance id i1 cannot join the group because the instance id is owned by one member."
    )


@pytest.mark.parametrize("left_epoch", [None, -2])
def test_a_static_member_that_joins_again_with_its_own_id_has_what_it_had(
    puppet: ConsumerPuppet, left_epoch: int | None
) -> None:
    """The answer to its join was lost, or it has left for a while and comes back in the same process."""
    first, second = Consumer(puppet, "one", instance="i1"), Consumer(puppet, "two", instance="i2")
    puppet.settle(first, second)
    had, epoch = second.partitions, puppet.group.epoch
    if left_epoch is not None:
        second.leave(left_epoch)
    again = Consumer(puppet, "two", instance="i2")
    assert (again.partitions, again.epoch) == (had, epoch)
    for coordinator in (puppet, puppet.successor()):
        assert coordinator.group.static_members == {"i1": "one", "i2": "two"}
        assert coordinator.group.epoch == epoch
        assert coordinator.group.topic_counts["topic"] == 2


def test_a_static_member_that_joins_again_while_it_gives_up_partitions_has_given_them_up(
    puppet: ConsumerPuppet,
) -> None:
    Consumer(puppet, "one", instance="i1")
    second = Consumer(puppet, "two", instance="i2")
    puppet.beat("one", 2, owned={"topic": range(6)}, instance="i1")
    again = Consumer(puppet, "one", instance="i1")
    assert len(again.partitions) == 3
    puppet.settle(again, second)
    assert len(second.partitions) == 3


def test_a_static_member_that_was_replaced_is_fenced(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one", instance="i1")
    first.leave(-2)
    Consumer(puppet, "two", instance="i1")
    assert refusal(puppet, "one", 1, instance="i1").code is ErrorCode.FENCED_INSTANCE_ID
    assert refusal(puppet, "one", 1, instance="i9").code is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(puppet, "one", -1, instance="i1").code is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_that_a_member_gave_up_for_another_is_free(puppet: ConsumerPuppet) -> None:
    Consumer(puppet, "one", instance="i1")
    one = Consumer(puppet, "one", instance="i2")
    for coordinator in (puppet, puppet.successor()):
        assert coordinator.group.static_members == {"i2": "one"}
    assert Consumer(puppet, "two", instance="i1").epoch
    one.leave()
    assert puppet.group.static_members == {"i1": "two"}


def test_a_static_member_that_does_not_come_back_is_removed_after_its_session(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one", instance="i1")
    first.leave(-2)
    puppet.timers.wait(SETTINGS.session_timeout_ms)
    assert not puppet.group.members
    assert puppet.group.state.value == "Empty"


# What the group reads.


def test_new_partitions_are_assigned_with_the_next_heartbeat(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    puppet.change_topics({"topic": 8})
    first.beat()
    assert first.partitions == {("topic", partition) for partition in range(8)}
    assert puppet.group.epoch == 3


def test_nothing_is_remembered_of_topics_that_are_deleted_without_subscribers(puppet: ConsumerPuppet) -> None:
    for number in range(3):
        puppet.change_topics({"topic": 6, f"reply-{number}": 1}, are_some_new=True)
        one = Consumer(puppet, "one", topics=[f"reply-{number}"])
        one.leave()
    puppet.change_topics({"topic": 6})
    assert puppet.shard.consumer.topics.remembered_count == 0


def test_a_topic_that_comes_later_is_assigned(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one", topics=["topic", "later"])
    assert first.partitions == ALL
    puppet.change_topics({"topic": 6, "later": 1}, are_some_new=True)
    first.beat()
    assert first.partitions == {*ALL, ("later", 0)}


def test_a_topic_that_is_deleted_is_taken_away(puppet: ConsumerPuppet) -> None:
    puppet = ConsumerPuppet({"topic": 2, "other": 1})
    first = Consumer(puppet, "one", topics=["topic", "other"])
    puppet.change_topics({"topic": 2})
    first.beat()
    assert first.partitions == {("topic", 0), ("topic", 1)}


def test_metadata_that_changes_nothing_for_the_group_raises_no_epoch(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    puppet.change_topics({"topic": 6, "unrelated": 1}, are_some_new=True)
    first.beat()
    assert puppet.group.epoch == 2


def test_racks_that_change_raise_the_epoch(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    puppet.image = image_of({"topic": 6}, offset=2, racks={1: "here", 2: "there"})
    puppet.shard.consumer.on_topics_changed({"topic"}, are_some_new=False)
    first.beat()
    assert puppet.group.epoch == 3


def test_a_topic_that_is_no_longer_read_is_given_up_before_there_is_a_new_assignment() -> None:
    puppet = ConsumerPuppet({"a": 1, "b": 1}, settings=SETTINGS._replace(assignment_interval_ms=1_000))
    first = Consumer(puppet, "one", topics=["a", "b"])
    response = puppet.beat("one", first.epoch, owned=first.owned, topics=["a"])
    assert response.assignment is not None
    assert [topic.topic_id for topic in response.assignment.topic_partitions] == [topic_id("a")]
    assert puppet.group.target_epoch < puppet.group.epoch


def test_target_assignments_are_made_no_more_often_than_configured() -> None:
    puppet = ConsumerPuppet(settings=SETTINGS._replace(assignment_interval_ms=1_000))
    first = Consumer(puppet, "one")
    second = Consumer(puppet, "two")
    assert (puppet.group.epoch, puppet.group.target_epoch) == (3, 2)
    puppet.timers.wait(1_000)
    puppet.settle(first, second)
    assert puppet.group.target_epoch == 3
    assert len(second.partitions) == 3


def test_a_coordinator_whose_clock_was_ahead_holds_up_no_target_assignment() -> None:
    ahead = ConsumerPuppet(settings=SETTINGS._replace(assignment_interval_ms=1_000), now_ms=3_600_000)
    first = Consumer(ahead, "one")
    puppet = ahead.successor()
    puppet.timers.now_ms = 1_000
    second = Consumer(puppet, "two")
    assert puppet.group.target_epoch == puppet.group.epoch == first.epoch + 1
    assert second.epoch == puppet.group.epoch


# What a later coordinator knows.


def test_a_successor_knows_all_of_it(puppet: ConsumerPuppet) -> None:
    first, second = Consumer(puppet, "one", instance="i1"), Consumer(puppet, "two")
    first.beat()
    successor = puppet.successor()
    assert successor.group.members == puppet.group.members
    assert successor.group.targets == puppet.group.targets
    assert successor.group.topic_counts == puppet.group.topic_counts
    assert (successor.group.epoch, successor.group.target_epoch) == (puppet.group.epoch, puppet.group.target_epoch)
    assert successor.group.metadata_hash == puppet.group.metadata_hash
    first.puppet = second.puppet = successor
    successor.settle(first, second)
    assert successor.group.epoch == puppet.group.epoch
    assert len(second.partitions) == 3


def test_sessions_and_revocations_begin_anew_at_a_successor(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    Consumer(puppet, "two")
    first.beat()
    puppet.timers.wait(SETTINGS.session_timeout_ms - 1)
    successor = puppet.successor()
    successor.timers.wait(SETTINGS.session_timeout_ms - 2)
    assert len(successor.group.members) == 2
    successor.beat("one", 2, owned={"topic": range(6)})
    successor.timers.wait(REBALANCE_TIMEOUT_MS - SETTINGS.session_timeout_ms + 1)
    assert "one" in successor.group.members
    successor.timers.wait(1)
    assert "one" not in successor.group.members


def test_a_deleted_group_is_gone_for_a_successor(puppet: ConsumerPuppet) -> None:
    first = Consumer(puppet, "one")
    assert puppet.shard.offsets.delete_groups([GROUP]) == [ErrorCode.NON_EMPTY_GROUP]
    first.leave()
    assert puppet.shard.offsets.delete_groups([GROUP]) == [ErrorCode.NONE]
    assert puppet.shard.groups.find_consumer(GROUP) is None
    assert puppet.successor().shard.groups.find_consumer(GROUP) is None
