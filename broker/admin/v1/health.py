"""`/health` and `/ready`: how a node is, with the reasons."""

from __future__ import annotations

from typing import Final

from ....protocol.rest.health import Health, Reason
from ..operation import Answered, Call, Operation


async def _health(call: Call) -> Health:
    status = call.node.status()
    return Health(node_id=call.node.node_id, is_ok=True, state=status.state, reasons=[])


async def _ready(call: Call) -> Answered:
    status = call.node.status()
    reasons = [Reason(kind=reason.kind, sentence=reason.sentence) for reason in status.reasons]
    health = Health(node_id=call.node.node_id, is_ok=status.is_ready, state=status.state, reasons=reasons)
    return Answered(value=health, status=200 if status.is_ready else 503)


OPERATIONS: Final = (
    Operation(
        name="getHealth",
        method="GET",
        path="/health",
        tag="Health",
        summary="Whether the node works: 503 when it should be restarted or repaired",
        run=_health,
        answer=Health,
        other_statuses={503: Health},
        is_urgent=True,
    ),
    Operation(
        name="getReady",
        method="GET",
        path="/ready",
        tag="Health",
        summary="Whether the node serves clients: 503, with reasons, while it does not",
        run=_ready,
        answer=Health,
        other_statuses={503: Health},
        is_urgent=True,
    ),
)
