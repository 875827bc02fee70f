"""Live groups that change their protocol, and members of the classic protocol in a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import pack

import pytest
from consumer_puppet import Consumer, ConsumerPuppet
from group_puppet import CONFIG, GROUP, INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, SETTINGS

from penstock.broker.configuration.consumer_config import MigrationPolicy
from penstock.broker.groups.classic.embedded_protocol import read_assignment, read_subscription, write_assignment
from penstock.broker.groups.classic.timers import JoinDeadline
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.structs import replace

ALL = {("topic", partition) for partition in range(6)}
INTERVAL_MS = 1_000


def with_policy(policy: MigrationPolicy) -> ConsumerPuppet:
    return ConsumerPuppet(config=replace(CONFIG, consumer=replace(CONFIG.consumer, migration_policy=policy)))


@pytest.fixture(params=[0, INTERVAL_MS], ids=["assigned at once", "assigned each second"])
def puppet(request: pytest.FixtureRequest) -> ConsumerPuppet:
    """With the default of `group.consumer.assignment.interval.ms`, and with none."""
    return ConsumerPuppet(settings=SETTINGS._replace(assignment_interval_ms=request.param))


def subscription(topics: Sequence[str] = ("topic",), owned: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """As Java consumers write version 1."""
    data = pack(">hi", 1, len(topics))
    data += b"".join(pack(">h", len(topic)) + topic.encode() for topic in topics) + pack(">i", -1)
    return data + write_assignment(owned or {}, 1)[2:-4]


class ClassicConsumer:
    """A member of the classic protocol that does as it is told; cooperative, so that it says what it owns."""

    def __init__(self, puppet: ConsumerPuppet, *, instance: str | None = None) -> None:
        self.puppet = puppet
        self.instance = instance
        self.owned: dict[str, tuple[int, ...]] = {}
        self.generation = -1
        self.id = ""
        if instance is None:
            self.id = self.join(requires_member_id=True).answer.member_id

    def join(self, *, requires_member_id: bool = False):  # type: ignore[no-untyped-def]
        protocols = {"cooperative-sticky": subscription(owned=self.owned)}
        waiting = self.puppet.join(
            self.id, protocols=protocols, instance_id=self.instance, requires_member_id=requires_member_id
        )
        if not waiting.is_open and waiting.error is ErrorCode.NONE:
            self.id = waiting.answer.member_id
            self.generation = waiting.answer.generation_id
        return waiting

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> ErrorCode:
        try:
            waiting = self.puppet.sync(
                self.id, self.generation, assignments, instance_id=self.instance, protocol_name="cooperative-sticky"
            )
        except KafkaError as error:
            return error.code
        if waiting.error is ErrorCode.NONE:
            self.owned = read_assignment(waiting.answer.assignment).partitions
        return waiting.error

    def beat(self) -> ErrorCode:
        return self.puppet.heartbeat(self.id, self.generation, self.instance)

    def follow(self) -> None:
        """As often as it is told to join again."""
        for _ in range(10):
            if self.beat() is not ErrorCode.REBALANCE_IN_PROGRESS:
                return
            assert self.join().error is ErrorCode.NONE
            self.sync()
        raise AssertionError("it is never told that all is well")

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(topic, one) for topic, of_topic in self.owned.items() for one in of_topic}


def classic_group(puppet: ConsumerPuppet, count: int = 2) -> list[ClassicConsumer]:
    """Stable, with all partitions divided."""
    members = [ClassicConsumer(puppet) for _ in range(count)]
    joins = [member.join() for member in members]
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    for member, join in zip(members, joins, strict=True):
        member.generation = join.answer.generation_id
    assignments = {
        member.id: write_assignment({"topic": range(number, 6, count)}, 1) for number, member in enumerate(members)
    }
    members[0].sync(assignments)
    for member in members:
        assert member.sync() is ErrorCode.NONE
    return members


def settle(consumers: Sequence[Consumer], classics: Sequence[ClassicConsumer]) -> None:
    for _ in range(4):
        puppet = consumers[0].puppet if consumers else classics[0].puppet
        puppet.timers.wait(puppet.settings.assignment_interval_ms)
        for classic in classics:
            classic.follow()
        for consumer in consumers:
            consumer.beat()
            consumer.beat()


def check_shared(*members: Consumer | ClassicConsumer) -> None:
    owned = [one for member in members for one in member.partitions]
    assert len(owned) == len(set(owned))
    assert set(owned) == ALL


# What they say to each other.


def test_subscriptions_and_assignments_are_read_as_they_are_written() -> None:
    data = subscription(["a", "b"], {"a": [1, 2]})
    assert read_subscription(data) == (1, ("a", "b"), (("a", (1, 2)),), None)
    with_rack = pack(">hi", 3, 0) + pack(">i", -1) + pack(">i", 0) + pack(">i", 7) + pack(">h", 2) + b"r1"
    assert read_subscription(with_rack) == (3, (), (), "r1")
    assigned = write_assignment({"a": [3]}, 0)
    assert read_assignment(assigned) == ({"a": (3,)}, b"")
    assert read_assignment(assigned[:-4] + pack(">i", 2) + b"xy") == ({"a": (3,)}, b"xy")
    assert read_assignment(b"") == ({}, b"")
    for garbage in (b"", b"\0", data[:-2]):
        with pytest.raises(CorruptData):
            read_subscription(garbage)
    for garbage in (b"\0\0\0", assigned[:-4], assigned[:-4] + pack(">i", 2) + b"x", b"\xff\xff" + assigned[2:]):
        with pytest.raises(CorruptData):
            read_assignment(garbage)


# Members of the classic protocol in a consumer group.


def test_a_classic_member_joins_a_consumer_group_and_is_led_by_the_coordinator(puppet: ConsumerPuppet) -> None:
    consumer = Consumer(puppet, "one")
    classic = ClassicConsumer(puppet)
    join = classic.join()
    assert join.answer.leader == ""
    assert join.answer.members == ()
    assert join.answer.protocol_name == "cooperative-sticky"
    assert classic.sync() is ErrorCode.NONE
    assert classic.owned == {}
    assert classic.beat() is ErrorCode.NONE
    settle([consumer], [classic])
    check_shared(consumer, classic)
    assert len(classic.partitions) == 3
    assert puppet.group.state.value == "Stable"


def test_a_classic_member_is_told_to_join_again_when_the_group_changes(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    classic.sync()
    settle([consumer], [classic])
    another = Consumer(puppet, "two")
    assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.sync() is ErrorCode.REBALANCE_IN_PROGRESS
    settle([consumer, another], [classic])
    check_shared(consumer, another, classic)


def test_a_classic_member_that_joins_between_two_target_assignments_waits_for_the_next_one() -> None:
    """As in Apache Kafka, which compares with the epoch of the target assignment, not with that of the group."""
    puppet = ConsumerPuppet(settings=SETTINGS._replace(assignment_interval_ms=INTERVAL_MS))
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    joined = classic.join().answer
    assert puppet.group.epoch > puppet.group.target_epoch == joined.generation_id
    for _ in range(2):
        assert classic.sync() is ErrorCode.NONE
        assert classic.owned == {}
        assert classic.beat() is ErrorCode.NONE
    consumer.beat()
    puppet.timers.wait(INTERVAL_MS)
    assert classic.beat() is ErrorCode.NONE, "the members of the consumer protocol have the target assignment made"
    consumer.beat()
    assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.sync() is ErrorCode.REBALANCE_IN_PROGRESS
    settle([consumer], [classic])
    check_shared(consumer, classic)


def test_classic_members_alone_in_a_consumer_group_join_again_for_the_next_target_assignment() -> None:
    """A member of the consumer protocol, whose heartbeat would make it, is not there any more."""
    puppet = with_policy(MigrationPolicy.UPGRADE)
    puppet.settings = SETTINGS._replace(assignment_interval_ms=INTERVAL_MS)
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one")
    settle([consumer], classics)
    another = Consumer(puppet, "two")
    for _ in range(4):
        for classic in classics:
            classic.follow()
        consumer.beat()
        another.beat()
    another.leave()
    consumer.leave()
    assert [classic.beat() for classic in classics] == [ErrorCode.NONE] * 2, "the last one was made just now"
    puppet.timers.wait(INTERVAL_MS)
    assert [classic.beat() for classic in classics] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    settle([], classics)
    check_shared(*classics)
    assert [classic.beat() for classic in classics] == [ErrorCode.NONE] * 2


def test_a_classic_member_that_does_not_join_again_in_time_is_removed(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    classic.sync()
    settle([consumer], [classic])
    Consumer(puppet, "two")
    for _ in range(REBALANCE_MS // (SESSION_MS // 2)):
        assert classic.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        puppet.timers.wait(SESSION_MS // 2)
        consumer.beat()
    assert classic.id not in puppet.group.members


def test_a_classic_member_that_does_not_sync_in_time_is_removed(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    for _ in range(REBALANCE_MS // (SESSION_MS // 2)):
        classic.beat()
        puppet.timers.wait(SESSION_MS // 2)
        consumer.beat()
    assert list(puppet.group.members) == ["one"]


def test_a_classic_member_that_was_removed_gives_up_what_it_had(puppet: ConsumerPuppet) -> None:
    """With the generation of another join it could commit offsets of what others have by now."""
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    classic.sync()
    settle([consumer], [classic])
    puppet.timers.wait(SESSION_MS)
    consumer.beat()
    assert consumer.partitions == ALL
    with pytest.raises(AssertionError, match="UNKNOWN_MEMBER_ID"):
        classic.join()
    classic.owned = {}
    assert classic.join().error is ErrorCode.NONE


def test_a_classic_member_has_the_session_that_it_asked_for(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    classic.sync()
    settle([consumer], [classic])
    successor = puppet.successor()
    for coordinator in (puppet, successor):
        coordinator.timers.wait(SESSION_MS - 1)
        assert classic.id in coordinator.group.members
        coordinator.timers.wait(1)
        assert classic.id not in coordinator.group.members


def test_a_classic_member_leaves(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    assert puppet.leave((classic.id, None), ("nobody", None)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    settle([consumer], [])
    assert consumer.partitions == ALL


def test_members_of_either_protocol_are_removed_by_whichever_id_an_administrator_has(puppet: ConsumerPuppet) -> None:
    """KIP-345 and KIP-848: LeaveGroup is how `kafka-consumer-groups` and admin clients remove members."""
    stays = Consumer(puppet, "stays")
    for name, instance in (("one", "i1"), ("two", "i2"), ("three", None), ("four", "i4")):
        Consumer(puppet, name, instance=instance)
    classic, static = ClassicConsumer(puppet), ClassicConsumer(puppet, instance="s1")
    classic.join()
    static.join()
    asked = {
        ("", "i1"): ErrorCode.NONE,
        ("two", "i2"): ErrorCode.NONE,
        ("three", None): ErrorCode.NONE,
        # A static member may be named by its member id alone.
        ("four", None): ErrorCode.NONE,
        (classic.id, None): ErrorCode.NONE,
        ("", "s1"): ErrorCode.NONE,
        ("", "i9"): ErrorCode.UNKNOWN_MEMBER_ID,
        ("", None): ErrorCode.UNKNOWN_MEMBER_ID,
        ("stays", "i1"): ErrorCode.FENCED_INSTANCE_ID,
    }
    assert puppet.leave(*asked) == list(asked.values())
    assert list(puppet.group.members) == ["stays"]
    settle([stays], [])
    assert stays.partitions == ALL
    assert puppet.successor().group.members == puppet.group.members


def test_a_group_becomes_classic_when_an_administrator_removes_its_last_consumer(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one")
    settle([consumer], classics)
    assert puppet.leave(("one", None)) == [ErrorCode.NONE]
    assert puppet.shard.groups.find_consumer(GROUP) is None
    assert puppet.state == "PreparingRebalance"


def test_another_generation_is_refused(puppet: ConsumerPuppet) -> None:
    Consumer(puppet, "one")
    classic = ClassicConsumer(puppet)
    classic.join()
    classic.generation += 1
    assert classic.beat() is ErrorCode.ILLEGAL_GENERATION
    assert classic.sync() is ErrorCode.ILLEGAL_GENERATION
    assert puppet.heartbeat("one", 2) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("member_id", ["", "said"])
def test_a_protocol_that_the_others_do_not_know_is_refused(puppet: ConsumerPuppet, member_id: str) -> None:
    Consumer(puppet, "one")
    ClassicConsumer(puppet).join()
    refused = [
        puppet.join(member_id, protocols={"range": subscription()}),
        puppet.join(member_id, protocol_type="connect", protocols={"cooperative-sticky": b""}),
    ]
    assert [(one.error, one.answer.member_id) for one in refused] == [(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")] * 2


def test_a_classic_member_for_whom_a_consumer_group_has_no_room_is_refused() -> None:
    puppet = ConsumerPuppet(config=replace(CONFIG, consumer=replace(CONFIG.consumer, max_size=1)))
    Consumer(puppet, "one")
    refused = puppet.join("said", protocols={"range": subscription()})
    assert (refused.error, refused.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_a_classic_member_that_names_a_protocol_twice_is_one_that_knows_it(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet)
    classic.join()
    twice = puppet.join(protocols=[("cooperative-sticky", subscription())] * 2)
    assert twice.error is ErrorCode.NONE
    assert classic.join().error is ErrorCode.NONE
    consumer.leave()
    assert puppet.state == "PreparingRebalance"


def test_a_member_changes_its_protocol_in_the_group(puppet: ConsumerPuppet) -> None:
    consumer, classic = Consumer(puppet, "one"), ClassicConsumer(puppet, instance="i1")
    classic.join()
    classic.sync()
    settle([consumer], [classic])
    had = classic.partitions
    upgraded = Consumer(puppet, "two", instance="i1")
    assert upgraded.partitions == had
    assert not puppet.group.members["two"].uses_classic_protocol
    # The old process is fenced.
    assert classic.beat() is ErrorCode.FENCED_INSTANCE_ID


def test_no_classic_member_is_let_in_where_migration_is_disabled() -> None:
    puppet = with_policy(MigrationPolicy.DISABLED)
    Consumer(puppet, "one")
    refused = puppet.join("said", protocols={"range": subscription()})
    assert (refused.error, refused.answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")


# Upgrade.


def test_a_classic_group_becomes_a_consumer_group_with_its_first_consumer(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    generation = classics[0].generation
    consumer = Consumer(puppet, "one")
    assert puppet.shard.groups.find(GROUP) is None
    assert puppet.group.epoch == consumer.epoch == generation + 1
    assert consumer.partitions == set(), "nothing is free yet"
    settle([consumer], classics)
    check_shared(consumer, *classics)
    assert {len(consumer.partitions), *(len(classic.partitions) for classic in classics)} == {2}
    successor = puppet.successor()
    assert successor.shard.groups.find(GROUP) is None
    assert successor.group.members == puppet.group.members


def test_members_that_wait_are_told_of_the_upgrade(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    waiting = classics[0].join()
    assert waiting.is_open
    Consumer(puppet, "one")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_no_member_is_told_epoch_0_when_a_classic_group_is_upgraded_in_its_first_rebalance() -> None:
    """Whose topics are not there yet, so that nothing else raises the epoch."""
    puppet = ConsumerPuppet(topics={})
    classic = ClassicConsumer(puppet)
    waiting = classic.join()
    consumer = Consumer(puppet, "one", topics=None, expression="later.*")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert consumer.epoch == puppet.group.epoch == puppet.group.target_epoch == 1
    consumer.beat()
    assert classic.join().answer.generation_id == 1
    assert puppet.successor().group.epoch == 1


def test_a_member_that_does_not_know_the_protocol_of_before_is_upgraded(puppet: ConsumerPuppet) -> None:
    """Members go over from one protocol to another, and to the consumer protocol, at once."""
    first = puppet.join(protocols={"range": subscription(), "sticky": subscription()})
    puppet.timers.wait(INITIAL_DELAY_MS)
    one, generation = first.answer.member_id, first.answer.generation_id
    puppet.sync(one, generation, {one: write_assignment({"topic": range(6)}, 1)})
    waiting = puppet.join(protocols={"sticky": subscription(["topic", "other"])})
    assert waiting.is_open
    consumer = Consumer(puppet, "consumer")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert consumer.epoch == generation + 1
    members = puppet.group.members
    assert members[one].subscription.topics == ("topic",)
    assert members[waiting.answer.member_id].subscription.topics == ("other", "topic")


def test_a_group_that_is_upgraded_in_a_rebalance_takes_nothing_from_members_that_read_on(
    puppet: ConsumerPuppet,
) -> None:
    """Cooperative members keep what they have through rebalances, of which the last may have ended without parts."""
    classics = classic_group(puppet)
    waiting = [member.join() for member in (ClassicConsumer(puppet), *classics)]
    assert puppet.state == "CompletingRebalance"
    ClassicConsumer(puppet).join()
    assert puppet.state == "PreparingRebalance"
    assert not any(one.is_open for one in waiting)
    consumer = Consumer(puppet, "one")
    assert consumer.partitions == set()
    settle([consumer], classics)
    assert not consumer.partitions & (classics[0].partitions | classics[1].partitions)


def test_a_group_that_is_upgraded_takes_nothing_from_a_member_that_has_not_heard_its_part(
    puppet: ConsumerPuppet,
) -> None:
    """A cooperative member gives up what is not in its part, and says so in its next join."""
    first, second = classic_group(puppet)
    members = [ClassicConsumer(puppet), first, second]
    joins = [member.join() for member in members]
    for member, join in zip(members, joins, strict=True):
        member.generation = join.answer.generation_id
    parts = {first.id: {"topic": [0, 2]}, second.id: {"topic": [1, 3]}}
    assert first.sync({member: write_assignment(part, 1) for member, part in parts.items()}) is ErrorCode.NONE
    consumer = Consumer(puppet, "one")
    assert not consumer.partitions & second.partitions
    settle([consumer], [first, second])
    assert not consumer.partitions & (first.partitions | second.partitions)


def test_an_empty_classic_group_becomes_a_consumer_group(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    puppet.leave(*((member.id, None) for member in classics))
    puppet.timers.wait(REBALANCE_MS)
    assert puppet.state == "Empty"
    consumer = Consumer(puppet, "one")
    assert consumer.partitions == ALL
    assert puppet.successor().shard.groups.find(GROUP) is None


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_classic_group_stays_one_where_upgrades_are_not_allowed(policy: MigrationPolicy) -> None:
    puppet = with_policy(policy)
    classic_group(puppet)
    with pytest.raises(KafkaError) as caught:
        puppet.join_consumer("one")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert caught.value.message == (
        f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled."
    )
    assert puppet.state == "Stable"


def test_a_group_that_is_not_of_consumers_stays_what_it_is(puppet: ConsumerPuppet) -> None:
    puppet.join(protocol_type="connect", protocols={"v0": b""})
    puppet.timers.wait(2 * INITIAL_DELAY_MS)
    with pytest.raises(KafkaError) as caught:
        puppet.join_consumer("one")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError):
        puppet.beat("one", 1)
    with pytest.raises(KafkaError):
        puppet.beat("one", -1)


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"\0\1\0\0\0\0"])
def test_members_with_unreadable_subscriptions_are_not_upgraded(puppet: ConsumerPuppet, garbage: bytes) -> None:
    puppet.stable(1, protocols={"range": garbage})
    with pytest.raises(KafkaError) as caught:
        puppet.join_consumer("one")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert puppet.state == "Stable"


@pytest.mark.parametrize("user_data", [b"\0", b"tasks of Kafka Streams"])
def test_a_classic_group_whose_assignments_carry_user_data_stays_one(puppet: ConsumerPuppet, user_data: bytes) -> None:
    """An assignor of the members made it, such as that of Kafka Streams, and the coordinator has none to give."""
    classics = classic_group(puppet)
    plain = write_assignment({"topic": range(6)}, 1)
    waiting = [member.join() for member in classics]
    for member, join in zip(classics, waiting, strict=True):
        member.generation = join.answer.generation_id
    classics[0].sync({classics[0].id: plain, classics[1].id: plain[:-4] + pack(">i", len(user_data)) + user_data})
    records = len(puppet.log.records)
    for coordinator in (puppet, puppet.successor()):
        with pytest.raises(KafkaError) as caught:
            coordinator.join_consumer("stray")
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        assert caught.value.message == (
            f"Cannot upgrade classic group {GROUP} to consumer group because an unsupported custom assignor is in use. "
            "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."
        )
        assert coordinator.state == "Stable"
        assert coordinator.heartbeat(classics[1].id, classics[1].generation) is ErrorCode.NONE
    assert len(puppet.log.records) == records
    assert puppet.sync(classics[1].id, classics[1].generation).answer.assignment.endswith(user_data)


def test_user_data_without_bytes_is_no_user_data(puppet: ConsumerPuppet) -> None:
    (classic,) = classic_group(puppet, 1)
    join = classic.join()
    classic.generation = join.answer.generation_id
    classic.sync({classic.id: write_assignment({"topic": range(6)}, 1)[:-4] + pack(">i", 0)})
    consumer = Consumer(puppet, "one")
    settle([consumer], [classic])
    check_shared(consumer, classic)


# Downgrade.


def test_a_consumer_group_becomes_a_classic_group_when_its_last_consumer_leaves(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one")
    settle([consumer], classics)
    consumer.leave()
    assert puppet.shard.groups.find_consumer(GROUP) is None
    assert puppet.state == "PreparingRebalance"
    assert [member.beat() for member in classics] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    joins = [member.join() for member in classics]
    generation = joins[0].answer.generation_id
    assert generation > classics[0].generation or generation == joins[1].answer.generation_id
    assert all(join.error is ErrorCode.NONE for join in joins)
    successor = puppet.successor()
    assert successor.shard.groups.find_consumer(GROUP) is None
    found = successor.shard.groups.find(GROUP)
    assert found is not None
    assert sorted(found.members) == sorted(member.id for member in classics)


def test_a_join_deadline_from_before_the_upgrade_does_not_reach_the_group_after_the_downgrade(
    puppet: ConsumerPuppet,
) -> None:
    members = classic_group(puppet)
    newcomer = ClassicConsumer(puppet)
    waiting = newcomer.join()
    assert waiting.is_open
    (deadline,) = (key for key in puppet.timers.keys if isinstance(key, JoinDeadline))
    consumer = Consumer(puppet, "consumer")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    consumer.leave()
    members.append(newcomer)
    joins = [member.join() for member in members]
    for member, join in zip(members, joins, strict=True):
        member.generation = join.answer.generation_id
    assert all(member.sync({}) is ErrorCode.NONE for member in members)
    assert deadline in puppet.timers.keys
    while deadline in puppet.timers.keys:
        puppet.timers.wait(SESSION_MS // 2)
        assert [member.beat() for member in members] == [ErrorCode.NONE] * 3
    assert puppet.state == "Stable"


def test_a_consumer_group_becomes_a_classic_group_when_its_last_consumer_fails(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one")
    settle([consumer], classics)
    for _ in range(SETTINGS.session_timeout_ms // (SESSION_MS // 2)):
        for classic in classics:
            classic.follow()
        puppet.timers.wait(SESSION_MS // 2)
    assert puppet.shard.groups.find_consumer(GROUP) is None


def test_a_static_member_that_comes_back_with_the_classic_protocol_ends_the_consumer_group(
    puppet: ConsumerPuppet,
) -> None:
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one", instance="i1")
    settle([consumer], classics)
    had = consumer.partitions
    consumer.leave(-2)
    back = ClassicConsumer(puppet, instance="i1")
    assert back.join().error is ErrorCode.NONE
    assert puppet.state == "Stable"
    assert back.sync() is ErrorCode.NONE
    assert back.partitions == had
    assert [member.beat() for member in classics] == [ErrorCode.NONE] * 2


def test_a_static_member_that_ends_the_consumer_group_with_other_topics_makes_a_rebalance() -> None:
    puppet = ConsumerPuppet({"topic": 6, "other": 2})
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one", instance="i1")
    settle([consumer], classics)
    consumer.leave(-2)
    back = puppet.join(protocols={"cooperative-sticky": subscription(["other"])}, instance_id="i1")
    assert back.error is ErrorCode.NONE
    assert puppet.state == "PreparingRebalance"
    assert [member.beat() for member in classics] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2


def test_a_static_member_that_ends_the_consumer_group_is_not_given_what_others_still_have(
    puppet: ConsumerPuppet,
) -> None:
    (classic,) = classic_group(puppet, 1)
    Consumer(puppet, "one", instance="i1").leave(-2)
    back = ClassicConsumer(puppet, instance="i1")
    assert back.join().error is ErrorCode.NONE
    assert back.sync() is ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.partitions == ALL


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DISABLED])
def test_a_consumer_group_stays_one_where_downgrades_are_not_allowed(policy: MigrationPolicy) -> None:
    puppet = ConsumerPuppet()
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one")
    settle([consumer], classics)
    later = with_policy(policy)
    later = ConsumerPuppet(log=puppet.log, config=later.config, now_ms=puppet.timers.now_ms)
    consumer.puppet = later
    consumer.leave()
    assert later.shard.groups.find_consumer(GROUP) is not None
    assert len(later.group.members) == 2


def test_an_empty_consumer_group_becomes_a_classic_group(puppet: ConsumerPuppet) -> None:
    Consumer(puppet, "one").leave()
    classics = classic_group(puppet)
    assert puppet.state == "Stable"
    assert puppet.shard.groups.find_consumer(GROUP) is None
    successor = puppet.successor()
    assert successor.shard.groups.find_consumer(GROUP) is None
    assert successor.state == "Stable"
    assert len(classics) == 2


def test_a_downgrade_that_could_not_be_written_changes_nothing(puppet: ConsumerPuppet) -> None:
    classics = classic_group(puppet)
    consumer = Consumer(puppet, "one")
    settle([consumer], classics)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaError):
        consumer.leave()
    assert len(puppet.group.members) == 3
    assert puppet.shard.groups.find(GROUP) is None
