"""Log lines for metadata changes: one for each created or deleted topic, one for all other changes of a delta.

A broker that leaves or returns changes every partition it has a replica of. Details are at DEBUG, a line a partition.
"""

from __future__ import annotations

import logging

from ....quorum.metadata.delta import MetadataDelta

logger = logging.getLogger(__name__)


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
    if len(changes) == 1:
        logger.info("Partitions changed: topic=%s partitions=%d", changes[0].name, len(changes[0].changed))
    elif changes:
        partition_count = sum(len(change.changed) for change in changes)
        logger.info("Partitions changed: topics=%d partitions=%d", len(changes), partition_count)
    if logger.isEnabledFor(logging.DEBUG):
        for change in delta.topics.changed.values():
            for index, registration in change.changed.items():
                logger.debug(
                    "Partition changed: topic=%s partition=%d leader=%d leader_epoch=%d isr=%s",
                    change.name,
                    index,
                    registration.leader,
                    registration.leader_epoch,
                    ",".join(map(str, registration.isr)),
                )
