"""What makes a node not healthy, what makes it not ready, and what is only told.

Not healthy: what a restart of the process mends, which is that the node has failed and is about to end. A disk that is
gone or full, a quorum without a majority and partitions without a leader are there after a restart, too: a supervisor
that restarts nodes for them makes an outage larger.

Not ready: clients are not to be sent here. The node starts or stops, the active controller has fenced it, or it is a
controller that knows no leader. A broker that has lost the quorum goes on serving what it leads, so that is a warning;
so are under-replicated partitions, most often the fault of another node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from ....protocol.ids import NodeId
from ....protocol.no_quorum import no_quorum, reached_voters
from ....quorum.metadata.image import MetadataImage
from ....quorum.metadata.records import NO_LEADER
from .node_facts import NodeFacts

NAMED_MAX: Final = 5
"""Partitions that a reason names."""


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `partitions` are the first NAMED_MAX of `count`."""

    kind: str
    sentence: str
    count: int | None = None
    partitions: Sequence[str] = ()


@dataclass(slots=True)
class Tally:
    """Partitions of one kind: how many, and the first few."""

    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, topic: str, index: int) -> None:
        self.count += 1
        if len(self.names) < NAMED_MAX:
            self.names.append(f"{topic}-{index}")

    def finding(self, kind: str, what: str) -> Iterator[Finding]:
        if self.count:
            more = ", …" if self.count > len(self.names) else ""
            plural = "partition" if self.count == 1 else "partitions"
            yield Finding(
                kind=kind,
                sentence=f"{self.count} {plural} {what}: {', '.join(self.names)}{more}.",
                count=self.count,
                partitions=tuple(self.names),
            )


@dataclass(slots=True)
class PartitionProblems:
    """Of the partitions that have a replica on one node, by the metadata."""

    offline: Tally = field(default_factory=Tally)
    under_min_isr: Tally = field(default_factory=Tally)
    under_replicated: Tally = field(default_factory=Tally)
    out_of_sync: Tally = field(default_factory=Tally)
    """Those whose replica on the node itself is not in the ISR."""

    def findings(self) -> Iterator[Finding]:
        yield from self.offline.finding("offline-partitions", "without a leader")
        yield from self.under_min_isr.finding("under-min-isr", "below min.insync.replicas")
        yield from self.under_replicated.finding("under-replicated", "with replicas that are not in sync")


def note_topic(
    problems: PartitionProblems, image: MetadataImage, topic_name: str, node_id: NodeId, min_insync_replicas: int
) -> None:
    """Add the problems of one topic's partitions on that node."""
    topic = image.topics.by_name.get(topic_name)
    for index, partition in enumerate(() if topic is None else topic.partitions):
        if node_id not in partition.replicas:
            continue
        if partition.leader == NO_LEADER:
            problems.offline.add(topic_name, index)
        elif len(partition.isr) < min(min_insync_replicas, len(partition.replicas)):
            problems.under_min_isr.add(topic_name, index)
        if len(partition.isr) < len(partition.replicas):
            problems.under_replicated.add(topic_name, index)
        if node_id not in partition.isr:
            problems.out_of_sync.add(topic_name, index)


def unhealthy(facts: NodeFacts) -> Iterator[Finding]:
    """Yield why the process should be restarted."""
    if facts.failure is not None:
        yield Finding(kind="failed", sentence=facts.failure)


def not_ready(
    image: MetadataImage,
    node_id: NodeId,
    *,
    is_broker: bool,
    leader_id: NodeId | None,
    voters: Sequence[NodeId],
    silent: Collection[NodeId],
) -> Iterator[Finding]:
    """Yield why a node that runs is to get no clients. `silent` are the voters that do not answer it."""
    if not is_broker:
        if leader_id is None:
            sentence = f"The metadata quorum has no leader: {quorum_sentence(voters, silent)}."
            yield Finding(kind="no-quorum-leader", sentence=sentence)
        return
    broker = image.brokers.get(node_id)
    if broker is None:
        yield Finding(kind="not-registered", sentence=f"Broker {node_id} is not registered.")
    elif broker.is_fenced:
        yield Finding(kind="fenced", sentence="The active controller has fenced this broker.")
    elif broker.in_controlled_shutdown:
        yield Finding(kind="controlled-shutdown", sentence="The broker is in controlled shutdown.")


def warnings(
    image: MetadataImage,
    facts: NodeFacts,
    problems: PartitionProblems,
    node_id: NodeId,
    *,
    leader_id: NodeId | None,
    silent: Mapping[NodeId, str],
) -> Iterator[Finding]:
    """Yield what is wrong and does not change what the node is to be used for."""
    for directory in facts.directories:
        if not directory.is_online:
            yield Finding(kind="log-dir-offline", sentence=f"Log directory {directory.path} has failed.")
        elif not directory.has_room:
            yield Finding(
                kind="disk-full",
                sentence=f"The disk of {directory.path} has no room above log.dir.reserve.bytes: appends are refused.",
            )
    replicas = Tally()
    for topic, index in facts.offline_replicas:
        replicas.add(topic, index)
    yield from replicas.finding("offline-replicas", "whose log on this node cannot be used")
    yield from problems.findings()
    if facts.loading_coordinators:
        yield Finding(
            kind="loading-coordinators",
            sentence=f"{facts.loading_coordinators} partitions of internal topics are still loaded.",
            count=facts.loading_coordinators,
        )
    if node_id in image.configs.drained_brokers:
        yield Finding(kind="drained", sentence="The broker is drained: it leads what no other replica can lead.")
    yield from without_leader(leader_id, silent)


def without_leader(leader_id: NodeId | None, silent: Mapping[NodeId, str]) -> Iterator[Finding]:
    """Yield that the quorum has no leader, with the voters that do not answer."""
    if leader_id is not None:
        return
    yield Finding(
        kind="no-quorum-leader",
        sentence="This node knows no leader of the metadata quorum: metadata cannot be changed.",
    )
    for voter_id, reason in sorted(silent.items()):
        yield Finding(kind="silent-voter", sentence=f"Voter {voter_id} does not answer: {reason}.")


def quorum_sentence(voters: Sequence[NodeId], silent: Collection[NodeId]) -> str:
    """Return how many voters there are and are needed: `no quorum: 1 of 3 voters, 2 needed; …`."""
    return no_quorum(voters, silent) or f"no leader yet: {reached_voters(voters, silent)}"
