"""What assigns partitions to members: what it is told, and what it answers.

As in Apache Kafka 4.3, racks count only in that a group whose topics' racks change is assigned anew: neither assignor
looks at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from .member import Partitions


class MemberSpec(Struct, frozen=True):
    """`topic_ids` are of topics that there are; `assigned` is what the last target assignment gives the member."""

    instance_id: str | None
    topic_ids: Set[UUID]
    assigned: Partitions


class Assignor(Protocol):
    @property
    def name(self) -> str: ...

    def assign(
        self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
    ) -> Mapping[str, Partitions]:
        """What each member is to have; members that are not named get nothing. Every topic of a member has a count."""


def are_alike(members: Mapping[str, MemberSpec]) -> bool:
    """Whether all of them read the same topics."""
    specs = iter(members.values())
    first = next(specs, None)
    return first is None or all(spec.topic_ids == first.topic_ids for spec in specs)
