"""Fetches of followers: what they tell the leader, and what that does for others."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64
from typed_ids import node_ids

from penstock.broker.apis.delete_records import delete_records
from penstock.broker.replicas.rules.in_sync_replicas import IsrProposal
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode, Exchange

FOLLOWER = NodeId(2)


@pytest.fixture
def led(node: DataNode) -> DataNode:
    """Node 1 leads 'a' of replicas 1 and 2, with three records that 2 does not have; asked by node 2."""
    node.create_topic(replicas=(1, FOLLOWER))
    for _ in range(3):
        node.produce(acks=1)
    node.peer_node_id = FOLLOWER
    return node


def ask(node: DataNode, offset: int, **options: Any) -> Exchange:
    fields = {"replica_id": FOLLOWER, "replica_epoch": 2, "log_start_offset": 0, "current_leader_epoch": 0}
    return node.begin_fetch((0, offset), topic=node.hosted().topic_id, version=17, **{**fields, **options})


def answer(exchange: Exchange) -> Any:
    return exchange.answer.responses[0].partitions[0]


def test_follower_reads_to_the_end_of_the_log(led: DataNode) -> None:
    found = answer(ask(led, 0, last_fetched_epoch=-1))
    assert (found.error_code, found.high_watermark) == (ErrorCode.NONE, 0)
    assert len(found.records) > 0


def test_fetch_of_a_follower_advances_the_high_watermark_and_is_told(led: DataNode) -> None:
    assert answer(ask(led, 2, last_fetched_epoch=0)).high_watermark == 2
    assert led.hosted().state.high_watermark == 2


def test_fetch_that_waits_is_answered_by_the_next_append(led: DataNode) -> None:
    waiting = ask(led, 3, last_fetched_epoch=0)
    assert not waiting.is_answered
    led.produce(acks=1)
    assert len(answer(waiting).records) > 0


def test_what_waits_for_all_replicas_is_answered_when_the_follower_has_it(led: DataNode) -> None:
    produced = led.begin_produce(led.batch(), acks=-1)
    ask(led, 3, last_fetched_epoch=0)
    assert not produced.is_answered
    ask(led, 4, last_fetched_epoch=0)
    assert produced.answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_consumer_that_waits_is_answered_when_the_follower_has_it(led: DataNode) -> None:
    consumer = led.begin_fetch((0, 0))
    assert not consumer.is_answered
    ask(led, 3, last_fetched_epoch=0)
    assert answer(consumer).high_watermark == 3


def test_follower_whose_log_parts_from_the_leaders_is_told_where_kip_595(led: DataNode) -> None:
    led.elect("a", leader=1)
    led.produce(acks=1)
    found = answer(ask(led, 4, last_fetched_epoch=0, current_leader_epoch=1))
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 3)
    # Nothing of such a fetch counts.
    assert led.hosted().state.high_watermark == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"current_leader_epoch": 7}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica_epoch": 1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_fetch_with_a_wrong_epoch_does_not_count(led: DataNode, options: dict[str, int], error: ErrorCode) -> None:
    assert answer(ask(led, 3, last_fetched_epoch=0, **options)).error_code == error
    assert led.hosted().state.high_watermark == 0


def test_fetch_beyond_the_log_does_not_count(led: DataNode) -> None:
    assert answer(ask(led, 9, last_fetched_epoch=-1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert led.hosted().state.high_watermark == 0


def test_fetch_in_another_nodes_name_is_refused(led: DataNode) -> None:
    led.peer_node_id = NodeId(3)
    exchange = ask(led, 3)
    assert exchange.answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert led.hosted().state.high_watermark == 0


def test_session_of_a_follower_tells_the_log_end_of_partitions_that_it_does_not_name(led: DataNode) -> None:
    first = ask(led, 2, last_fetched_epoch=0, session_epoch=0, max_wait_ms=0).answer
    led.produce(acks=1)
    again = led.begin_fetch(
        version=17,
        topic=led.hosted().topic_id,
        session_id=first.session_id,
        session_epoch=1,
        replica_id=FOLLOWER,
        replica_epoch=2,
    )
    assert len(answer(again).records) > 0


def test_replica_that_catches_up_is_proposed_for_the_isr(led: DataNode) -> None:
    led.publish_isr("a", 1)
    assert led.hosted().state.high_watermark == 3
    ask(led, 3, last_fetched_epoch=0)
    ((partition, proposal),) = led.replication.proposals
    assert partition is led.hosted()
    assert isinstance(proposal, IsrProposal)
    assert proposal.members == ((1, -1), (2, 2))


def test_too_few_in_sync_replicas_refuse_acks_all(led: DataNode) -> None:
    led.configure("a", min_insync_replicas=2)
    led.publish_isr("a", 1)
    assert led.produce(acks=-1).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert led.produce(acks=1).error_code == ErrorCode.NONE


def test_fewer_min_insync_replicas_release_what_waited(led: DataNode) -> None:
    led.configure("a", min_insync_replicas=2)
    waiting = led.begin_produce(led.batch(), acks=-1)
    led.publish_isr("a", 1)
    assert not waiting.is_answered
    led.configure("a", min_insync_replicas=1)
    assert waiting.answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_follower_appends_what_the_leader_has(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    partition = node.hosted()
    assert node.replication.followed == {partition: 2}
    partition.append_as_follower(memoryview(write_batch([Record(0, 0, None, b"x")], leader_epoch=0)), 0)
    assert partition.log.leader_epochs.entries == ((0, 0),)
    assert (partition.log.log_end_offset, partition.state.high_watermark) == (1, 0)
    assert partition.on_leader_offsets(high_watermark=5, log_start_offset=0)
    assert partition.state.high_watermark == 1


def test_what_was_committed_before_it_came_can_be_read_when_it_comes(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    partition = node.hosted()
    batches = [memoryview(write_batch([Record(offset, 0, None, b"x")], leader_epoch=0)) for offset in range(2)]
    assert not partition.append_as_follower(batches[0], 0)
    assert partition.on_leader_offsets(high_watermark=2, log_start_offset=0)
    assert partition.append_as_follower(batches[1], 0)
    assert not partition.on_leader_offsets(high_watermark=2, log_start_offset=0)


def test_log_start_of_the_leader_moves_the_followers_as_far_as_it_is_committed(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    partition = node.hosted()
    records = [Record(number, 0, None, b"x") for number in range(6)]
    partition.append_as_follower(memoryview(write_batch(records, leader_epoch=0)), 0)
    partition.on_leader_offsets(high_watermark=4, log_start_offset=5)
    assert partition.log.log_start_offset == 4
    partition.on_leader_offsets(high_watermark=6, log_start_offset=5)
    assert partition.log.log_start_offset == 5


def test_follower_that_has_to_sync_counts_what_is_synced(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    node.configure("a", flush_messages=1)
    partition = node.hosted()
    partition.append_as_follower(memoryview(write_batch([Record(0, 0, None, b"x")], leader_epoch=0)), 0)
    assert (partition.is_synced, partition.state.log_end_offset) == (False, 0)
    refused: list[bool] = []
    partition.on_synced = refused.append
    node.flusher.finish()
    assert (partition.is_synced, partition.state.log_end_offset, refused) == (True, 1, [False])


def test_what_the_leader_has_deleted_goes_when_the_sync_lets_it(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    node.configure("a", flush_messages=1)
    partition = node.hosted()
    partition.append_as_follower(memoryview(write_batch([Record(0, 0, None, b"x")], leader_epoch=0)), 0)
    assert not partition.on_leader_offsets(high_watermark=1, log_start_offset=1)
    before = partition.log.log_start_offset
    node.flusher.finish()
    assert (before, partition.log.log_start_offset, partition.state.high_watermark) == (0, 1, 1)


def test_who_waits_for_the_sync_of_what_is_cut_off_is_told(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    node.configure("a", flush_messages=1)
    partition = node.hosted()
    partition.append_as_follower(memoryview(write_batch([Record(0, 0, None, b"x")], leader_epoch=0)), 0)
    refused: list[bool] = []
    partition.on_synced = refused.append
    node.partitions.truncate({partition: 0})
    assert (partition.is_synced, refused) == (True, [False])


def test_sync_from_before_a_cut_says_nothing_of_what_came_after(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    node.configure("a", flush_messages=1)
    partition = node.hosted()
    for offset in range(3):
        partition.append_as_follower(memoryview(write_batch([Record(offset, 0, None, b"x")], leader_epoch=0)), 0)
    node.partitions.truncate({partition: 1})
    node.flusher.finish()
    assert partition.state.log_end_offset == 1


def test_rule_7_deletion_waits_until_all_live_replicas_have_deleted(led: DataNode) -> None:
    partition = led.hosted()
    session = ask(led, 3, last_fetched_epoch=0, session_epoch=0, max_wait_ms=0).answer
    fields = {"version": 17, "topic": partition.topic_id, "session_id": session.session_id, "replica_id": FOLLOWER}
    waiting = led.begin_fetch(**fields, session_epoch=1, replica_epoch=2)
    deletion = led.loop.create_task(delete_records(led.partitions, deletion_of(2)))
    led.loop.run_until_complete(asyncio.sleep(0))
    # The follower that waits is told at once, and says when it has done the same.
    assert answer(waiting).log_start_offset == 2
    assert not deletion.done()
    ask(led, 3, last_fetched_epoch=0, log_start_offset=2)
    led.loop.run_until_complete(deletion)
    assert outcome(deletion) == (ErrorCode.NONE, 2)


def test_rule_7_deletion_ends_with_the_leadership(led: DataNode) -> None:
    ask(led, 3, last_fetched_epoch=0)
    deletion = led.loop.create_task(delete_records(led.partitions, deletion_of(2)))
    led.loop.run_until_complete(asyncio.sleep(0))
    led.elect("a", leader=2)
    led.loop.run_until_complete(deletion)
    assert outcome(deletion) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_rule_7_deletion_waits_no_more_for_a_replica_that_is_fenced(led: DataNode) -> None:
    ask(led, 3, last_fetched_epoch=0)
    deletion = led.loop.create_task(delete_records(led.partitions, deletion_of(2)))
    led.loop.run_until_complete(asyncio.sleep(0))
    assert not deletion.done()
    topic_id = led.hosted().topic_id
    led.publish(
        PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(1)),
        BrokerRegistrationChangeRecord(broker_id=FOLLOWER, broker_epoch=BrokerEpoch(2), is_fenced=True),
    )
    led.loop.run_until_complete(deletion)
    assert outcome(deletion) == (ErrorCode.NONE, 2)


def outcome(deletion: asyncio.Task[DeleteRecordsResponse]) -> tuple[int, int]:
    result = deletion.result().topics[0].partitions[0]
    return int(result.error_code), result.low_watermark


def deletion_of(offset: int) -> DeleteRecordsRequest:
    partition = DeleteRecordsPartition(partition_index=i32(0), offset=i64(offset))
    topic = DeleteRecordsTopic(name=TopicName("a"), partitions=(partition,))
    return DeleteRecordsRequest(topics=(topic,), timeout=i32Timedelta.parse(timedelta(seconds=30)))


def throttle(node: DataNode) -> None:
    node.leader_quota.limit(10)
    node.leader_quota.throttle("a", "*", NodeId(1))


def test_throttled_follower_that_is_not_in_sync_gets_nothing_above_the_rate_kip_73(led: DataNode) -> None:
    led.publish_isr("a", 1)
    throttle(led)
    first = answer(ask(led, 0, last_fetched_epoch=-1))
    assert len(first.records) > 0
    held_back = ask(led, 1, last_fetched_epoch=0)
    assert not held_back.is_answered
    # What it has counts nevertheless, and what is appended meanwhile makes no difference.
    led.produce(acks=1)
    assert not held_back.is_answered
    led.now_ms += 11_000
    led.produce(acks=1)
    assert len(answer(held_back).records) > 0


def test_throttled_follower_that_is_in_sync_passes_and_counts_kip_73(led: DataNode) -> None:
    throttle(led)
    for offset in range(3):
        assert len(answer(ask(led, offset, last_fetched_epoch=0 if offset else -1)).records) > 0
    assert led.leader_quota.is_exceeded(led.now_ms)
