"""All groups whose coordinator this node is by one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from ...protocol.errors import ErrorCode, KafkaError
from ..coordination.ports import StateLog, StateRecord

if TYPE_CHECKING:
    from .classic.group import ClassicGroup
    from .consumer.group import ConsumerGroup


class GroupTable:
    """A name is one group: a classic one or a consumer group."""

    def __init__(self, log: StateLog) -> None:
        self._log = log
        self._groups: dict[str, ClassicGroup] = {}
        self._consumer_groups: dict[str, ConsumerGroup] = {}
        self._incarnations = count(1)

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(self._groups.values())

    @property
    def consumer_groups(self) -> Iterator[ConsumerGroup]:
        return iter(self._consumer_groups.values())

    def find(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def find_consumer(self, group_id: str) -> ConsumerGroup | None:
        return self._consumer_groups.get(group_id)

    def get_consumer(self, group_id: str) -> ConsumerGroup:
        """One that is there."""
        return self._consumer_groups[group_id]

    def is_known(self, group_id: str) -> bool:
        return group_id in self._groups or group_id in self._consumer_groups

    def get(self, group_id: str, error: ErrorCode) -> ClassicGroup:
        """Raises KafkaError with `error` for an unknown group."""
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(error)
        return group

    def find_incarnation(self, group_id: str, incarnation: int) -> ClassicGroup | None:
        """None if the group is gone, or another one has its name."""
        group = self._groups.get(group_id)
        return group if group is not None and group.incarnation == incarnation else None

    def put(self, group: ClassicGroup) -> None:
        group.incarnation = next(self._incarnations)
        self._groups[group.id] = group

    def put_consumer(self, group: ConsumerGroup) -> None:
        """In the place of a classic group: one that was only a name for offsets has no record that says it is gone."""
        self._groups.pop(group.id, None)
        self._consumer_groups[group.id] = group

    def forget(self, group_id: str) -> None:
        """If it is a classic group."""
        self._groups.pop(group_id, None)

    def forget_consumer(self, group_id: str) -> None:
        self._consumer_groups.pop(group_id, None)

    def append(self, records: list[StateRecord]) -> None:
        """Raises KafkaError if nothing was appended."""
        self._log.append(records)
