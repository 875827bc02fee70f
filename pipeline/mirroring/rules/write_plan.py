"""What the driver tells the tasks of one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ..errors import MirrorError
from .offset_map import Position
from .source_partition import SourcePartition

Partitioning = Literal["keep", "murmur2", "round-robin"]
"""Same partition; by the hash of the key, as Java's producer does; by the offset."""

# A transaction is in memory twice, in Python and in the client; and a sink that takes 1 MiB/s has it within the
# transaction's timeout.
TRANSACTION_BYTES: Final = 32 * 2**20
TRANSACTION_RECORDS: Final = 100_000
TRANSACTION_TIMEOUT_MS: Final = 60_000
WRITE_TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRoute:
    source_topic_id: str
    source_partition_count: int
    target_topic: str
    target_topic_id: str
    target_partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    transactional_prefix: str
    map_topic: str
    map_offsets: tuple[int, ...]
    """By partition of the map's topic: `positions` are what the records below say."""
    positions: Mapping[SourcePartition, Position]
    routes: Mapping[tuple[str, str], TopicRoute]
    """By cluster and topic."""
    sources: Mapping[str, Mapping[str, str]] = field(repr=False)
    """Client properties by cluster; they may have secrets."""
    sink: Mapping[str, str] = field(repr=False)
    partitioning: Partitioning = "keep"
    transaction_bytes: int = TRANSACTION_BYTES
    transaction_records: int = TRANSACTION_RECORDS
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    write_timeout_s: float = WRITE_TIMEOUT_S

    def route(self, partition: SourcePartition) -> TopicRoute:
        """Raises MirrorError."""
        route = self.routes.get((partition.cluster, partition.topic))
        if route is None:
            raise MirrorError(f"{partition} has records and no target: its topic was deleted while the batch began")
        if self.partitioning == "keep" and partition.partition >= route.target_partition_count:
            raise MirrorError(
                f"{partition} has no partition {partition.partition} in topic {route.target_topic} of the sink, which"
                f" has {route.target_partition_count}"
            )
        return route


def check_topic_ids(
    partition: SourcePartition, route: TopicRoute, source_topic_id: str, before: Position | None
) -> None:
    """`source_topic_id` is the id after the records were read, so that all of them are records of that topic.

    Raises MirrorError when one of the topics is not the one that the position speaks of: its offsets began anew.
    """
    wanted = route.source_topic_id if before is None else before.source_topic_id
    if source_topic_id != wanted:
        raise MirrorError(
            f"topic {partition.topic} of {partition.cluster} was deleted and made again: its id is {source_topic_id},"
            f" and that of the topic which was copied so far {wanted}. Offsets of the new one mean other records: copy"
            " it under a new name (--set name=…) and with a new checkpoint; what the sink has stays"
        )
    if before is not None and before.target_topic != route.target_topic:
        raise MirrorError(
            f"{partition} was copied to topic {before.target_topic} so far, and now to {route.target_topic}: give the"
            " copy a new name (--set name=…) and a new checkpoint"
        )
    if before is not None and before.target_topic_id != route.target_topic_id:
        raise MirrorError(
            f"topic {route.target_topic} of the sink was deleted and made again: its id is {route.target_topic_id}, and"
            f" that of the topic copied to so far {before.target_topic_id}. What was copied of {partition} below offset"
            f" {before.next_offset} is not in it: give the copy a new name (--set name=…) and a new checkpoint"
        )
