"""Log lines for metadata changes: one for each created or deleted topic, one for all other changes of a delta.

A broker that leaves or returns changes every partition it has a replica of. Details are at DEBUG, a line a partition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from ....quorum.metadata.delta import MetadataDelta
from ....quorum.metadata.image import PartitionRegistration
from ....quorum.metadata.topics_delta import TopicDelta

logger = logging.getLogger(__name__)

# Different changes of leader and ISR that one line tells.
_TRANSITIONS_MAX: Final = 3


def log_changes(delta: MetadataDelta) -> None:
    for topic in delta.topics.deleted.values():
        logger.info("Deleted topic: topic=%s partitions=%d", topic.name, len(topic.partitions))
    changes = []
    for change in delta.topics.changed.values():
        # A topic in the first delta of a process may be old or new: the delta cannot distinguish them.
        if change.is_new and delta.base.offset >= 0:
            logger.info("Created topic: topic=%s partitions=%d", change.name, len(change.changed))
        else:
            changes.append(change)
    if changes:
        _log_changed(changes)
    if logger.isEnabledFor(logging.DEBUG):
        for change in delta.topics.changed.values():
            for index, registration in change.changed.items():
                logger.debug(
                    "Partition changed: topic=%s partition=%d leader=%d leader_epoch=%d isr=%s",
                    change.name,
                    index,
                    registration.leader,
                    registration.leader_epoch,
                    _ids(registration.isr),
                )


def _log_changed(changes: Sequence[TopicDelta]) -> None:
    """One line, with leader and ISR from old to new unless the partitions differ in too many ways for it."""
    partition_count = sum(len(change.changed) for change in changes)
    topics = f"topic={changes[0].name}" if len(changes) == 1 else f"topics={len(changes)}"
    transitions: set[str] = set()
    for change in changes:
        for index, registration in change.changed.items():
            transitions.add(_transition(change.base_partition(index), registration))
            if len(transitions) > _TRANSITIONS_MAX:
                logger.info("Partitions changed: %s partitions=%d", topics, partition_count)
                return
    for_all = "; ".join(sorted(one for one in transitions if one))
    logger.info("Partitions changed: %s partitions=%d%s", topics, partition_count, f" {for_all}" if for_all else "")


def _transition(old: PartitionRegistration | None, new: PartitionRegistration) -> str:
    if old is None:
        return f"leader={new.leader} isr={_ids(new.isr)}"
    parts = []
    if old.leader != new.leader:
        parts.append(f"leader={old.leader}->{new.leader}")
    if old.isr != new.isr:
        parts.append(f"isr={_ids(old.isr)}->{_ids(new.isr)}")
    return " ".join(parts)


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))
