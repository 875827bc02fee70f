"""Ids of nodes for tests: several at once, as replicas and ISRs hold them."""

from penstock.protocol.ids import NodeId


def node_ids(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))
