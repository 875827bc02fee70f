"""`/v1/brokers/{broker_id}/decommission`: all replicas taken off a broker, a step with each request.

The metadata say what is left, so any node takes the next step, and there is nothing to stop but the asking.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from ....protocol.ids import NodeId
from ....protocol.rest.elections import PartitionName, PartitionOutcome
from ....protocol.rest.maintenance import Decommission, DecommissionRequest
from ....quorum.configs.own_keys import DRAINED
from ....quorum.planning.decommission import DecommissionState, decommission_state, moves_to_cancel, next_moves
from ....quorum.planning.maintenance import registered
from ....quorum.planning.moves import Place, cancel_request, move_request
from ..broker_answers import ask_log_dirs, sizes_in
from ..operation import Call, HttpError, Operation
from ..rules.kafka_answers import check
from .elections import listed
from .maintenance import set_drained
from .reassignments import MOVING_MAX, alter


async def _get(call: Call) -> Decommission:
    return _described(await _state(call), [])


async def _step(call: Call) -> Decommission:
    body: DecommissionRequest = DecommissionRequest() if call.body is None else call.body
    if not 1 <= body.moving_max <= MOVING_MAX:
        raise HttpError(400, "Bad Request", f"moving_max is from 1 to {MOVING_MAX}, not {body.moving_max}.")
    node, broker_id = call.node, NodeId(call.path["broker_id"])
    registered(node.image, broker_id)
    # Before anything changes: whether there is room for all of its replicas.
    planning = partial(next_moves, node.image, broker_id, moving_max=body.moving_max)
    moves = await node.loop.run_in_executor(None, planning)
    configs = node.image.configs
    if broker_id not in configs.drained_brokers or configs.is_drained_until_restart(broker_id):
        await set_drained(call, broker_id, DRAINED)
    results = await alter(call, move_request(moves))
    state = await _state(call)
    is_unregistered = body.unregister and state.may_unregister
    if is_unregistered:
        answer = await node.ask(
            UnregisterBrokerRequest(broker_id=BrokerId(broker_id)), UnregisterBrokerResponse, call.context
        )
        check(answer.error_code, answer.error_message)
    return _described(state, results, is_unregistered=is_unregistered)


async def _cancel(call: Call) -> Decommission:
    broker_id = NodeId(call.path["broker_id"])
    registered(call.node.image, broker_id)
    places = await call.node.loop.run_in_executor(None, moves_to_cancel, call.node.image, broker_id)
    results = await alter(call, cancel_request(places))
    await set_drained(call, broker_id, None)
    refused = [one for one in results if one.error_code]
    return _described(await _state(call), refused)


async def _state(call: Call) -> DecommissionState:
    broker_id = NodeId(call.path["broker_id"])
    registered(call.node.image, broker_id)
    answers, _ = await ask_log_dirs(call, [broker_id], None)
    sizes = sizes_in(answers[broker_id]) if broker_id in answers else None
    return await call.node.loop.run_in_executor(None, decommission_state, call.node.image, broker_id, sizes)


def _described(
    state: DecommissionState, results: list[PartitionOutcome], *, is_unregistered: bool = False
) -> Decommission:
    return Decommission(
        broker_id=state.broker_id,
        is_drained=state.is_drained,
        replica_count=state.replica_count,
        moving_count=state.moving_count,
        moving=list(map(_name, state.moving)),
        bytes_left=state.bytes_left,
        stuck=list(map(_name, state.stuck)),
        may_unregister=state.may_unregister,
        blockers=list(state.blockers),
        begun_count=sum(one.error_code == 0 for one in results),
        is_unregistered=is_unregistered,
        results=[one for one in listed(results) if one.error_code],
    )


def _name(place: Place) -> PartitionName:
    return PartitionName(topic=place[0], partition=place[1])


_PATH: Final = "/v1/brokers/{broker_id}/decommission"
OPERATIONS: Final = (
    Operation(
        name="getDecommission",
        method="GET",
        path=_PATH,
        tag="Brokers",
        summary="How far a broker is from having no replicas",
        run=_get,
        answer=Decommission,
    ),
    Operation(
        name="decommissionBroker",
        method="POST",
        path=_PATH,
        tag="Brokers",
        summary="Drain a broker and begin the next moves of its replicas to others; ask again until none is left",
        run=_step,
        body=DecommissionRequest,
        is_body_optional=True,
        answer=Decommission,
    ),
    Operation(
        name="cancelDecommission",
        method="DELETE",
        path=_PATH,
        tag="Brokers",
        summary="Cancel the moves off a broker and end its drain",
        run=_cancel,
        answer=Decommission,
    ),
)
