"""What a voter says of the quorum without a leader; with one, clients and other voters rely on Kafka's answer."""

from __future__ import annotations

from uuid import UUID

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import PartitionData as QuorumState
from kio.schema.types import TopicName
from kio.static.primitive import i32
from typed_ids import node_ids

from penstock.broker.apis.describe_quorum import describe
from penstock.broker.cluster.rules.quorum_view import QuorumView
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import ControllerEpoch, NodeId
from penstock.protocol.messages import kio_error
from penstock.quorum.metadata.metadata_log import METADATA_TOPIC
from penstock.quorum.metadata.voters import Voter
from penstock.quorum.raft.consensus import QuorumStatus, VoterStatus

VOTERS = node_ids(1, 2, 3)
NOT_LEADER = kio_error(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def described(leader_id: int | None, *unreached: int) -> QuorumState:
    """By node 1."""
    status = QuorumStatus(
        leader_id=None if leader_id is None else NodeId(leader_id),
        epoch=ControllerEpoch(7),
        high_watermark=40,
        voters=tuple(
            VoterStatus(
                replica_id=voter_id,
                directory_id=UUID(int=0),
                log_end_offset=42 if voter_id == 1 else -1,
                last_fetch_timestamp_ms=-1 if voter_id in unreached else 1_000,
                last_caught_up_timestamp_ms=-1,
            )
            for voter_id in VOTERS
        ),
        unreached_ids=frozenset(node_ids(*unreached)),
    )
    view = QuorumView(
        node_id=NodeId(1),
        status=lambda: status,
        observers=lambda: (),
        voters={voter_id: Voter(voter_id, "127.0.0.1", 9093) for voter_id in VOTERS},
        listener_name="CONTROLLER",
        wall_clock_ms=lambda: 2_000,
    )
    request = DescribeQuorumRequest(
        topics=(TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)),)
    )
    return describe(view, request).topics[0].partitions[0]


def test_leader_describes_the_quorum() -> None:
    told = described(1, 2)
    assert (told.error_code, told.leader_id) == (kio_error(ErrorCode.NONE), 1)


def test_follower_names_the_leader_and_no_more() -> None:
    told = described(2)
    assert (told.error_code, told.leader_id, told.current_voters) == (NOT_LEADER, 2, ())


def test_voter_without_a_quorum_says_so_and_what_it_knows() -> None:
    for leader_id in (None, 1):
        told = described(leader_id, 2, 3)
        assert (told.error_code, told.leader_id, told.leader_epoch, told.high_watermark) == (NOT_LEADER, -1, 7, 40)
        assert told.error_message == "no quorum: 1 of 3 voters, 2 needed; nodes 2 and 3 do not answer"
        assert [(one.replica_id, one.log_end_offset, one.last_fetch_timestamp) for one in told.current_voters] == [
            (1, 42, 2_000),
            (2, -1, -1),
            (3, -1, -1),
        ]


def test_voter_without_a_leader_describes_what_it_knows() -> None:
    told = described(None, 3)
    assert (told.error_code, told.leader_id) == (NOT_LEADER, -1)
    assert [one.last_fetch_timestamp for one in told.current_voters] == [2_000, 1_000, -1]
