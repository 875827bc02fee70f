"""The controller's periodic elections: preferred leaders, and leaders for partitions without one.

As Apache Kafka in KRaft mode, which balances every partition whose preferred replica may lead.
"""

from collections.abc import Iterable

from ..metadata.image import MetadataImage, PartitionRegistration, TopicImage
from ..metadata.records import NO_LEADER, MetadataRecord
from .context import ControllerResult, DecisionContext
from .partition_changes import election_rules, partitions_of, requested_election

MAX_ELECTIONS = 1_000
"""In one decision, so that many elections do not delay other requests."""


def balance_leaders(image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
    """Let preferred replicas lead again that may; the answer is whether there may be more of them.

    A drained broker is left out, which no election would prefer (decision 19).
    """
    drained = image.configs.drained_brokers
    others = partitions_of(
        image,
        lambda partition: (
            partition.leader not in (NO_LEADER, partition.replicas[0]) and partition.replicas[0] not in drained
        ),
    )
    return _elect(image, context, others, is_unclean=False)


def elect_where_unclean(image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
    """Elect leaders of partitions that have none and may have an unclean one; the answer is as that above."""
    leaderless = partitions_of(image, lambda partition: partition.leader == NO_LEADER)
    allowed = (one for one in leaderless if election_rules(image, one[0], context.config).allows_unclean)
    return _elect(image, context, allowed, is_unclean=True)


def _elect(
    image: MetadataImage,
    context: DecisionContext,
    partitions: Iterable[tuple[TopicImage, int, PartitionRegistration]],
    *,
    is_unclean: bool,
) -> ControllerResult[bool]:
    records: list[MetadataRecord] = []
    for topic, index, _ in partitions:
        record = requested_election(image, context.config, topic, index, is_unclean=is_unclean)
        if record is not None:
            records.append(record)
        if len(records) == MAX_ELECTIONS:
            break
    return ControllerResult(records=tuple(records), response=len(records) == MAX_ELECTIONS)
