"""The assignor `range`: each member gets a run of partitions of each of its topics. Kafka: `RangeAssignor`.

Topics of equal partition counts that all members read are divided alike, so that what belongs together can be joined.
Members are taken by instance id, static ones first, so that a restart changes nothing for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from ...configuration.consumer_config import RANGE
from .assignor import MemberSpec
from .member import Partitions


class RangeAssignor:
    name = RANGE

    def assign(
        self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
    ) -> Mapping[str, Partitions]:
        """As `Assignor`."""
        reader_counts = Counter(topic_id for spec in members.values() for topic_id in spec.topic_ids)
        # Of each topic: where the next run begins, and how many are one longer.
        next_starts = dict.fromkeys(reader_counts, 0)
        extras = {topic_id: partition_counts[topic_id] % count for topic_id, count in reader_counts.items()}
        assignment: dict[str, Partitions] = {}
        for member_id in sorted(members, key=lambda member_id: _place(member_id, members[member_id])):
            mine: dict[UUID, frozenset[int]] = {}
            for topic_id in members[member_id].topic_ids:
                length = partition_counts[topic_id] // reader_counts[topic_id]
                if extras[topic_id]:
                    extras[topic_id] -= 1
                    length += 1
                start = next_starts[topic_id]
                if length:
                    mine[topic_id] = frozenset(range(start, start + length))
                    next_starts[topic_id] = start + length
            assignment[member_id] = mine
        return assignment


def _place(member_id: str, spec: MemberSpec) -> tuple[bool, str]:
    return (spec.instance_id is None, member_id if spec.instance_id is None else spec.instance_id)
