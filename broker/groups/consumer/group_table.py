"""All groups whose coordinator this node is by one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterator

from ...coordination.ports import StateLog
from ..classic.group_table import ClassicGroupTable
from .group import ConsumerGroup


class GroupTable(ClassicGroupTable):
    """A name is one group: a classic one or a consumer group."""

    def __init__(self, log: StateLog) -> None:
        super().__init__(log)
        self._consumer_groups: dict[str, ConsumerGroup] = {}

    @property
    def consumer_groups(self) -> Iterator[ConsumerGroup]:
        return iter(self._consumer_groups.values())

    def find_consumer(self, group_id: str) -> ConsumerGroup | None:
        return self._consumer_groups.get(group_id)

    def get_consumer(self, group_id: str) -> ConsumerGroup:
        """One that is there."""
        return self._consumer_groups[group_id]

    def is_known(self, group_id: str) -> bool:
        return self.find(group_id) is not None or group_id in self._consumer_groups

    def put_consumer(self, group: ConsumerGroup) -> None:
        """In the place of a classic group: one that was only a name for offsets has no record that says it is gone."""
        self.forget(group.id)
        self._consumer_groups[group.id] = group

    def forget_consumer(self, group_id: str) -> None:
        self._consumer_groups.pop(group_id, None)
