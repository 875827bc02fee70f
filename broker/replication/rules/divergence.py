"""Where a follower's log leaves its leader's (KIP-101, KIP-279): rules only.

Kafka: `AbstractFetcherThread.truncateToEpochEndOffsets`, `OffsetTruncationState`.
"""

from ....protocol.ids import LeaderEpoch


def truncation_offset(
    diverging_epoch: tuple[LeaderEpoch, int], own_epoch: tuple[LeaderEpoch, int] | None, log_end_offset: int
) -> int:
    """Where to cut.

    `diverging_epoch` is what the leader has of the epoch of this log's last batch: the largest epoch up to that one,
    and where it ends. `own_epoch` is the same of this log for the epoch in the leader's answer, None when it has none.
    Where the two are of different epochs, the logs part earlier yet: this log is cut to the end of the epoch that it
    has, and the next fetch asks of that one.
    """
    leaders_epoch, leaders_end_offset = diverging_epoch
    if own_epoch is None:
        return min(leaders_end_offset, log_end_offset)
    epoch, end_offset = own_epoch
    if epoch != leaders_epoch:
        return min(end_offset, log_end_offset)
    return min(end_offset, leaders_end_offset, log_end_offset)
