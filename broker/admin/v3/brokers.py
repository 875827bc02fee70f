"""`/v3/…/brokers`: the registered brokers, and the replicas that each has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from ....protocol.rest.brokers import Broker, BrokerList
from ....protocol.rest.partitions import Replica, ReplicaList
from ....protocol.rest.resources import PageQuery
from ....quorum.metadata.image import BrokerRegistration
from ..operation import Call, Content, Operation
from ..rules.kafka_answers import check
from . import links, lookups, pages
from .replicas import describe_replica


async def _list(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    last = pages.after(call, int)
    found = sorted(call.node.image.brokers.items())
    items = ((key, _describe(call, cluster_id, one)) for key, one in found if last is None or key > last)
    return await pages.page(call, "KafkaBrokerList", items, cluster_id, "brokers")


async def _get(call: Call) -> Broker:
    cluster_id = links.cluster_id(call)
    return _describe(call, cluster_id, lookups.broker(call, call.node.image))


async def _unregister(call: Call) -> None:
    links.cluster_id(call)
    found = lookups.broker(call, call.node.image)
    answer = await call.node.ask(
        UnregisterBrokerRequest(broker_id=BrokerId(found.id)), UnregisterBrokerResponse, call.context
    )
    check(answer.error_code, answer.error_message)


async def _list_replicas(call: Call) -> Content:
    cluster_id = links.cluster_id(call)
    image = call.node.image
    broker_id = lookups.broker(call, image).id
    last = pages.after(call, tuple[str, int])

    def items() -> Iterator[tuple[tuple[str, int], Replica | None]]:
        for topic, index, partition in lookups.partitions_after(image, last):
            is_here = broker_id in partition.replicas
            resource = describe_replica(call, cluster_id, topic, index, partition, broker_id) if is_here else None
            yield (topic.name, index), resource

    return await pages.page(call, "KafkaReplicaList", items(), cluster_id, "brokers", broker_id, "partition-replicas")


def _describe(call: Call, cluster_id: str, broker: BrokerRegistration) -> Broker:
    own = (cluster_id, "brokers", broker.id)
    endpoint = broker.endpoint(call.node.config.inter_broker_listener_name)
    return Broker(
        metadata=links.metadata(call, *own),
        cluster_id=cluster_id,
        broker_id=broker.id,
        host=None if endpoint is None else endpoint.host,
        port=None if endpoint is None else endpoint.port,
        rack=broker.rack,
        is_fenced=broker.is_fenced,
        configs=links.related(call, *own, "configs"),
        partition_replicas=links.related(call, *own, "partition-replicas"),
    )


OPERATIONS: Final = (
    Operation(
        name="listBrokers",
        method="GET",
        path="/v3/clusters/{cluster_id}/brokers",
        tag="Broker",
        summary="The registered brokers, fenced ones too",
        run=_list,
        query=PageQuery,
        answer=BrokerList,
    ),
    Operation(
        name="getBroker",
        method="GET",
        path="/v3/clusters/{cluster_id}/brokers/{broker_id}",
        tag="Broker",
        summary="One broker",
        run=_get,
        answer=Broker,
    ),
    Operation(
        name="deleteBroker",
        method="DELETE",
        path="/v3/clusters/{cluster_id}/brokers/{broker_id}",
        tag="Broker",
        summary="Unregister a broker",
        description="As Kafka's UnregisterBroker: for a broker that is gone for good. One that runs registers again.",
        run=_unregister,
        status=204,
    ),
    Operation(
        name="listReplicasOfBroker",
        method="GET",
        path="/v3/clusters/{cluster_id}/brokers/{broker_id}/partition-replicas",
        tag="Replica",
        summary="The replicas that a broker has",
        run=_list_replicas,
        query=PageQuery,
        answer=ReplicaList,
    ),
)
