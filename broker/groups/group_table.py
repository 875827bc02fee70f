"""All groups whose coordinator this node is by one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...protocol.errors import ErrorCode, KafkaError
from ..coordination.ports import StateLog, StateRecord
from .classic.group import ClassicGroup
from .classic.records import GROUP_METADATA_KEY, GROUP_METADATA_VALUE, GroupMetadataKey
from .consumer.group import ConsumerGroup


class GroupTable:
    """Finds groups, and writes classic ones down. A name is one group: a classic one or a consumer group."""

    def __init__(self, log: StateLog, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the steady wall clock's."""
        self._log = log
        self._now_ms = now_ms
        self._groups: dict[str, ClassicGroup] = {}
        self._consumer_groups: dict[str, ConsumerGroup] = {}

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

    def create(self, group_id: str) -> ClassicGroup:
        assert group_id not in self._consumer_groups, "a name is one group"
        group = self._groups[group_id] = ClassicGroup(group_id, now_ms=self._now_ms())
        return group

    def create_consumer(self, group_id: str) -> ConsumerGroup:
        """In the place of a classic group: one that was only a name for offsets has no record that says it is gone."""
        self._groups.pop(group_id, None)
        group = self._consumer_groups[group_id] = ConsumerGroup(group_id)
        return group

    def put(self, group: ClassicGroup) -> None:
        self._groups[group.id] = group

    def forget(self, group_id: str) -> None:
        """If it is a classic group."""
        self._groups.pop(group_id, None)

    def forget_consumer(self, group_id: str) -> None:
        self._consumer_groups.pop(group_id, None)

    def write(self, group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> None:
        """Raises KafkaError when nothing was written."""
        self._log.append([record_of(group, assignments)])


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> StateRecord:
    return StateRecord(
        GROUP_METADATA_KEY.write(GroupMetadataKey(group.id)), GROUP_METADATA_VALUE.write(group.to_record(assignments))
    )


def tombstone_of(group_id: str) -> StateRecord:
    return StateRecord(GROUP_METADATA_KEY.write(GroupMetadataKey(group_id)), None)
