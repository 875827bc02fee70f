"""Fetches of consumers that say in which rack they are (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NodeId

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

FOLLOWER = NodeId(2)
LEADERS_RACK, FOLLOWERS_RACK = "rack-1", "rack-2"


@pytest.fixture
def led(node: DataNode) -> DataNode:
    """Node 1 leads "a" of replicas 1 and 2, which both have its record."""
    node.create_topic(replicas=(1, FOLLOWER))
    node.produce(acks=1)
    follow(node, 1)
    return node


def follow(node: DataNode, offset: int) -> None:
    node.peer_node_id = FOLLOWER
    node.begin_fetch(
        (0, offset),
        topic=node.hosted().topic_id,
        version=17,
        replica_id=FOLLOWER,
        replica_epoch=FOLLOWER,
        log_start_offset=0,
        current_leader_epoch=0,
        max_wait_ms=0,
    )
    node.peer_node_id = None


def test_consumer_is_sent_to_its_rack_at_once_and_without_records(led: DataNode) -> None:
    answer = led.begin_fetch((0, 0), rack=FOLLOWERS_RACK).answer.responses[0].partitions[0]
    assert (answer.error_code, answer.preferred_read_replica) == (ErrorCode.NONE, FOLLOWER)
    assert not answer.records
    assert answer.high_watermark == 1


@pytest.mark.parametrize("options", [{"rack": LEADERS_RACK}, {"rack": ""}, {"rack": "elsewhere"}])
def test_any_other_consumer_reads_here(led: DataNode, options: dict[str, Any]) -> None:
    answer = led.fetch((0, 0), **options)
    assert answer.preferred_read_replica == -1
    assert answer.records


def test_consumer_that_asks_in_a_session_is_sent_on_when_a_replica_has_caught_up(led: DataNode) -> None:
    """Though there is nothing new to read, and it was told all offsets."""
    led.publish_isr("a", 1)
    first = led.begin_fetch((0, 1), rack=FOLLOWERS_RACK, session_epoch=0, max_wait_ms=0).answer
    assert first.responses[0].partitions[0].preferred_read_replica == -1
    led.publish_isr("a", 1, FOLLOWER)
    again = led.begin_fetch(rack=FOLLOWERS_RACK, session_id=first.session_id, session_epoch=1).answer
    assert again.responses[0].partitions[0].preferred_read_replica == FOLLOWER


def test_wrong_offset_and_old_epoch_are_told_before_that(led: DataNode) -> None:
    assert led.fetch((0, 9), rack=FOLLOWERS_RACK).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    led.elect("a", leader=1)
    refused = led.fetch((0, 0), rack=FOLLOWERS_RACK, current_leader_epoch=0)
    assert refused.error_code == ErrorCode.FENCED_LEADER_EPOCH
