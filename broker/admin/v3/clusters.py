"""`/v3/clusters`: the one cluster of this node."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from ....protocol.rest.clusters import Cluster, ClusterList
from ..operation import Call, Operation
from . import links


async def _list(call: Call) -> ClusterList:
    return ClusterList(metadata=links.collection(call), data=[_describe(call)])


async def _get(call: Call) -> Cluster:
    return _describe(call)


def _describe(call: Call) -> Cluster:
    own = links.cluster_id(call)
    # Kafka names a broker as controller, to which clients may send what changes metadata: any will do.
    brokers = call.node.active_brokers()
    return Cluster(
        metadata=links.metadata(call, own),
        cluster_id=own,
        controller=links.related(call, own, "brokers", brokers[0].id) if brokers else UNSET,
        acls=links.related(call, own, "acls"),
        brokers=links.related(call, own, "brokers"),
        broker_configs=links.related(call, own, "broker-configs"),
        consumer_groups=links.related(call, own, "consumer-groups"),
        topics=links.related(call, own, "topics"),
        partition_reassignments=links.related(call, own, "topics", "-", "partitions", "-", "reassignment"),
    )


OPERATIONS: Final = (
    Operation(
        name="listClusters",
        method="GET",
        path="/v3/clusters",
        tag="Cluster",
        summary="The cluster of this node",
        run=_list,
        answer=ClusterList,
    ),
    Operation(
        name="getCluster",
        method="GET",
        path="/v3/clusters/{cluster_id}",
        tag="Cluster",
        summary="One cluster",
        run=_get,
        answer=Cluster,
    ),
)
