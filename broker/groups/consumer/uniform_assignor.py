"""The assignor `uniform`: balanced first, then as little moved as that allows. Kafka: `UniformAssignor`.

Members that all read the same topics have equally many partitions, give or take one. Members that do not are balanced
as far as their subscriptions allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace
from typing import Final
from uuid import UUID

from ...configuration.consumer_config import UNIFORM
from .assignor import MemberSpec, are_alike
from .member import Partitions

MAX_BALANCING_ROUNDS: Final = 16
"""One is enough when topics' readers are alike; each of more about halves what is left, as in Apache Kafka."""


class UniformAssignor:
    name = UNIFORM

    def assign(
        self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
    ) -> Mapping[str, Partitions]:
        """As `Assignor`."""
        if not members:
            return {}
        builder = _Alike if are_alike(members) else _Mixed
        return builder(members, partition_counts).build()


class _Assignment:
    """What each member is to have, while it is being made."""

    def __init__(self, members: Mapping[str, MemberSpec]) -> None:
        self._members = members
        self._parts: dict[str, dict[UUID, set[int]]] = {member_id: {} for member_id in members}

    def give(self, member_id: str, topic_id: UUID, partition: int) -> None:
        self._parts[member_id].setdefault(topic_id, set()).add(partition)

    def take(self, member_id: str, topic_id: UUID, partition: int) -> None:
        of_topic = self._parts[member_id][topic_id]
        of_topic.remove(partition)
        if not of_topic:
            del self._parts[member_id][topic_id]

    def of(self, member_id: str, topic_id: UUID) -> set[int]:
        return self._parts[member_id].get(topic_id, set())

    def finished(self) -> dict[str, Partitions]:
        return {
            member_id: {topic_id: frozenset(of_topic) for topic_id, of_topic in parts.items()}
            for member_id, parts in self._parts.items()
        }


class _Alike:
    """All members read the same topics."""

    def __init__(self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]) -> None:
        self._members = members
        topic_ids = next(iter(members.values())).topic_ids
        self._counts = {topic_id: partition_counts[topic_id] for topic_id in sorted(topic_ids)}

    def build(self) -> Mapping[str, Partitions]:
        assignment = _Assignment(self._members)
        least, extra_count = divmod(sum(self._counts.values()), len(self._members))
        free = {topic_id: set(range(count)) for topic_id, count in self._counts.items()}
        open_quotas: dict[str, int] = {}
        # Who has more than its share of the last assignment keeps one of those that are left over.
        held = {member_id: self._held(spec) for member_id, spec in self._members.items()}
        extras = set(sorted(held, key=lambda member_id: len(held[member_id]) <= least)[:extra_count])
        for member_id, has in held.items():
            quota = least + (member_id in extras)
            for topic_id, partition in has:
                if not quota:
                    break
                if partition in free[topic_id]:
                    free[topic_id].discard(partition)
                    assignment.give(member_id, topic_id, partition)
                    quota -= 1
            if quota:
                open_quotas[member_id] = quota
        left = ((topic_id, partition) for topic_id, of_topic in free.items() for partition in sorted(of_topic))
        for member_id, quota in open_quotas.items():
            for _ in range(quota):
                topic_id, partition = next(left)
                assignment.give(member_id, topic_id, partition)
        return assignment.finished()

    def _held(self, spec: MemberSpec) -> list[tuple[UUID, int]]:
        return [
            (topic_id, partition)
            for topic_id, partitions in spec.assigned.items()
            if topic_id in self._counts
            for partition in sorted(partitions)
            if partition < self._counts[topic_id]
        ]


class _Mixed:
    """Members differ in what they read."""

    def __init__(self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]) -> None:
        self._members = members
        self._readers: dict[UUID, list[str]] = {}
        for member_id, spec in members.items():
            for topic_id in spec.topic_ids:
                self._readers.setdefault(topic_id, []).append(member_id)
        # Those that leave the least choice come first.
        self._topics = sorted(
            self._readers,
            key=lambda one: (-partition_counts[one] / len(self._readers[one]), len(self._readers[one]), one),
        )
        self._counts = partition_counts
        self._sizes = dict.fromkeys(members, 0)
        self._assignment = _Assignment(members)

    def build(self) -> Mapping[str, Partitions]:
        free = self._keep()
        for topic_id in self._topics:
            self._spread(topic_id, sorted(free[topic_id]))
        for _ in range(MAX_BALANCING_ROUNDS):
            if not sum(self._balance(topic_id) for topic_id in self._topics):
                break
        return self._assignment.finished()

    def _keep(self) -> dict[UUID, set[int]]:
        """Each member keeps the partitions of topics that it still reads; returns the free partitions by topic."""
        free = {topic_id: set(range(self._counts[topic_id])) for topic_id in self._topics}
        for member_id, spec in self._members.items():
            for topic_id, partitions in spec.assigned.items():
                if topic_id in spec.topic_ids:
                    for partition in partitions & free[topic_id]:
                        free[topic_id].discard(partition)
                        self._give(member_id, topic_id, partition)
        return free

    def _spread(self, topic_id: UUID, partitions: list[int]) -> None:
        """To the subscriber with the fewest partitions."""
        heap = [(self._sizes[member_id], place, member_id) for place, member_id in enumerate(self._readers[topic_id])]
        heapify(heap)
        for partition in partitions:
            size, place, member_id = heap[0]
            self._give(member_id, topic_id, partition)
            heapreplace(heap, (size + 1, place, member_id))

    def _balance(self, topic_id: UUID) -> int:
        """Moves its partitions from those of its readers who have most to those who have least; how many were moved."""
        sizes, parts = self._sizes, self._assignment
        readers = self._readers[topic_id]
        receivers = [(sizes[member_id], place) for place, member_id in enumerate(readers)]
        givers = [(-size, place) for size, place in receivers if parts.of(readers[place], topic_id)]
        heapify(receivers)
        heapify(givers)
        moved_count = 0
        while givers:
            # An entry is brought up to date when it is at the top: givers only shrink, receivers only grow.
            size, place = givers[0]
            giver = readers[place]
            if -size != sizes[giver]:
                heapreplace(givers, (-sizes[giver], place))
                continue
            size, place = receivers[0]
            receiver = readers[place]
            if size != sizes[receiver]:
                heapreplace(receivers, (sizes[receiver], place))
                continue
            if sizes[giver] - sizes[receiver] <= 1:
                break
            partition = max(parts.of(giver, topic_id))
            parts.take(giver, topic_id, partition)
            sizes[giver] -= 1
            self._give(receiver, topic_id, partition)
            moved_count += 1
            if not parts.of(giver, topic_id):
                heappop(givers)
        return moved_count

    def _give(self, member_id: str, topic_id: UUID, partition: int) -> None:
        self._assignment.give(member_id, topic_id, partition)
        self._sizes[member_id] += 1
