"""What the coordinators of groups on one node have done since start. Kafka: `GroupCoordinatorMetricsShard`.

One for all partitions of the node: what a partition has counted stays when its leadership moves.
"""

from __future__ import annotations

from msgspec import Struct


class GroupCounters(Struct):
    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    classic_rebalances: int = 0
    """Generations that classic groups have begun."""
    consumer_rebalances: int = 0
    """Group epochs that consumer groups have begun (KIP-848)."""
