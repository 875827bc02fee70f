"""What is wrong with a cluster, and what to do about it: rules over one look at it, without input and output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

from ...protocol.rest.nodes import Node, NodeDirectory
from ...protocol.rest.partition_map import TopicMap
from ...protocol.rest.quorum import Quorum
from ..units import format_bytes, format_seconds
from .cluster_look import ClusterLook, NodeLook

VOTER_SILENT_MS: Final = 5_000
"""A voter fetches twice a second; two missed fetches may be a pause of its process."""
CLOCK_DIFFERENCE_MS: Final = 1_000
"""Retention, transactions and timestamps by the broker go by the clocks of nodes."""
FREE_LOW: Final = 0.10
FREE_VERY_LOW: Final = 0.03
IMBALANCE: Final = 0.10
"""Kafka: `leader.imbalance.per.broker.percentage`."""
NAMED_MAX: Final = 3


class Severity(IntEnum):
    """`OUTAGE`: clients are refused now. `DANGER`: the next loss may be an outage. `ADVICE`: it could be better."""

    OUTAGE = 0
    DANGER = 1
    ADVICE = 2


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, as a sentence, and what to do."""

    kind: str
    severity: Severity
    sentence: str
    advice: str

    @property
    def is_wrong(self) -> bool:
        return self.severity < Severity.ADVICE


def cluster_findings(look: ClusterLook) -> tuple[Finding, ...]:
    """All of them, the worst first."""
    found = [
        *quorum_findings(look.quorum),
        *node_findings(look.nodes.nodes, look.looks),
        *partition_findings(look.partitions.topics, look.min_insync_replicas),
        *(found for node in look.nodes.nodes for found in disk_findings(node)),
        *leader_findings(look.nodes.nodes),
        *hanging_findings(look),
        *clock_findings(look.looks),
        *version_findings(look.looks),
        *placement_findings(look),
    ]
    return tuple(sorted(found, key=lambda finding: finding.severity))


def summary_sentence(findings: Iterable[Finding]) -> str:
    """What status says first."""
    wrong = [finding for finding in findings if finding.is_wrong]
    if not wrong:
        return "Nothing is wrong."
    more = f" And {len(wrong) - 1} more: `penstock doctor`." if len(wrong) > 1 else ""
    return f"{wrong[0].sentence}{more}"


def quorum_findings(quorum: Quorum) -> Iterator[Finding]:
    """A quorum without a leader, and voters that its leader does not hear."""
    if not quorum.is_known_by_leader:
        reason = quorum.reason or "The metadata quorum has no leader."
        yield Finding(
            kind="no-quorum",
            severity=Severity.OUTAGE,
            sentence=reason,
            advice="Start the voters that do not answer. Until a majority is there no topic can be created and no "
            "leader elected; records flow where partitions have a leader.",
        )
        return
    for voter in quorum.voters:
        age_ms = voter.last_fetch_age_ms
        if not voter.is_leader and (age_ms is None or age_ms > VOTER_SILENT_MS):
            since = "" if age_ms is None else f" for {format_seconds(age_ms / 1000)}"
            yield Finding(
                kind="voter-not-heard",
                severity=Severity.DANGER,
                sentence=f"Voter {voter.node_id} of the metadata quorum is not heard{since}.",
                advice="Bring it back: one more loss may end the quorum.",
            )
    if len(quorum.voters) % 2 == 0:
        yield Finding(
            kind="even-voters",
            severity=Severity.ADVICE,
            sentence=f"The metadata quorum has {len(quorum.voters)} voters, an even number.",
            advice="One voter fewer survives as many losses.",
        )


def node_findings(nodes: Iterable[Node], looks: Iterable[NodeLook]) -> Iterator[Finding]:
    """Brokers that are fenced, and nodes that do not answer or are not well."""
    by_id = {look.node_id: look for look in looks}
    for node in nodes:
        look = by_id.get(node.node_id)
        if node.state == "fenced":
            yield Finding(
                kind="fenced-broker",
                severity=Severity.DANGER,
                sentence=f"Broker {node.node_id} is fenced: it sends no heartbeats.",
                advice="Start its node again. If it is gone for good: "
                f"`penstock decommission {node.node_id} --wait --unregister`.",
            )
        elif node.unanswered is not None:
            yield Finding(
                kind="silent-broker",
                severity=Severity.DANGER,
                sentence=f"Broker {node.node_id} does not answer: {node.unanswered.rstrip('.')}.",
                advice="Look whether its process runs and at the end of its log.",
            )
        elif look is not None and look.unreachable is not None:
            yield Finding(
                kind="silent-admin",
                severity=Severity.ADVICE,
                sentence=f"The HTTP administration of node {node.node_id} does not answer: {look.unreachable}.",
                advice="admin.advertised.listeners of the node has to be an address that can be reached from here.",
            )
        if look is not None and look.health is not None:
            for reason in look.health.reasons:
                if reason.kind not in ("fenced", "no-quorum", "no-quorum-leader", "silent-voter"):
                    yield Finding(
                        kind=f"not-ready-{reason.kind}",
                        severity=Severity.DANGER,
                        sentence=f"Node {node.node_id} is not ready: {reason.sentence}",
                        advice="See `/ready` of the node and its log.",
                    )
        if node.is_drained:
            yield Finding(
                kind="drained-broker",
                severity=Severity.ADVICE,
                sentence=f"Broker {node.node_id} is drained: it leads nothing.",
                advice=f"`penstock drain {node.node_id} --undo` when the work on its machine is done.",
            )


def partition_findings(topics: Iterable[TopicMap], min_insync_replicas: Mapping[str, int]) -> Iterator[Finding]:
    """Partitions without a leader, under min.insync.replicas, or with replicas that are not in sync."""
    offline, under_min, under = [], [], []
    for topic in topics:
        needed = min_insync_replicas.get(topic.topic_name, 1)
        for index, (leader, in_sync, replicas) in enumerate(
            zip(topic.leaders, topic.in_sync, topic.replicas, strict=True)
        ):
            name = f"{topic.topic_name}-{index}"
            if leader < 0:
                offline.append(name)
            elif in_sync < min(needed, replicas):
                under_min.append(name)
            if in_sync < replicas:
                under.append(name)
    if offline:
        yield Finding(
            kind="offline-partitions",
            severity=Severity.OUTAGE,
            sentence=f"{_partitions(offline)} without a leader: {_named(offline)}.",
            advice="Bring back the brokers of their ISR (`penstock topic describe`). `penstock elect --unclean` elects "
            "a replica that may lack acknowledged records.",
        )
    if under_min:
        yield Finding(
            kind="under-min-isr",
            severity=Severity.OUTAGE,
            sentence=f"{_partitions(under_min)} below min.insync.replicas: {_named(under_min)}. Writes with acks=all "
            "are refused.",
            advice="Bring the missing replicas back.",
        )
    if under:
        yield Finding(
            kind="under-replicated",
            severity=Severity.DANGER,
            sentence=f"{_partitions(under)} with replicas that are not in sync: {_named(under)}.",
            advice="Look for a node that is down, or whose disk or network is slow.",
        )


def disk_findings(node: Node) -> Iterator[Finding]:
    """Log directories that have failed or are almost full."""
    for directory in node.log_dirs or ():
        if directory.error is not None:
            yield Finding(
                kind="failed-log-dir",
                severity=Severity.DANGER,
                sentence=f"Log directory {directory.path} of broker {node.node_id} has failed ({directory.error}).",
                advice="Replace the disk, empty the folder and restart the node.",
            )
            continue
        free = free_share(directory)
        if free is not None and free < FREE_LOW:
            yield Finding(
                kind="disk-almost-full",
                severity=Severity.OUTAGE if free < FREE_VERY_LOW else Severity.DANGER,
                sentence=f"The disk of {directory.path} of broker {node.node_id} has "
                f"{format_bytes(directory.free_bytes or 0)} left, {free:.0%} of it.",
                advice="Lower retention of the largest topics (`penstock topic list --sizes`), or move replicas "
                "(`penstock reassign`).",
            )


def free_share(directory: NodeDirectory) -> float | None:
    """Of a disk, from 0 to 1; None where it is not known."""
    if not directory.total_bytes or directory.free_bytes is None:
        return None
    return directory.free_bytes / directory.total_bytes


def leader_findings(nodes: Iterable[Node]) -> Iterator[Finding]:
    """Leaderships that are with other brokers than the preferred ones."""
    nodes = list(nodes)
    # The controller cannot balance what a broker that is away should lead.
    if any(node.state != "running" or node.is_drained for node in nodes if "broker" in node.roles):
        return
    missing = {node.node_id: node.preferred_leader_count - node.leader_count for node in nodes}
    worst = max(nodes, key=lambda node: missing[node.node_id], default=None)
    if worst is not None and missing[worst.node_id] > IMBALANCE * worst.preferred_leader_count:
        yield Finding(
            kind="unbalanced-leaders",
            severity=Severity.ADVICE,
            sentence=f"Broker {worst.node_id} leads {worst.leader_count:,} partitions and should lead "
            f"{worst.preferred_leader_count:,}.",
            advice="The controller balances it within minutes; `penstock elect --preferred` does it now.",
        )


def hanging_findings(look: ClusterLook) -> Iterator[Finding]:
    """Transactions that no coordinator will end."""
    for one in look.hanging:
        yield Finding(
            kind="hanging-transaction",
            severity=Severity.DANGER,
            sentence=f"A transaction of producer {one.producer_id} hangs in {one.topic}-{one.partition} at offset "
            f"{one.start_offset}: consumers with read_committed wait.",
            advice=f"`penstock transactions abort --topic {one.topic} --partition {one.partition} --start-offset "
            f"{one.start_offset}`.",
        )


def clock_findings(looks: Iterable[NodeLook]) -> Iterator[Finding]:
    """Nodes whose wall clocks differ."""
    known = [(look.clock_ms, look.node_id) for look in looks if look.clock_ms is not None]
    if len(known) < 2:
        return
    (first_ms, first), (last_ms, last) = min(known), max(known)
    if last_ms - first_ms > CLOCK_DIFFERENCE_MS:
        yield Finding(
            kind="clocks-differ",
            severity=Severity.DANGER,
            sentence=f"The clock of node {first} is {format_seconds((last_ms - first_ms) / 1000)} behind that of node "
            f"{last}.",
            advice="Synchronise the clocks of the machines (chrony, systemd-timesyncd): retention goes by them.",
        )


def version_findings(looks: Iterable[NodeLook]) -> Iterator[Finding]:
    """Nodes of several versions."""
    versions: dict[str, list[int]] = {}
    for look in looks:
        if look.version is not None:
            versions.setdefault(look.version, []).append(look.node_id)
    if len(versions) > 1:
        told = "; ".join(f"{version}: node {', '.join(map(str, ids))}" for version, ids in sorted(versions.items()))
        yield Finding(
            kind="versions-differ",
            severity=Severity.ADVICE,
            sentence=f"Nodes are of several versions ({told}).",
            advice="Finish the upgrade.",
        )


def placement_findings(look: ClusterLook) -> Iterator[Finding]:
    """Topics that the loss of one node stops."""
    brokers = sum("broker" in node.roles and node.state is not None for node in look.nodes.nodes)
    if brokers < 2:
        return
    single, tight, internal = [], [], []
    for topic in look.partitions.topics:
        factor = max(topic.replicas, default=0)
        if topic.topic_name.startswith("__"):
            if factor < min(3, brokers):
                internal.append(topic.topic_name)
        elif factor == 1:
            single.append(topic.topic_name)
        elif look.min_insync_replicas.get(topic.topic_name, 1) >= factor:
            tight.append(topic.topic_name)
    if internal:
        yield Finding(
            kind="internal-replication",
            severity=Severity.ADVICE,
            sentence=f"Internal topics have fewer replicas than {min(3, brokers)}: {_named(internal)}.",
            advice="`penstock reassign apply --plan FILE` with more replicas for each partition.",
        )
    if single:
        yield Finding(
            kind="single-replica",
            severity=Severity.ADVICE,
            sentence=f"{len(single):,} topic{'s have' if len(single) > 1 else ' has'} one replica: {_named(single)}. "
            "A lost disk loses its records.",
            advice="`penstock reassign apply --plan FILE` with more replicas for each partition.",
        )
    if tight:
        yield Finding(
            kind="tight-min-isr",
            severity=Severity.ADVICE,
            sentence=f"min.insync.replicas of {_named(tight)} is the number of replicas: no node may stop.",
            advice="`penstock config set topic/NAME min.insync.replicas=…`, one less than the replicas.",
        )


def _partitions(names: list[str]) -> str:
    return f"{len(names):,} partition{'s are' if len(names) > 1 else ' is'}"


def _named(names: list[str]) -> str:
    return f"{', '.join(names[:NAMED_MAX])}{', …' if len(names) > NAMED_MAX else ''}"
