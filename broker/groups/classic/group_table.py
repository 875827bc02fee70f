"""The classic groups whose coordinator this node is by one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ....protocol.errors import ErrorCode, KafkaError
from ...coordination.ports import StateLog, StateRecord
from .group import ClassicGroup


class ClassicGroupTable:
    def __init__(self, log: StateLog) -> None:
        self._log = log
        self._groups: dict[str, ClassicGroup] = {}
        self._incarnations = count(1)

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(self._groups.values())

    def find(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def find_incarnation(self, group_id: str, incarnation: int) -> ClassicGroup | None:
        """None if the group is gone, or another one has its name."""
        group = self._groups.get(group_id)
        return group if group is not None and group.incarnation == incarnation else None

    def get(self, group_id: str, error: ErrorCode) -> ClassicGroup:
        """Raises KafkaError with `error` for an unknown group."""
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(error)
        return group

    def put(self, group: ClassicGroup) -> None:
        group.incarnation = next(self._incarnations)
        self._groups[group.id] = group

    def forget(self, group_id: str) -> None:
        """If it is a classic group."""
        self._groups.pop(group_id, None)

    def append(self, records: list[StateRecord]) -> None:
        """Raises KafkaError if nothing was appended."""
        self._log.append(records)
