"""What is committed, who may commit it, and what is forgotten."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from group_puppet import EXPIRATION_CHECK_MS, GROUP, RETENTION_MS, SESSION_MS, GroupPuppet, PuppetLog

from penstock.broker.coordination.ports import StateRecord, TransactionProducer
from penstock.broker.groups.offset_protocol import Committer
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import TopicId
from penstock.quorum.metadata.image import TopicImage

TOPIC_ID = TopicId(UUID(int=7))
MAX_MESSAGE_BYTES = 1_048_588
SUBSCRIBED_TO_T = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


class BoundedLog(PuppetLog):
    """Takes no batch above the default of `max.message.bytes`."""

    def append(self, records: Sequence[StateRecord]) -> int:
        if sum(len(record.key) + len(record.value or b"") for record in records) > MAX_MESSAGE_BYTES:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return super().append(records)


@pytest.fixture
def puppet() -> GroupPuppet:
    return GroupPuppet()


def commit(
    puppet: GroupPuppet,
    offset: int,
    *,
    topic: str = "t",
    member_id: str = "",
    generation: int = -1,
    instance_id: str | None = None,
    metadata: str | None = None,
    knows_group_errors: bool = True,
) -> ErrorCode:
    committer = Committer(GROUP, member_id, instance_id, generation)
    records = puppet.offsets(topic, TOPIC_ID, [0], offset, metadata)
    try:
        with puppet.event() as shard:
            shard.offsets.commit(committer, records, knows_group_errors=knows_group_errors)
    except KafkaError as refusal:
        return refusal.code
    ((outcome,),) = records.outcomes
    return outcome


def committed(puppet: GroupPuppet, topic: str = "t", *, require_stable: bool = False) -> int | ErrorCode:
    fetched = puppet.shard.offsets.fetch(GROUP, topic, TOPIC_ID, 0, require_stable=require_stable)
    return fetched.error or fetched.offset


def test_what_was_committed_is_there_and_for_every_later_coordinator(puppet: GroupPuppet) -> None:
    assert committed(puppet) == -1
    assert commit(puppet, 5, metadata="note") is ErrorCode.NONE
    assert committed(puppet) == committed(puppet.restarted()) == 5
    assert puppet.shard.offsets.fetch(GROUP, "t", TOPIC_ID, 0, require_stable=False).metadata == "note"


def test_a_commit_that_is_not_written_changes_nothing(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    puppet.log.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit(puppet, 6) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(puppet) == 5


def test_only_members_of_the_generation_commit_for_a_group_that_has_members(puppet: GroupPuppet) -> None:
    generation, (leader, _) = puppet.stable()
    assert commit(puppet, 1, member_id=leader, generation=generation) is ErrorCode.NONE
    assert commit(puppet, 2, member_id=leader, generation=generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert commit(puppet, 2, member_id="nobody", generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(puppet, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(puppet) == 1


def test_a_commit_for_a_group_that_is_not_there_says_so_in_the_words_of_the_client(puppet: GroupPuppet) -> None:
    assert commit(puppet, 1, generation=1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(puppet, 1, generation=1, knows_group_errors=False) is ErrorCode.ILLEGAL_GENERATION


def test_a_member_is_to_join_a_rebalance_before_it_commits_in_the_next_generation(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    again = puppet.join(leader, protocols={"range": b"other"})
    assert commit(puppet, 1, member_id=follower, generation=generation) is ErrorCode.NONE
    puppet.join(follower)
    assert again.answer.generation_id == generation + 1
    assert commit(puppet, 2, member_id=leader, generation=generation + 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_heartbeat(puppet: GroupPuppet) -> None:
    generation, (member,) = puppet.stable(1)
    puppet.timers.wait(SESSION_MS - 1)
    commit(puppet, 1, member_id=member, generation=generation)
    puppet.timers.wait(SESSION_MS - 1)
    assert puppet.state == "Stable"


def test_metadata_of_a_commit_have_a_limit(puppet: GroupPuppet) -> None:
    assert commit(puppet, 1, metadata="x" * 4_097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(puppet) == -1


def test_an_offset_of_a_deleted_topic_is_not_one_of_its_successor(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    assert puppet.shard.offsets.fetch(GROUP, "t", UUID(int=8), 0, require_stable=False).offset == -1
    successor = TopicImage(name="t", topic_id=TopicId(UUID(int=8)), partitions=())
    topic = TopicImage(name="t", topic_id=TOPIC_ID, partitions=())
    assert not puppet.shard.offsets.fetch_all(GROUP, {"t": successor}, require_stable=False)
    for topics in ({"t": topic}, {}):
        assert puppet.shard.offsets.fetch_all(GROUP, topics, require_stable=False)["t"][0].offset == 5
    puppet.shard.offsets.delete_topic("t", UUID(int=8))
    assert committed(puppet) == 5
    puppet.shard.offsets.delete_topic("t", TOPIC_ID)
    assert committed(puppet) == committed(puppet.restarted()) == -1


def test_offsets_that_members_read_on_from_are_not_deleted(puppet: GroupPuppet) -> None:
    generation, (member,) = puppet.stable(1, protocols={"range": SUBSCRIBED_TO_T})
    commit(puppet, 5, member_id=member, generation=generation)
    commit(puppet, 6, topic="u", member_id=member, generation=generation)
    errors = puppet.shard.offsets.delete(GROUP, [("t", 0), ("u", 0)])
    assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert committed(puppet) == 5
    assert committed(puppet, "u") == committed(puppet.restarted(), "u") == -1


def test_a_static_member_that_comes_back_with_another_topic_keeps_the_offsets_of_that(puppet: GroupPuppet) -> None:
    puppet.stable(1, instance_id="one", protocols={"range": SUBSCRIBED_TO_T.replace(b"t", b"u")})
    back = puppet.join(instance_id="one", protocols={"range": SUBSCRIBED_TO_T})
    member, generation = back.answer.member_id, back.answer.generation_id
    assert puppet.state == "Stable", "it has what it had without a rebalance"
    commit(puppet, 5, member_id=member, generation=generation, instance_id="one")
    for one in (puppet, puppet.restarted()):
        assert one.shard.offsets.delete(GROUP, [("t", 0)]) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
        assert committed(one) == 5


def test_only_empty_groups_are_deleted_with_all_that_they_had(puppet: GroupPuppet) -> None:
    generation, (member,) = puppet.stable(1)
    commit(puppet, 5, member_id=member, generation=generation)
    assert puppet.shard.offsets.delete_groups([GROUP, "other"]) == [
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    puppet.leave((member, None))
    assert puppet.shard.offsets.delete_groups([GROUP]) == [ErrorCode.NONE]
    for one in (puppet, puppet.restarted()):
        assert one.shard.groups.find(GROUP) is None
        assert committed(one) == -1


def test_offsets_of_a_group_without_members_expire_from_their_commit_on(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    puppet.timers.wait(RETENTION_MS - EXPIRATION_CHECK_MS)
    commit(puppet, 6, topic="u")
    assert committed(puppet) == 5
    puppet.timers.wait(2 * EXPIRATION_CHECK_MS)
    assert committed(puppet) == -1
    assert committed(puppet, "u") == 6
    puppet.timers.wait(RETENTION_MS)
    assert puppet.shard.groups.find(GROUP) is None
    assert puppet.restarted().shard.groups.find(GROUP) is None


def test_offsets_of_a_group_expire_from_when_its_last_member_left(puppet: GroupPuppet) -> None:
    generation, (member,) = puppet.stable(1, protocols={"range": SUBSCRIBED_TO_T}, session_ms=1_800_000)
    commit(puppet, 5, member_id=member, generation=generation)
    for _ in range(2 * RETENTION_MS // 1_000_000):
        puppet.timers.wait(1_000_000)
        puppet.heartbeat(member, generation)
    assert committed(puppet) == 5
    puppet.leave((member, None))
    puppet.timers.wait(RETENTION_MS - EXPIRATION_CHECK_MS)
    assert committed(puppet) == 5
    puppet.timers.wait(2 * EXPIRATION_CHECK_MS)
    assert committed(puppet) == -1


def test_offsets_of_a_group_with_a_long_name_hold_up_no_expiration() -> None:
    log = BoundedLog()
    puppet = GroupPuppet(log)
    long_name = "long" * 1_000
    for first in range(0, 1_000, 100):
        records = puppet.offsets("t", TOPIC_ID, range(first, first + 100), 5, group=long_name)
        puppet.shard.offsets.commit(Committer(long_name, "", None, -1), records, knows_group_errors=True)
    commit(puppet, 5)
    puppet.timers.wait(RETENTION_MS + EXPIRATION_CHECK_MS)
    for one in (puppet, puppet.restarted()):
        assert not list(one.shard.groups)
        assert committed(one) == -1


def test_a_topic_that_a_group_reads_no_more_expires_from_its_commit_on(puppet: GroupPuppet) -> None:
    generation, (member,) = puppet.stable(1, protocols={"range": SUBSCRIBED_TO_T}, session_ms=1_800_000)
    commit(puppet, 5, member_id=member, generation=generation)
    commit(puppet, 6, topic="u", member_id=member, generation=generation)
    for _ in range(RETENTION_MS // 1_000_000 + 2):
        puppet.timers.wait(1_000_000)
        puppet.heartbeat(member, generation)
    assert committed(puppet) == 5
    assert committed(puppet, "u") == -1


def test_a_wall_clock_that_jumps_expires_nothing(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    puppet.clock_ahead_ms = 2 * RETENTION_MS
    puppet.timers.wait(2 * EXPIRATION_CHECK_MS)
    assert committed(puppet) == 5


@pytest.mark.parametrize("has_members", [False, True], ids=["without members", "when its last member leaves"])
def test_an_offset_that_is_committed_while_the_wall_clock_is_behind_is_kept(
    puppet: GroupPuppet, has_members: bool
) -> None:
    """Of a group that has had members, the time since the last of them left counts."""
    puppet.clock_ahead_ms = -2 * RETENTION_MS
    if has_members:
        generation, (member,) = puppet.stable(1)
        commit(puppet, 5, member_id=member, generation=generation)
        puppet.leave((member, None))
    else:
        commit(puppet, 5)
    puppet.clock_ahead_ms = 0
    puppet.timers.wait(2 * EXPIRATION_CHECK_MS)
    assert committed(puppet) == 5


def test_an_offset_of_a_transaction_counts_when_the_transaction_is_committed(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    record = puppet.log.records[-1]
    commit(puppet, 6)
    assert record.value is not None
    puppet.shard.replay(9, record.key, record.value, producer_id=1)
    assert committed(puppet) == 6
    assert committed(puppet, require_stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    puppet.shard.replay_end_transaction(1, is_commit=True)
    assert committed(puppet, require_stable=True) == 5


def test_an_offset_of_a_transaction_that_is_older_or_aborted_does_not_count(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    record = puppet.log.records[-1]
    commit(puppet, 6)
    puppet.shard.replay(0, record.key, record.value, producer_id=1)
    puppet.shard.replay_end_transaction(1, is_commit=True)
    assert committed(puppet) == 6
    puppet.shard.replay(9, record.key, record.value, producer_id=2)
    puppet.shard.replay_end_transaction(2, is_commit=False)
    assert committed(puppet, require_stable=True) == 6


def commit_in_transaction(
    puppet: GroupPuppet,
    offset: int,
    *,
    member_id: str = "",
    generation: int = -1,
    instance_id: str | None = None,
    metadata: str | None = None,
) -> ErrorCode:
    committer = Committer(GROUP, member_id, instance_id, generation)
    records = puppet.offsets("t", TOPIC_ID, [0], offset, metadata)
    try:
        puppet.shard.offsets.commit_in_transaction(committer, records, TransactionProducer(1, 0, None))
    except KafkaError as refusal:
        return refusal.code
    ((outcome,),) = records.outcomes
    return outcome


def test_a_commit_of_a_transaction_counts_when_that_commits(puppet: GroupPuppet) -> None:
    commit(puppet, 5)
    assert commit_in_transaction(puppet, 6) is ErrorCode.NONE
    assert puppet.log.producers == [TransactionProducer(1, 0, None)]
    assert committed(puppet) == 5
    assert committed(puppet, require_stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    puppet.shard.replay_end_transaction(1, is_commit=True)
    assert committed(puppet, require_stable=True) == 6


def test_a_later_commit_outside_the_transaction_stays(puppet: GroupPuppet) -> None:
    commit_in_transaction(puppet, 6)
    commit(puppet, 7)
    puppet.shard.replay_end_transaction(1, is_commit=True)
    assert committed(puppet, require_stable=True) == 7


def test_a_commit_of_a_transaction_that_is_not_written_leaves_nothing(puppet: GroupPuppet) -> None:
    puppet.log.refuses = ErrorCode.INVALID_TXN_STATE
    assert commit_in_transaction(puppet, 6) is ErrorCode.INVALID_TXN_STATE
    assert committed(puppet, require_stable=True) == -1
    assert commit_in_transaction(puppet, 6, metadata="x" * 4_097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(puppet, require_stable=True) == -1


def test_a_transaction_commits_for_members_of_the_generation_or_names_none_kip_447(puppet: GroupPuppet) -> None:
    assert commit_in_transaction(puppet, 1, generation=1) is ErrorCode.ILLEGAL_GENERATION
    generation, (leader, _) = puppet.stable()
    assert commit_in_transaction(puppet, 1, member_id=leader, generation=generation) is ErrorCode.NONE
    assert commit_in_transaction(puppet, 1) is ErrorCode.NONE
    assert commit_in_transaction(puppet, 2, member_id=leader, generation=generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(puppet, 2, member_id="nobody", generation=generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_in_transaction(puppet, 2, instance_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_may_commit_while_its_group_completes_a_rebalance(puppet: GroupPuppet) -> None:
    generation, (leader, follower) = puppet.stable()
    puppet.join(leader, protocols={"range": b"other"})
    puppet.join(follower)
    assert commit_in_transaction(puppet, 2, member_id=leader, generation=generation + 1) is ErrorCode.NONE


def test_a_group_with_nothing_but_an_open_transaction_is_kept(puppet: GroupPuppet) -> None:
    commit_in_transaction(puppet, 6)
    puppet.timers.wait(RETENTION_MS + EXPIRATION_CHECK_MS)
    puppet.shard.replay_end_transaction(1, is_commit=True)
    assert committed(puppet) == 6


def test_a_deleted_offset_does_not_come_back_with_its_transaction(puppet: GroupPuppet) -> None:
    commit_in_transaction(puppet, 6)
    puppet.shard.offsets.delete(GROUP, [("t", 0)])
    puppet.shard.replay_end_transaction(1, is_commit=True)
    assert committed(puppet) == -1
