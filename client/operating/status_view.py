"""What `penstock status` shows of a look at the cluster, as lines and tables without input and output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from ...protocol.rest.nodes import Node
from ..units import format_bytes, format_count, format_seconds
from .cluster_look import ClusterLook, NodeLook, Traffic
from .event_lines import event_line
from .findings import Finding, free_share, summary_sentence

NODE_COLUMNS: Final = (
    "node",
    "roles",
    "state",
    "leads",
    "replicas",
    "not in sync",
    "disk free",
    "in",
    "out",
    "records",
)
QUORUM_COLUMNS: Final = ("node", "quorum", "log end offset", "lag", "last fetch")


class Rate(Struct, frozen=True, kw_only=True):
    """Of one node between two looks, a second."""

    bytes_in: float
    bytes_out: float
    messages_in: float


def rates_between(before: ClusterLook | None, after: ClusterLook) -> dict[int, Rate]:
    """By node, of those that have told their counters twice and were not restarted between."""
    if before is None:
        return {}
    old = {look.node_id: look.traffic for look in before.looks}
    rates = {}
    for look in after.looks:
        rate = _rate(old.get(look.node_id), look.traffic)
        if rate is not None:
            rates[look.node_id] = rate
    return rates


def head_lines(look: ClusterLook, findings: Iterable[Finding]) -> list[str]:
    """What is wrong, and what the cluster is."""
    topics = look.partitions.topics
    partitions = sum(len(topic.leaders) for topic in topics)
    leader = look.quorum.leader_id
    led = f"node {leader} leads the metadata quorum" if leader is not None else "no leader of the metadata quorum"
    return [
        summary_sentence(findings),
        f"cluster {look.nodes.cluster_id}: {_count(len(look.nodes.nodes), 'node')}, {_count(len(topics), 'topic')}, "
        f"{_count(partitions, 'partition')}; {led}, epoch {look.quorum.epoch}",
    ]


def node_rows(look: ClusterLook, rates: Mapping[int, Rate]) -> list[tuple[str | int | None, ...]]:
    """By NODE_COLUMNS."""
    looks = {one.node_id: one for one in look.looks}
    return [_node_row(node, looks.get(node.node_id), rates.get(node.node_id)) for node in look.nodes.nodes]


def quorum_rows(look: ClusterLook) -> list[tuple[str | int | None, ...]]:
    """By QUORUM_COLUMNS; of a voter that is not heard nothing is known."""
    rows: list[tuple[str | int | None, ...]] = []
    for role, replicas in (("voter", look.quorum.voters), ("observer", look.quorum.observers)):
        for one in replicas:
            age = "now" if one.is_leader else _age(one.last_fetch_age_ms)
            if not one.is_leader and one.last_fetch_age_ms is None:
                age = "not heard" if look.quorum.is_known_by_leader else "not known"
            rows.append((one.node_id, "leader" if one.is_leader else role, one.log_end_offset, one.lag, age))
    return rows


def event_rows(events: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    """The last ones, oldest first."""
    return [event_line(event) for event in events[-count:]] if count else []


def status_json(
    look: ClusterLook, findings: Sequence[Finding], rates: Mapping[int, Rate], events: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """For programs: all that is known, and the findings."""
    return {
        "is_ok": not any(finding.is_wrong for finding in findings),
        "summary": summary_sentence(findings),
        "findings": [finding_json(finding) for finding in findings],
        "nodes": msgspec.to_builtins(look.nodes),
        "quorum": msgspec.to_builtins(look.quorum),
        "throughput": {
            str(node_id): {
                "bytes_in_per_second": round(rate.bytes_in),
                "bytes_out_per_second": round(rate.bytes_out),
                "records_in_per_second": round(rate.messages_in),
            }
            for node_id, rate in rates.items()
        },
        "events": list(events),
    }


def finding_json(finding: Finding) -> dict[str, str]:
    return {
        "kind": finding.kind,
        "severity": finding.severity.name.lower(),
        "sentence": finding.sentence,
        "advice": finding.advice,
    }


def _node_row(node: Node, look: NodeLook | None, rate: Rate | None) -> tuple[str | int | None, ...]:
    is_broker = "broker" in node.roles
    state = "drained" if node.is_drained and node.state == "running" else node.state
    if node.unanswered is not None and node.state == "running":
        state = "no answer"
    if state is None and look is not None:
        state = "no answer" if look.unreachable else None if look.health is None else look.health.state
    return (
        f"{node.node_id}{'*' if node.is_quorum_leader else ''}",
        "+".join(node.roles),
        state,
        node.leader_count if is_broker else None,
        node.replica_count if is_broker else None,
        node.out_of_sync_count if is_broker else None,
        _free(node),
        None if rate is None else f"{format_bytes(round(rate.bytes_in))}/s",
        None if rate is None else f"{format_bytes(round(rate.bytes_out))}/s",
        None if rate is None else f"{format_count(round(rate.messages_in))}/s",
    )


def _free(node: Node) -> str | None:
    known = [(free_share(one), one) for one in node.log_dirs or ()]
    shares = [(share, one) for share, one in known if share is not None]
    if any(one.error for one in node.log_dirs or ()):
        return "failed"
    if not shares:
        return None
    share, fullest = min(shares, key=lambda pair: pair[0])
    return f"{format_bytes(fullest.free_bytes or 0)} ({share:.0%})"


def _rate(before: Traffic | None, after: Traffic | None) -> Rate | None:
    if before is None or after is None or after.at_s <= before.at_s or after.bytes_in < before.bytes_in:
        return None
    seconds = after.at_s - before.at_s
    return Rate(
        bytes_in=(after.bytes_in - before.bytes_in) / seconds,
        bytes_out=max(0.0, after.bytes_out - before.bytes_out) / seconds,
        messages_in=max(0.0, after.messages_in - before.messages_in) / seconds,
    )


def _age(age_ms: int | None) -> str | None:
    return None if age_ms is None else f"{format_seconds(age_ms / 1000)} ago"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
