"""What a partition's leadership on this node tells as numbers; nothing where another node leads."""

from __future__ import annotations

from ..replicas.partition import Partition


def in_sync(partition: Partition) -> int:
    leadership = partition.state.leadership
    return 0 if leadership is None else len(leadership.isr.committed)


def assigned(partition: Partition) -> int:
    leadership = partition.state.leadership
    return 0 if leadership is None else leadership.replica_count


def is_under_replicated(partition: Partition) -> bool:
    leadership = partition.state.leadership
    return leadership is not None and leadership.is_under_replicated


def is_at_min_isr(partition: Partition) -> bool:
    leadership = partition.state.leadership
    return leadership is not None and leadership.is_at_min_isr
