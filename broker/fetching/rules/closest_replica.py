"""Choice of the preferred read replica for a consumer (KIP-392). Kafka: `RackAwareReplicaSelector`.

A consumer fetches from the leader first; the leader redirects it to a follower if the leader is not in the consumer's
rack and followers in that rack have the fetch offset.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ....protocol.ids import NodeId
from ....quorum.metadata.image import BrokerRegistration
from ...replicas.rules.follower_progress import FollowerProgress
from ...replicas.rules.partition_state import PartitionState


class Reader(NamedTuple):
    """A consumer that sent its rack, and the listener by which it reaches the brokers."""

    rack: str
    listener_name: str


def closest_replica(
    partition: PartitionState, brokers: Mapping[int, BrokerRegistration], fetch_offset: int, reader: Reader
) -> int | None:
    """Returns the preferred read replica; None if that is the leader, or this replica does not lead.

    Only members of the ISR: with a lagging replica the consumer would lag too, and the leader would redirect it there
    again and again.
    """
    if _rack(brokers, partition.leader_id, reader.listener_name) == reader.rack:
        return None
    near = [
        follower
        for follower in partition.in_sync_followers()
        if follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        and _rack(brokers, follower.broker_id, reader.listener_name) == reader.rack
    ]
    return max(near, key=_advance).broker_id if near else None


def _rack(brokers: Mapping[int, BrokerRegistration], broker_id: NodeId, listener_name: str) -> str | None:
    """Returns the broker's rack; None too if the consumer cannot reach the broker."""
    broker = brokers.get(broker_id)
    if broker is None or broker.is_fenced or broker.endpoint(listener_name) is None:
        return None
    return broker.rack


def _advance(follower: FollowerProgress) -> tuple[int, int, int]:
    return follower.log_end_offset, follower.last_caught_up_ms, follower.broker_id
