"""Who leads the metadata quorum of a cluster, and how far the others are, as any node tells (DescribeQuorum)."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ..client import clock
from ..client.connection import connect
from ..local.errors import ClusterError
from ..local.local_node import LocalNode
from ..protocol.errors import CorruptData, KafkaError
from .target import Cluster

_TIMEOUT_MS: Final = 5_000
_RETRY_S: Final = 0.05
SETTLED_TIMEOUT_S: Final = 120.0

_QUESTION: Final = DescribeQuorumRequest(
    topics=(TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)),)
)


class QuorumState(NamedTuple):
    """`lags` are the entries that each voter lacks, as the leader knows."""

    leader_id: int
    epoch: int
    lags: dict[int, int]


def quorum_state(node: LocalNode) -> QuorumState | None:
    """What this node tells; None when it cannot be asked, or does not know."""
    try:
        return asyncio.run(_ask(node))
    except (OSError, CorruptData, KafkaError):
        return None


def wait_settled(cluster: Cluster) -> QuorumState:
    """Once there is a leader with which all voters have caught up. Raises ClusterError past the deadline."""
    deadline_s = clock.monotonic_s() + SETTLED_TIMEOUT_S
    while clock.monotonic_s() < deadline_s:
        for node in cluster.nodes.values():
            state = quorum_state(node)
            if state is not None and state.lags.keys() >= cluster.nodes.keys() and not any(state.lags.values()):
                return state
        clock.pause(_RETRY_S)
    raise ClusterError(f"the quorum has not settled within {SETTLED_TIMEOUT_S:g} s")


def cluster_pids(cluster: Cluster) -> tuple[int, ...]:
    """Of a cluster that runs."""
    return tuple(node.process.pid for node in cluster.nodes.values() if node.process is not None)


async def _ask(node: LocalNode) -> QuorumState | None:
    async with await connect(node.host, node.port, timeout_ms=_TIMEOUT_MS) as connection:
        answer = await connection.call(_QUESTION)
    assert isinstance(answer, DescribeQuorumResponse)
    if answer.error_code or not answer.topics or answer.topics[0].partitions[0].error_code:
        return None
    state = answer.topics[0].partitions[0]
    ends = {int(voter.replica_id): int(voter.log_end_offset) for voter in state.current_voters}
    if int(state.leader_id) not in ends:
        return None
    end = ends[int(state.leader_id)]
    # Heartbeats of idle brokers change nothing; what is under way when this is asked is no lag.
    return QuorumState(
        int(state.leader_id), int(state.leader_epoch), {one: max(0, end - at) for one, at in ends.items()}
    )
