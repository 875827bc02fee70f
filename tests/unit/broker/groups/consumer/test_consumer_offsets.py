"""Offsets of consumer groups: whose epoch may commit and fetch what (KIP-848, KIP-1251)."""

from __future__ import annotations

import pytest
from consumer_puppet import Consumer, ConsumerPuppet, topic_id
from group_puppet import EXPIRATION_CHECK_MS, GROUP, RETENTION_MS

from penstock.broker.coordination.ports import TransactionProducer
from penstock.broker.groups.offset_protocol import Committer
from penstock.protocol.errors import ErrorCode, KafkaError


@pytest.fixture
def puppet() -> ConsumerPuppet:
    return ConsumerPuppet()


def commit(
    puppet: ConsumerPuppet,
    member: str = "",
    epoch: int = -1,
    partition: int = 0,
    *,
    topic: str = "topic",
    knows_member_epochs: bool = True,
) -> ErrorCode:
    records = puppet.offsets(topic, topic_id(topic), [partition], 7)
    committer = Committer(GROUP, member, None, epoch)
    try:
        puppet.shard.offsets.commit(committer, records, knows_group_errors=knows_member_epochs)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def fetch_error(puppet: ConsumerPuppet, member: str | None, epoch: int) -> ErrorCode:
    try:
        puppet.shard.offsets.check_fetcher(GROUP, member, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_member_commits_with_its_epoch(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    assert commit(puppet, "one", one.epoch) is ErrorCode.NONE
    assert commit(puppet, "one", one.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(puppet, "two", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(puppet) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_client_that_does_not_know_member_epochs_does_not_commit(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    assert commit(puppet, "one", one.epoch, knows_member_epochs=False) is ErrorCode.UNSUPPORTED_VERSION


def test_an_older_epoch_is_good_for_what_the_member_has_had_since_then(puppet: ConsumerPuppet) -> None:
    one, two = Consumer(puppet, "one"), Consumer(puppet, "two")
    puppet.settle(one, two)
    (kept, *_), (moved, *_) = sorted(one.partitions), sorted(two.partitions)
    assert (one.epoch, two.epoch) == (3, 3)
    assert commit(puppet, "one", 2, kept[1]) is ErrorCode.NONE
    assert commit(puppet, "one", 2, moved[1]) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(puppet, "two", 2, moved[1]) is ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_being_given_up_may_still_be_committed(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    Consumer(puppet, "two")
    before = one.partitions
    one.beat()
    (revoked, *_) = before - one.partitions
    assert commit(puppet, "one", one.epoch, revoked[1]) is ErrorCode.NONE


def test_a_zombie_of_a_static_member_commits_nothing(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one", instance="i1")
    one.leave(-2)
    Consumer(puppet, "two", instance="i1")
    assert commit(puppet, "one", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID


def test_administrators_commit_while_the_group_is_empty(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    one.leave()
    assert commit(puppet) is ErrorCode.NONE
    assert puppet.shard.groups.find(GROUP) is None, "it is still a consumer group"


def test_offsets_are_fetched_with_the_epoch_that_the_member_has(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    assert fetch_error(puppet, "one", one.epoch) is ErrorCode.NONE
    assert fetch_error(puppet, "one", one.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch_error(puppet, "two", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch_error(puppet, None, -1) is ErrorCode.NONE


def test_offsets_of_topics_that_are_read_are_not_deleted(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    commit(puppet, "one", one.epoch)
    commit(puppet, "one", one.epoch, topic="other")
    assert puppet.shard.offsets.delete(GROUP, [("topic", 0), ("other", 0)]) == [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.NONE,
    ]


@pytest.mark.thorough
def test_offsets_of_unsubscribed_topics_expire_and_with_the_last_the_group() -> None:
    puppet = ConsumerPuppet()
    one = Consumer(puppet, "one")
    commit(puppet, "one", one.epoch)
    commit(puppet, "one", one.epoch, topic="other")
    for _ in range(RETENTION_MS // 30_000 + 1):
        puppet.timers.wait(30_000)
        one.beat()
    puppet.timers.wait(EXPIRATION_CHECK_MS % 30_000)
    fetched = puppet.shard.offsets.fetch_all(GROUP, {}, require_stable=False)
    assert {topic for topic, partitions in fetched.items() if partitions} == {"topic"}
    one.leave()
    puppet.timers.wait(EXPIRATION_CHECK_MS)
    assert puppet.shard.groups.find_consumer(GROUP) is None
    assert not puppet.shard.offsets.fetch_all(GROUP, {}, require_stable=False)


def test_a_deleted_group_leaves_no_offsets(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    commit(puppet, "one", one.epoch)
    one.leave()
    assert puppet.shard.offsets.delete_groups([GROUP]) == [ErrorCode.NONE]
    successor = puppet.successor()
    assert not successor.shard.offsets.fetch_all(GROUP, {}, require_stable=False)
    assert not successor.shard.groups.is_known(GROUP)


def test_a_name_for_offsets_becomes_a_consumer_group_and_keeps_them(puppet: ConsumerPuppet) -> None:
    assert commit(puppet) is ErrorCode.NONE
    one = Consumer(puppet, "one")
    assert one.epoch == 2
    for coordinator in (puppet, puppet.successor()):
        assert coordinator.shard.groups.find(GROUP) is None
        assert coordinator.shard.offsets.fetch_all(GROUP, {}, require_stable=False)["topic"][0].offset == 7


def test_offsets_of_an_empty_consumer_group_are_a_classic_groups_when_a_member_that_is_gone_joins(
    puppet: ConsumerPuppet,
) -> None:
    one = Consumer(puppet, "one")
    commit(puppet, "one", one.epoch)
    one.leave()
    assert puppet.join("gone").error is ErrorCode.UNKNOWN_MEMBER_ID
    for coordinator in (puppet, puppet.successor()):
        assert coordinator.shard.groups.is_known(GROUP)
        coordinator.timers.wait(RETENTION_MS + EXPIRATION_CHECK_MS)
        assert not coordinator.shard.offsets.fetch_all(GROUP, {}, require_stable=False)
        assert not coordinator.shard.groups.is_known(GROUP)


def commit_in_transaction(puppet: ConsumerPuppet, member: str = "", epoch: int = -1, partition: int = 0) -> ErrorCode:
    records = puppet.offsets("topic", topic_id("topic"), [partition], 7)
    producer = TransactionProducer(1, 0, None)
    try:
        puppet.shard.offsets.commit_in_transaction(Committer(GROUP, member, None, epoch), records, producer)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_transaction_commits_with_its_members_epoch_or_names_no_member_kip_447(puppet: ConsumerPuppet) -> None:
    one = Consumer(puppet, "one")
    assert commit_in_transaction(puppet, "one", one.epoch) is ErrorCode.NONE
    assert commit_in_transaction(puppet) is ErrorCode.NONE
    assert commit_in_transaction(puppet, "one", one.epoch + 1) is ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(puppet, "two", one.epoch) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_older_epoch_of_a_transactions_commit_is_good_for_what_the_member_has_had(puppet: ConsumerPuppet) -> None:
    one, two = Consumer(puppet, "one"), Consumer(puppet, "two")
    puppet.settle(one, two)
    (kept, *_), (moved, *_) = sorted(one.partitions), sorted(two.partitions)
    assert commit_in_transaction(puppet, "one", 2, kept[1]) is ErrorCode.NONE
    assert commit_in_transaction(puppet, "one", 2, moved[1]) is ErrorCode.ILLEGAL_GENERATION
