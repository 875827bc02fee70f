"""`/v1/brokers/{broker_id}/maintenance`: a broker drained for work on its machine (decision 19)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from ....protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from ....protocol.errors import KafkaError
from ....protocol.ids import NodeId
from ....protocol.no_quorum import majority
from ....protocol.rest.maintenance import DrainQuery, HarmedPartition, LedPartition, Maintenance
from ....quorum.configs.own_keys import DRAINED, DRAINED_UNTIL_RESTART
from ....quorum.decisions.configs import INCREMENTAL_ALTER_CONFIGS
from ....quorum.permissions.requester import Permission, Requester
from ....quorum.planning.maintenance import StoppedPartition, drain_request, maintenance_state, registered
from ..node_ports import NodePorts
from ..operation import Call, Operation
from ..rules.kafka_answers import check
from .quorum import quorum_of

VOTER_SILENT_MS: Final = 5_000
"""A voter that the leader has not heard for so long does not count as there."""


async def set_drained(call: Call, broker_id: NodeId, value: str | None) -> None:
    """Sets the broker's own config, or deletes it; leaderships have moved when this returns. Raises KafkaError."""
    registered(call.node.image, broker_id)
    # Straight to the controller: a broker takes its own configs only, and this one may be gone.
    context = call.context
    needed = Permission(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    answer = await call.node.parts().controller.submit(
        INCREMENTAL_ALTER_CONFIGS,
        drain_request(broker_id, value),
        requester=Requester(context.principal, context.peer_host, () if context.authorizer is None else (needed,)),
    )
    for response in answer.responses:
        check(response.error_code, response.error_message)


async def _get(call: Call) -> Maintenance:
    return await _state(call)


async def _drain(call: Call) -> Maintenance:
    query: DrainQuery = call.query
    broker_id = NodeId(call.path["broker_id"])
    if not query.until_restart:
        await set_drained(call, broker_id, DRAINED)
    elif broker_id not in call.node.image.configs.drained_brokers:
        await set_drained(call, broker_id, DRAINED_UNTIL_RESTART)
    return await _state(call)


async def _undrain(call: Call) -> Maintenance:
    await set_drained(call, NodeId(call.path["broker_id"]), None)
    return await _state(call)


async def _state(call: Call) -> Maintenance:
    node, broker_id = call.node, NodeId(call.path["broker_id"])
    looking = partial(
        maintenance_state, node.image, broker_id, default_min_insync_replicas=node.config.min_insync_replicas
    )
    state = await node.loop.run_in_executor(None, looking)
    blockers = [*state.blockers, *await _quorum_blockers(call, node, broker_id)]
    return Maintenance(
        broker_id=broker_id,
        is_drained=state.is_drained,
        is_until_restart=state.is_until_restart,
        is_active=state.is_active,
        is_last=state.is_last,
        may_stop=not blockers,
        blockers=blockers,
        replica_count=state.replica_count,
        leadership_count=state.leadership_count,
        leaderships=[
            LedPartition(topic=one.topic, partition=one.partition, reason=str(one.reason)) for one in state.leaderships
        ],
        offline_count=state.offline_count,
        offline=_harmed(state.offline),
        under_min_isr_count=state.under_min_isr_count,
        under_min_isr=_harmed(state.under_min_isr),
    )


def _harmed(partitions: Iterable[StoppedPartition]) -> list[HarmedPartition]:
    return [
        HarmedPartition(
            topic=one.topic,
            partition=one.partition,
            isr=list(one.isr),
            min_insync_replicas=one.min_insync_replicas,
        )
        for one in partitions
    ]


async def _quorum_blockers(call: Call, node: NodePorts, broker_id: NodeId) -> list[str]:
    """Why the quorum needs the node, if it votes."""
    voters = node.config.voters
    if broker_id not in voters:
        return []
    if len(voters) == 1:
        return ["the node is the only voter of the metadata quorum"]
    try:
        quorum = await quorum_of(call)
    except KafkaError as error:
        return [f"the metadata quorum cannot be looked at: {error.message or error}"]
    if not quorum.is_known_by_leader:
        return [f"the metadata quorum cannot be looked at: {quorum.reason}"]
    needed = majority(len(voters))
    others = sum(
        one.node_id != broker_id and one.last_fetch_age_ms is not None and one.last_fetch_age_ms < VOTER_SILENT_MS
        for one in quorum.voters
    )
    if others >= needed:
        return []
    return [f"the metadata quorum would have {others} of {len(voters)} voters, {needed} needed"]


_PATH: Final = "/v1/brokers/{broker_id}/maintenance"
OPERATIONS: Final = (
    Operation(
        name="getMaintenance",
        method="GET",
        path=_PATH,
        tag="Brokers",
        summary="Whether a broker is drained, what it still leads, and whether it may be stopped",
        run=_get,
        answer=Maintenance,
    ),
    Operation(
        name="drainBroker",
        method="PUT",
        path=_PATH,
        tag="Brokers",
        summary="Drain a broker: it leads only what no other in-sync replica can lead, also after restarts",
        run=_drain,
        query=DrainQuery,
        answer=Maintenance,
    ),
    Operation(
        name="undrainBroker",
        method="DELETE",
        path=_PATH,
        tag="Brokers",
        summary="End the drain: the broker leads again what prefers it",
        run=_undrain,
        answer=Maintenance,
    ),
)
