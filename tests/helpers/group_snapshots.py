"""What a coordinator tells of a group, again and again: of each answer, that no partition is with two members."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

INTERVAL_S: Final = 0.1
TIMEOUT_S: Final = 10.0


class GroupSnapshots:
    """Looks in a thread of its own, between `__enter__` and `__exit__`."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._group = group
        self._is_over = Event()
        self._thread = ThreadPoolExecutor(1)
        self.last: dict[str, list[int]] = {}
        """The partitions of each member, by its id."""
        self.count = 0
        self.violations: list[dict[str, list[int]]] = []

    def sizes(self) -> list[int]:
        return sorted(len(partitions) for partitions in self.last.values())

    def _look(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            (future,) = self._admin.describe_consumer_groups([self._group], request_timeout=TIMEOUT_S).values()
            try:
                members = future.result(2 * TIMEOUT_S).members
            except KafkaException:
                # There is no such group yet.
                continue
            owned = {
                member.member_id: sorted(one.partition for one in member.assignment.topic_partitions or ())
                for member in members
            }
            times = Counter(partition for partitions in owned.values() for partition in partitions)
            if times and max(times.values()) > 1:
                self.violations.append(owned)
            self.last = owned
            self.count += 1

    def __enter__(self) -> Self:
        self._looking = self._thread.submit(self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._looking.result()
        self._thread.shutdown()
