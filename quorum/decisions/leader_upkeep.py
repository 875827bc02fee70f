"""What the controller elects of itself, from time to time: preferred leaders, and any leader where there is none.

As Apache Kafka in KRaft mode, which balances every partition whose preferred replica may lead.
"""

from ..metadata.image import MetadataImage
from ..metadata.records import NO_LEADER, MetadataRecord
from .context import ControllerResult, DecisionContext
from .partition_changes import election_rules, partitions_of, requested_election

MAX_ELECTIONS = 1_000
"""In one decision, so that many elections hold up nobody else's requests."""


def balance_leaders(image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
    """Let preferred replicas lead again that may; the answer is whether there may be more of them."""
    records: list[MetadataRecord] = []
    for topic, index, _ in partitions_of(
        image, lambda partition: partition.leader not in (NO_LEADER, partition.replicas[0])
    ):
        record = requested_election(image, context.config, topic, index, is_unclean=False)
        if record is not None:
            records.append(record)
        if len(records) == MAX_ELECTIONS:
            break
    return ControllerResult(records=tuple(records), response=len(records) == MAX_ELECTIONS)


def elect_where_unclean(image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
    """Elect leaders of partitions that have none and may have an unclean one; the answer is as that above."""
    records: list[MetadataRecord] = []
    for topic, index, _ in partitions_of(image, lambda partition: partition.leader == NO_LEADER):
        if not election_rules(image, topic, context.config).allows_unclean:
            continue
        record = requested_election(image, context.config, topic, index, is_unclean=True)
        if record is not None:
            records.append(record)
        if len(records) == MAX_ELECTIONS:
            break
    return ControllerResult(records=tuple(records), response=len(records) == MAX_ELECTIONS)
