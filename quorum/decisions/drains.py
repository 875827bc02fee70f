"""Which leaderships move when a broker is drained, and which come back when it is so no more (decision 19).

All later elections keep to it by themselves: `partition_changes.py` takes a drained broker only where no other can be.
"""

from collections.abc import Collection

from ...protocol.ids import NodeId, TopicId
from ..metadata.image import MetadataImage, PartitionRegistration
from ..metadata.records import NO_LEADER, MetadataRecord
from .context import ControllerConfig
from .partition_changes import (
    ElectionRules,
    PartitionTarget,
    acceptable_leader,
    election_rules,
    partition_change,
    partitions_of,
)


def moved_leaderships(
    image: MetadataImage, config: ControllerConfig, *, before: Collection[NodeId]
) -> list[MetadataRecord]:
    """Return the elections that follow once other brokers are drained than `before`; `image` has them already.

    What a drained broker leads goes to another in-sync replica where one may lead. What prefers a broker that is
    drained no more goes back to it at once where it is in sync; the rest follows with the check of leader imbalance.
    """
    drained = image.configs.drained_brokers
    if drained == frozenset(before):
        return []
    undrained = frozenset(before) - drained

    def is_meant(partition: PartitionRegistration) -> bool:
        return partition.leader in drained or partition.replicas[0] in undrained

    records: list[MetadataRecord] = []
    rules_of: dict[TopicId, ElectionRules] = {}
    for topic, index, partition in partitions_of(image, is_meant):
        rules = rules_of.get(topic.topic_id)
        if rules is None:
            rules = rules_of[topic.topic_id] = election_rules(image, topic, config)
        preferred = partition.replicas[0]
        record = partition_change(
            topic.topic_id,
            index,
            partition,
            PartitionTarget.of(partition),
            rules=rules,
            may_lead=acceptable_leader(image, partition),
            prefers=preferred if preferred in undrained else NO_LEADER,
        )
        if record is not None:
            records.append(record)
    return records
