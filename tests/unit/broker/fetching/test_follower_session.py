"""A follower's session looks only at what may have something to tell, and the leader still knows who keeps up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.broker.fetching.rules.fetch_session import FetchSession
from penstock.broker.fetching.rules.follower_session import FollowerSession
from penstock.protocol.ids import NodeId

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode, Exchange

FOLLOWER = NodeId(2)
LAG_MS_MAX = 10_000


class Follower:
    """Follows the two partitions of 'a', of which it has everything."""

    def __init__(self, node: DataNode) -> None:
        self.node = node
        self.topic_id = node.create_topic(replicas=(1, FOLLOWER), partition_count=2)
        node.peer_node_id = FOLLOWER
        first = self._ask((0, 0), (1, 0), session_epoch=0, max_wait_ms=0).answer
        self.session_id = first.session_id
        self.epoch = 0

    def fetch(self, *named: tuple[int, int], **options: Any) -> Exchange:
        """The next request of the session."""
        self.epoch += 1
        return self._ask(*named, session_id=self.session_id, session_epoch=self.epoch, **options)

    def _ask(self, *named: tuple[int, int], **options: Any) -> Exchange:
        return self.node.begin_fetch(
            *named,
            topic=self.topic_id,
            version=17,
            replica_id=FOLLOWER,
            replica_epoch=2,
            log_start_offset=0,
            **{"current_leader_epoch": 0, **options},
        )

    @property
    def session(self) -> FollowerSession:
        (session,) = self.node.hosted().watchers.values()
        assert isinstance(session, FollowerSession)
        return session

    @property
    def ready(self) -> list[int]:
        return [partition.index for partition in self.session.ready]


@pytest.fixture
def follower(node: DataNode) -> Follower:
    follower = Follower(node)
    follower.fetch(max_wait_ms=0)
    assert follower.ready == []
    return follower


def answered(exchange: Exchange) -> list[int]:
    return [partition.partition_index for topic in exchange.answer.responses for partition in topic.partitions]


def test_append_stirs_its_partition_and_answers_the_request_that_waits(follower: Follower) -> None:
    waiting = follower.fetch()
    assert not waiting.is_answered
    follower.node.produce(index=1, acks=1)
    follower.node.turn()
    assert answered(waiting) == [1]
    assert follower.ready == [1]


def test_all_that_is_appended_in_one_turn_goes_out_in_one_answer(follower: Follower) -> None:
    waiting = follower.fetch()
    for index in (1, 0, 1):
        follower.node.produce(index=index, acks=1)
    assert not waiting.is_answered
    follower.node.turn()
    assert sorted(answered(waiting)) == [0, 1]
    batches = {
        partition.partition_index: len(partition.records) for partition in waiting.answer.responses[0].partitions
    }
    assert batches[1] == 2 * batches[0]


def test_partition_rests_when_the_follower_has_all_and_knows_so(follower: Follower) -> None:
    follower.node.produce(index=1, acks=1)
    assert answered(follower.fetch(max_wait_ms=0)) == [1]
    # It has the record now, and hears of the high watermark that moved by that.
    assert answered(follower.fetch((1, 1), max_wait_ms=0)) == [1]
    assert answered(follower.fetch(max_wait_ms=0)) == []
    assert follower.ready == []


def test_partition_that_is_named_is_told_of_though_it_was_before(follower: Follower) -> None:
    """The answer before may have come when the follower had moved by itself, and was thrown away."""
    assert answered(follower.fetch((1, 0), max_wait_ms=0)) == [1]
    assert answered(follower.fetch(max_wait_ms=0)) == []
    assert follower.ready == []


def test_partition_out_of_sync_is_looked_at_with_each_request(follower: Follower) -> None:
    follower.node.publish_isr("a", 1)
    assert follower.ready == [0]
    follower.fetch(max_wait_ms=0)
    assert follower.ready == [0]
    assert len(follower.node.replication.proposals) == 1
    follower.node.publish_isr("a", 1, FOLLOWER)
    follower.fetch(max_wait_ms=0)
    assert follower.ready == []


def test_follower_of_a_quiet_partition_keeps_up_by_fetching_others(follower: Follower) -> None:
    node = follower.node
    node.now_ms += 50 * LAG_MS_MAX
    follower.fetch(max_wait_ms=0)
    node.now_ms += LAG_MS_MAX // 2
    node.produce(acks=1)
    partition = node.hosted().state
    assert partition.on_time(node.now_ms) == ()
    node.now_ms += LAG_MS_MAX // 2 + 1
    assert len(partition.on_time(node.now_ms)) == 1


def test_new_leader_epoch_is_told_to_the_request_that_waits(follower: Follower) -> None:
    waiting = follower.fetch()
    follower.node.elect("a", leader=1)
    follower.node.turn()
    assert answered(waiting) == [0]


def test_forgotten_partition_is_watched_no_more(follower: Follower) -> None:
    follower.fetch(forgotten=(1,), max_wait_ms=0)
    assert follower.node.hosted("a", 1).watchers == {}
    assert len(follower.node.hosted("a", 0).watchers) == 1


def test_session_of_an_earlier_process_ends_with_the_first_of_the_next(follower: Follower) -> None:
    before: FetchSession = follower.session
    node = follower.node
    node.begin_fetch(
        (0, 0),
        topic=follower.topic_id,
        version=17,
        replica_id=FOLLOWER,
        replica_epoch=3,
        session_epoch=0,
        max_wait_ms=0,
    )
    assert follower.session is not before
    assert node.hosted("a", 1).watchers == {}


def test_session_is_of_no_other_follower(follower: Follower) -> None:
    follower.node.peer_node_id = None
    stranger = follower.node.begin_fetch(
        topic=follower.topic_id, version=17, session_id=follower.session_id, session_epoch=follower.epoch + 1
    )
    assert stranger.answer.error_code != 0
