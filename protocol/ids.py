"""The ids of a cluster: each a type of its own for the type checker, and its plain value when the code runs.

An id is made where its value enters (a request, a record, a property, a file) or where its number is given out; behind
that, signatures and fields name its type. Why offsets have none: decision 17.
"""

from typing import NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
"""A node's `node.id`. Broker ids, controller ids, voter ids and replica ids are all of this type: they are one space of
ids, and one node may be all of these."""

NO_NODE = NodeId(-1)
"""Where the protocol has no field for "none": no leader, no broker."""

TopicId = NewType("TopicId", UUID)
"""One topic between its creation and its deletion (KIP-516)."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Counts the leaderships of one partition; every batch holds the one that it was appended in (KIP-101)."""

NO_LEADER_EPOCH = LeaderEpoch(-1)

PartitionEpoch = NewType("PartitionEpoch", int)
"""Counts every change of one partition's registration (KIP-841)."""

NO_PARTITION_EPOCH = PartitionEpoch(-1)

BrokerEpoch = NewType("BrokerEpoch", int)
"""One registration of a broker: the offset of its record in the metadata log (KIP-631)."""

NO_BROKER_EPOCH = BrokerEpoch(-1)

ControllerEpoch = NewType("ControllerEpoch", int)
"""The epoch of the metadata quorum's leader, which is the active controller: Raft's term (KIP-595)."""

NO_CONTROLLER_EPOCH = ControllerEpoch(0)
"""Before the first leader of the quorum."""
