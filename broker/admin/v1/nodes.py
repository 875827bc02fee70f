"""`/v1/nodes`: all nodes, what they do, and where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResponse
from kio.static.primitive import i8

from .... import __version__
from ....protocol.errors import ErrorCode
from ....protocol.ids import NodeId
from ....protocol.rest.nodes import Node, NodeDirectory, NodeEndpoint, NodeList, NodesQuery
from ....protocol.security_protocols import SecurityProtocol
from ....quorum.metadata.image import BrokerRegistration, ConfigResourceType, MetadataImage
from ....quorum.metadata.records import Endpoint
from ...configuration.admin_listeners import ADMIN_ADVERTISED_LISTENERS
from ..broker_answers import ask_brokers, ask_log_dirs
from ..node_ports import NodePorts
from ..operation import Call, Operation
from ..turns import Turns

_ADDRESSES: Final[WeakKeyDictionary[object, dict[tuple[int, int], list[str]]]] = WeakKeyDictionary()
"""Of HTTP administrations, by broker id and epoch: a process of a broker has one for as long as it lives."""


class _Counts:
    """Of partitions, by node."""

    def __init__(self) -> None:
        self.leaders: Counter[int] = Counter()
        self.preferred: Counter[int] = Counter()
        self.replicas: Counter[int] = Counter()
        self.out_of_sync: Counter[int] = Counter()


async def _list(call: Call) -> NodeList:
    node, query = call.node, call.query
    image = node.image
    counts = await _count(image)
    asked = [broker.id for broker in node.active_brokers()] if node.running() is not None else []
    addresses = await _admin_addresses(call, asked)
    directories, failures = await _directories(call, asked, query)
    started_ms = (await node.facts()).started_ms
    nodes = []
    for node_id in sorted({*image.brokers, *image.controllers, *node.config.voters, node.node_id}):
        is_own = node_id == node.node_id
        answer = directories.get(node_id)
        broker = image.brokers.get(node_id)
        nodes.append(
            Node(
                node_id=node_id,
                roles=_roles(node, image, node_id),
                rack=None if broker is None else broker.rack,
                endpoints=_endpoints(image, node_id),
                admin=list(map(str, node.config.admin_advertised_listeners)) if is_own else addresses.get(node_id),
                is_asked_node=is_own,
                is_quorum_leader=node_id == node.quorum_leader(),
                state=None if broker is None else _state(broker),
                is_drained=node_id in image.configs.drained_brokers,
                broker_epoch=None if broker is None else int(broker.epoch),
                leader_count=counts.leaders[node_id],
                preferred_leader_count=counts.preferred[node_id],
                replica_count=counts.replicas[node_id],
                out_of_sync_count=counts.out_of_sync[node_id],
                log_dirs=None if answer is None else _log_dirs(answer, has_sizes=query.sizes),
                started_ms=started_ms if is_own else None,
                version=__version__ if is_own else None,
                unanswered=failures.get(node_id),
            )
        )
    return NodeList(
        cluster_id=image.cluster_id,
        metadata_offset=image.offset,
        metadata_ms=image.timestamp_ms,
        quorum_leader_id=node.quorum_leader(),
        nodes=nodes,
    )


async def _count(image: MetadataImage) -> _Counts:
    counts = _Counts()
    turns = Turns()
    async for topic in turns.over(image.topics.by_id.values()):
        for one in topic.partitions:
            counts.leaders[one.leader] += 1
            counts.preferred[one.replicas[0]] += 1
            for replica in one.replicas:
                counts.replicas[replica] += 1
                if replica not in one.isr:
                    counts.out_of_sync[replica] += 1
            await turns.pause()
    return counts


async def _directories(
    call: Call, asked: Iterable[NodeId], query: NodesQuery
) -> tuple[Mapping[int, DescribeLogDirsResponse], Mapping[int, str]]:
    return await ask_log_dirs(call, list(asked), None if query.sizes else {})


async def _admin_addresses(call: Call, asked: Iterable[NodeId]) -> Mapping[int, list[str]]:
    """Of the brokers that told theirs, now or in their present process before."""
    known = _ADDRESSES.setdefault(call.node.metadata, {})
    brokers = call.node.image.brokers
    epochs = {(one, int(brokers[one].epoch)) for one in asked if one in brokers}
    for key in [key for key in known if key not in epochs]:
        del known[key]
    for broker_id, epoch in sorted(epochs - known.keys()):
        resource = DescribeConfigsResource(
            resource_type=i8(ConfigResourceType.BROKER),
            resource_name=str(broker_id),
            configuration_keys=(ADMIN_ADVERTISED_LISTENERS,),
        )
        request = DescribeConfigsRequest(resources=(resource,))
        # The node's own question: all clients that may ask for nodes see the answer.
        own = call.node.own_context
        answers, _ = await ask_brokers(call, (broker_id,), request, DescribeConfigsResponse, own)
        if broker_id in answers:
            values = [one.value for told in answers[broker_id].results for one in told.configs]
            known[broker_id, epoch] = [address for value in values if value for address in value.split(",")]
    return {broker_id: addresses for (broker_id, _), addresses in known.items()}


def _roles(node: NodePorts, image: MetadataImage, node_id: int) -> list[str]:
    is_broker = node_id in image.brokers or (node_id == node.node_id and node.config.is_broker)
    is_controller = node_id in node.config.voters or node_id in image.controllers
    return [*(("broker",) if is_broker else ()), *(("controller",) if is_controller else ())]


def _state(broker: BrokerRegistration) -> str:
    if broker.is_fenced:
        return "fenced"
    return "stopping" if broker.in_controlled_shutdown else "running"


def _endpoints(image: MetadataImage, node_id: int) -> list[NodeEndpoint]:
    broker, controller = image.brokers.get(node_id), image.controllers.get(NodeId(node_id))
    endpoints: list[Endpoint] = [
        *(() if broker is None else broker.endpoints),
        *(() if controller is None else controller.endpoints),
    ]
    return [
        NodeEndpoint(
            listener=one.name,
            host=one.host,
            port=one.port,
            security_protocol=SecurityProtocol(one.security_protocol).name,
        )
        for one in endpoints
    ]


def _log_dirs(answer: DescribeLogDirsResponse, *, has_sizes: bool) -> list[NodeDirectory]:
    return [
        NodeDirectory(
            path=one.log_dir,
            error=ErrorCode(int(one.error_code)).name if one.error_code else None,
            total_bytes=int(one.total_bytes) if one.total_bytes >= 0 else None,
            free_bytes=int(one.usable_bytes) if one.usable_bytes >= 0 else None,
            log_bytes=(
                sum(int(partition.partition_size) for topic in one.topics for partition in topic.partitions)
                if has_sizes and not one.error_code
                else None
            ),
        )
        for one in answer.results
    ]


OPERATIONS: Final = (
    Operation(
        name="listNodes",
        method="GET",
        path="/v1/nodes",
        tag="Cluster",
        summary="The nodes of the cluster: roles, racks, addresses, state, partitions and log directories",
        run=_list,
        query=NodesQuery,
        answer=NodeList,
    ),
)
