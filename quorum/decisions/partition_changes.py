"""What a change of a partition's ISR, or of who is alive, means for its leader, ISR and eligible leader replicas.

Kafka: `PartitionChangeBuilder`.

The leader is chosen in this order (KIP-966 §Unclean leader election, "balanced" recovery):

1. the present one, while it may lead (after the preferred one, when an election of that is asked for);
2. the first replica, in the order of the assignment, that is in the ISR and may lead;
3. the same from the ELR, when the ISR is empty: the chosen one alone becomes the ISR;
4. the last known leader, when ISR and ELR are both empty: that is how a single replica survives being killed;
5. with `unclean.leader.election.enable`, the first replica that may lead;
6. no leader (-1).

In 1 to 3 and in 5, a drained broker is chosen only where no other can be (decision 19).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, TypeVar
from uuid import UUID

from msgspec import Struct

from ...protocol.ids import NodeId, TopicId
from ...protocol.structs import replace
from ..metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from ..metadata.image import ConfigResource, ConfigResourceType, MetadataImage, PartitionRegistration, TopicImage
from ..metadata.records import (
    DIRECTORY_LOST,
    DIRECTORY_UNASSIGNED,
    LEADER_RECOVERING,
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_STATE_CHANGE,
    MetadataRecord,
    PartitionChangeRecord,
)
from .assignment_moves import Assignment, assignment_of, settle
from .context import ControllerConfig

T = TypeVar("T")

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_UNCLEAN_ELECTION = "unclean.leader.election.enable"
_ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


class ElectionRules(Struct, frozen=True, kw_only=True):
    """What configs and the cluster's features say about the elections of a topic."""

    min_insync_replicas: int
    uses_elr: bool
    allows_unclean: bool
    drained: Collection[NodeId] = frozenset()
    """Brokers that lead only where no other replica can."""


def election_rules(image: MetadataImage, topic: TopicImage, config: ControllerConfig) -> ElectionRules:
    """Return a topic's rules: from its own configs, else the cluster's dynamic ones, else this node's."""
    cluster_values = image.configs.of(_ALL_BROKERS)
    values = image.configs.of(ConfigResource(ConfigResourceType.TOPIC, topic.name)) or cluster_values
    min_insync_replicas = values.get(MIN_INSYNC_REPLICAS) or cluster_values.get(MIN_INSYNC_REPLICAS)
    allows_unclean = values.get(_UNCLEAN_ELECTION) or cluster_values.get(_UNCLEAN_ELECTION)
    return ElectionRules(
        min_insync_replicas=int(min_insync_replicas or config.min_insync_replicas),
        uses_elr=image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1,
        allows_unclean=allows_unclean == "true" if allows_unclean else config.unclean_leader_election_enable,
        drained=image.configs.drained_brokers,
    )


class PartitionTarget(Struct, frozen=True, kw_only=True):
    """What a partition is to become; who leads then is elected.

    `unclean` are brokers that lost what they had not synced: they are in neither ISR nor ELR.
    """

    assignment: Assignment
    isr: tuple[NodeId, ...]
    directories: Mapping[NodeId, UUID]
    leader_recovery_state: int
    unclean: Collection[NodeId] = ()

    @staticmethod
    def of(partition: PartitionRegistration) -> "PartitionTarget":
        """Return the target that changes nothing."""
        return PartitionTarget(
            assignment=assignment_of(partition),
            isr=partition.isr,
            directories=dict(zip(partition.replicas, partition.directories, strict=True)),
            leader_recovery_state=partition.leader_recovery_state,
        )


def partition_change(
    topic_id: TopicId,
    index: int,
    partition: PartitionRegistration,
    target: PartitionTarget,
    *,
    rules: ElectionRules,
    may_lead: Callable[[NodeId], bool],
    prefers: NodeId = NO_LEADER,
) -> PartitionChangeRecord | None:
    """Return the record that makes a partition what it is to become and elects, None when nothing changes.

    A reassignment that may end with that ISR does. `prefers` leads before the present leader, if it may.
    """
    assignment, isr = settle(target.assignment, target.isr)
    replicas = assignment.replicas
    isr = tuple([replica for replica in isr if replica not in target.unclean])
    elr: tuple[NodeId, ...] = ()
    min_insync_replicas = min(rules.min_insync_replicas, len(replicas))
    if rules.uses_elr and len(isr) < min_insync_replicas:
        elr = tuple(
            [
                replica
                for replica in dict.fromkeys(partition.elr + partition.isr)
                if replica in replicas and replica not in isr and replica not in target.unclean
            ]
        )
    leader, is_unclean = _elect(partition, replicas, isr, elr, rules, may_lead, prefers)
    if leader in elr:
        isr, elr = (leader,), tuple([replica for replica in elr if replica != leader])
    elif is_unclean:
        isr, elr = (leader,), ()
    elif not isr and not rules.uses_elr:
        # Without ELR the last member stays: an empty ISR could never be left again.
        isr = partition.isr
    # A reassignment that is cancelled may take it out of the replicas.
    last_known_elr = tuple([replica for replica in partition.last_known_elr if replica in replicas])
    if leader != NO_LEADER:
        last_known_elr = ()
    elif rules.uses_elr and not isr and partition.leader != NO_LEADER:
        last_known_elr = (partition.leader,)
    elif rules.uses_elr and not isr and not last_known_elr:
        # The leader was gone before: the last member that was in sync has all that it had.
        last_known_elr = partition.isr[:1]
    leader_recovery_state = target.leader_recovery_state
    if is_unclean and leader not in partition.last_known_elr and len(replicas) > 1:
        # The last known leader has all that the partition still has; only an election past live replicas loses more.
        leader_recovery_state = LEADER_RECOVERING
    directories = tuple([target.directories.get(replica, DIRECTORY_UNASSIGNED) for replica in replicas])
    # A broker that is no replica any more must not fetch as one, nor one that lost its log as if it still had it, by a
    # request that is long on its way. Then the leader's epoch rises though it stays.
    is_leader_told = (
        leader != partition.leader
        or not set(partition.replicas) <= set(replicas)
        or any(
            directory == DIRECTORY_LOST and partition.directory_of(replica) != DIRECTORY_LOST
            for replica, directory in zip(replicas, directories, strict=True)
        )
    )
    record = PartitionChangeRecord(
        topic_id=topic_id,
        partition_id=index,
        replicas=_changed(replicas, partition.replicas),
        adding_replicas=_changed(assignment.adding, partition.adding_replicas),
        removing_replicas=_changed(assignment.removing, partition.removing_replicas),
        isr=_changed(isr, partition.isr),
        leader=leader if is_leader_told else NO_LEADER_CHANGE,
        elr=_changed(elr, partition.elr),
        last_known_elr=_changed(last_known_elr, partition.last_known_elr),
        leader_recovery_state=(
            NO_RECOVERY_STATE_CHANGE
            if leader_recovery_state == partition.leader_recovery_state
            else leader_recovery_state
        ),
        directories=_changed(directories, partition.directories),
    )
    return None if record == PartitionChangeRecord(topic_id=topic_id, partition_id=index) else record


def requested_election(
    image: MetadataImage, config: ControllerConfig, topic: TopicImage, index: int, *, is_unclean: bool
) -> PartitionChangeRecord | None:
    """Return the record that gives a partition another leader, None when no other replica can lead.

    The preferred election takes the first replica; with `is_unclean` any live replica, whatever data that loses.
    """
    partition = topic.partitions[index]
    rules = election_rules(image, topic, config)
    record = partition_change(
        topic.topic_id,
        index,
        partition,
        PartitionTarget.of(partition),
        rules=replace(rules, allows_unclean=rules.allows_unclean or is_unclean),
        may_lead=acceptable_leader(image, partition),
        prefers=partition.replicas[0],
    )
    return None if record is None or record.leader in (NO_LEADER, NO_LEADER_CHANGE) else record


def broker_changes(
    image: MetadataImage,
    config: ControllerConfig,
    is_meant: Callable[[PartitionRegistration], bool],
    *,
    joining: NodeId | None = None,
    leaving: NodeId | None = None,
    is_unclean: bool = False,
    has_other_disks: bool = False,
) -> list[MetadataRecord]:
    """Return the changes of all partitions that are meant, when a broker comes back or goes.

    With `is_unclean`, what the leaving broker had not synced is lost; with `has_other_disks`, all is.
    """
    records: list[MetadataRecord] = []
    gone = () if leaving is None else (leaving,)
    is_lost = is_unclean or has_other_disks
    rules_of: dict[TopicId, ElectionRules] = {}
    for topic, index, partition in partitions_of(image, is_meant):
        rules = rules_of.get(topic.topic_id)
        if rules is None:
            rules = rules_of[topic.topic_id] = election_rules(image, topic, config)
        target = PartitionTarget.of(partition)
        record = partition_change(
            topic.topic_id,
            index,
            partition,
            replace(
                target,
                isr=tuple([replica for replica in partition.isr if replica != leaving]),
                directories=_without_disks(target.directories, leaving) if has_other_disks else target.directories,
                unclean=gone if is_lost else (),
            ),
            rules=rules,
            may_lead=acceptable_leader(image, partition, joining=joining, leaving=leaving),
        )
        if record is not None:
            records.append(record)
    return records


def partitions_of(
    image: MetadataImage, is_meant: Callable[[PartitionRegistration], bool]
) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """Yield the partitions that are meant.

    Looks at all of them: 10,000 take some milliseconds, and brokers come and go rarely.
    """
    for topic in image.topics.by_id.values():
        for index, partition in enumerate(topic.partitions):
            if is_meant(partition):
                yield topic, index, partition


def acceptable_leader(
    image: MetadataImage,
    partition: PartitionRegistration,
    *,
    joining: NodeId | None = None,
    leaving: NodeId | None = None,
) -> Callable[[NodeId], bool]:
    """Return whether a replica may lead: alive, not on its way out, and its directory online."""

    def may_lead(replica: NodeId) -> bool:
        broker = image.brokers.get(replica)
        if broker is None or replica == leaving or not (broker.is_active or replica == joining):
            return False
        return broker.has_online_directory(partition.directory_of(replica))

    return may_lead


def _without_disks(directories: Mapping[NodeId, UUID], broker_id: NodeId | None) -> dict[NodeId, UUID]:
    # For a replica without an assigned directory, new directory ids alone do not show that it is gone.
    return {
        replica: DIRECTORY_LOST if replica == broker_id and directory == DIRECTORY_UNASSIGNED else directory
        for replica, directory in directories.items()
    }


def _elect(
    partition: PartitionRegistration,
    replicas: tuple[NodeId, ...],
    isr: tuple[NodeId, ...],
    elr: tuple[NodeId, ...],
    rules: ElectionRules,
    may_lead: Callable[[NodeId], bool],
    prefers: NodeId,
) -> tuple[NodeId, bool]:
    leader = _choose((prefers, partition.leader, *replicas), isr or elr, rules, may_lead)
    if leader != NO_LEADER:
        return leader, False
    if rules.uses_elr and not (isr or elr) and len(partition.last_known_elr) == 1:
        [last_leader] = partition.last_known_elr
        if last_leader in replicas and may_lead(last_leader):
            return last_leader, True
    if rules.allows_unclean:
        leader = _choose(replicas, replicas, rules, may_lead)
    return leader, leader != NO_LEADER


def _choose(
    candidates: Iterable[NodeId],
    eligible: Collection[NodeId],
    rules: ElectionRules,
    may_lead: Callable[[NodeId], bool],
) -> NodeId:
    """Return the first eligible candidate that may lead; a drained one only where there is no other."""
    last_resort = NO_LEADER
    for replica in candidates:
        if replica in eligible and may_lead(replica):
            if replica not in rules.drained:
                return replica
            if last_resort == NO_LEADER:
                last_resort = replica
    return last_resort


def _changed(value: T, before: T) -> T | None:
    return None if value == before else value
