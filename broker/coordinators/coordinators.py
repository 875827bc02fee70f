"""The partitions of one state topic whose leadership is here, each with its coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.metadata.image import MetadataImage
from ..coordination.key_partitions import partition_of_key
from ..coordination.state_machine import StateMachine
from ..replicas.hosted_partition import HostedPartition
from .coordinator_partition import CoordinatorPartition

MachineT = TypeVar("MachineT", bound=StateMachine)


class Coordinators(Generic[MachineT]):
    """Finds the coordinator of a key, and follows leaderships as they come and go."""

    def __init__(
        self,
        topic: str,
        node_id: int,
        image: Callable[[], MetadataImage],
        make: Callable[[HostedPartition], CoordinatorPartition[MachineT]],
    ) -> None:
        """`image` is the newest one; `make` begins to load."""
        self.topic = topic
        self._node_id = node_id
        self._image = image
        self._make = make
        self._partitions: dict[int, CoordinatorPartition[MachineT]] = {}

    def on_leadership(self, hosted: HostedPartition) -> None:
        """To be called with every change of a partition of this node: its leadership came, went, or has a new epoch."""
        if hosted.topic != self.topic:
            return
        known = self._partitions.get(hosted.index)
        leads = hosted.error is ErrorCode.NONE and hosted.partition.is_leader
        if known is not None:
            if leads and known.hosted is hosted and known.leader_epoch == hosted.partition.leader_epoch:
                return
            if not leads and known.hosted is not hosted:
                # What is left of a partition that was here before.
                return
            del self._partitions[hosted.index]
            known.unload()
        if leads:
            self._partitions[hosted.index] = self._make(hosted)

    def get(self, key: str) -> CoordinatorPartition[MachineT]:
        """Raises KafkaError: NOT_COORDINATOR, or COORDINATOR_LOAD_IN_PROGRESS when it will be this node in a moment."""
        topic = self._image().topics.by_name.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        index = partition_of_key(key, len(topic.partitions))
        found = self._partitions.get(index)
        if found is None:
            is_to_come = topic.partitions[index].leader == self._node_id
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_to_come else ErrorCode.NOT_COORDINATOR)
        return found

    def at(self, index: int) -> CoordinatorPartition[MachineT]:
        """That of the partition. Raises KafkaError NOT_COORDINATOR when it is not here, or not yet."""
        found = self._partitions.get(index)
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return found

    def __iter__(self) -> Iterator[CoordinatorPartition[MachineT]]:
        return iter(list(self._partitions.values()))

    def unload_all(self) -> None:
        """The node stops."""
        while self._partitions:
            self._partitions.popitem()[1].unload()
