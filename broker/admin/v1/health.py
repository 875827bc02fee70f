"""`/health` and `/ready`: how a node is, with the reasons (`rules/health.py` says which counts for what)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from ....protocol.rest.health import Health, NodeState, ReadyQuery, Reason
from ..node_ports import NodePorts
from ..operation import Answered, Call, Operation
from ..rules import health as rules
from ..rules.health import Finding
from .partition_look import PartitionLook

_LOOKS: Final[WeakKeyDictionary[object, PartitionLook]] = WeakKeyDictionary()
"""By the metadata of the node: one in a process, several in tests."""


async def _health(call: Call) -> Answered:
    facts = await call.node.facts()
    reasons = list(rules.unhealthy(facts))
    return _answered(call, call.node.state(), reasons, [])


async def _ready(call: Call) -> Answered:
    node = call.node
    state = node.state()
    facts, image = await node.facts(), node.image
    leader_id = node.quorum_leader()
    if state == "stopping":
        # What the quorum and the partitions are like is no reason any more.
        return _answered(call, state, [Finding(kind=state, sentence=node.phase()), *rules.unhealthy(facts)], [])
    silent = {} if leader_id is not None else await node.silent_voters()
    reasons = [] if state == "running" else [Finding(kind=state, sentence=node.phase())]
    reasons += rules.unhealthy(facts)
    if state == "starting":
        if leader_id is None and len(node.config.voters) > 1:
            sentence = rules.quorum_sentence(sorted(node.config.voters), silent)
            reasons.append(Finding(kind="no-quorum", sentence=f"{sentence[:1].upper()}{sentence[1:]}."))
        reasons += [one for one in rules.without_leader(leader_id, silent) if one.kind == "silent-voter"]
        return _answered(call, state, reasons, [])
    reasons += rules.not_ready(
        image,
        node.node_id,
        is_broker=node.config.is_broker,
        leader_id=leader_id,
        voters=sorted(node.config.voters),
        silent=silent,
    )
    problems = await _look(node).look(node)
    if call.query.caught_up:
        reasons += problems.out_of_sync.finding("out-of-sync", "whose replica on this node is not in sync")
    told = rules.warnings(image, facts, problems, node.node_id, leader_id=leader_id, silent=silent)
    kinds = {reason.kind for reason in reasons}
    return _answered(call, state, reasons, [one for one in told if one.kind not in kinds])


def _look(node: NodePorts) -> PartitionLook:
    return _LOOKS.setdefault(node.metadata, PartitionLook())


def _answered(call: Call, state: NodeState, reasons: Iterable[Finding], warnings: Iterable[Finding]) -> Answered:
    found = list(map(_reason, reasons))
    health = Health(
        node_id=call.node.node_id,
        is_ok=not found,
        state=state,
        reasons=found,
        warnings=list(map(_reason, warnings)),
    )
    return Answered(value=health, status=503 if found else 200)


def _reason(finding: Finding) -> Reason:
    return Reason(
        kind=finding.kind, sentence=finding.sentence, count=finding.count, partitions=list(finding.partitions)
    )


OPERATIONS: Final = (
    Operation(
        name="getHealth",
        method="GET",
        path="/health",
        tag="Health",
        summary="Whether the process works: 503 when a restart would mend it",
        run=_health,
        answer=Health,
        other_statuses={503: Health},
        is_urgent=True,
        is_open=True,
    ),
    Operation(
        name="getReady",
        method="GET",
        path="/ready",
        tag="Health",
        summary="Whether clients may be sent to the node: 503, with reasons, while they may not",
        description=(
            "Reasons make a node not ready; warnings (failed log directories, full disks, partitions that are offline, "
            "under min.insync.replicas or under-replicated, a quorum without a leader) do not."
        ),
        run=_ready,
        query=ReadyQuery,
        answer=Health,
        other_statuses={503: Health},
        is_urgent=True,
        is_open=True,
    ),
)
