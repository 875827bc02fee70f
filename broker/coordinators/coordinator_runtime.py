"""The partitions of one internal topic whose leadership is here, each with its coordinator.

Kafka: `CoordinatorRuntime`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ...protocol.errors import ErrorCode, KafkaError
from ...quorum.metadata.image import MetadataImage
from ..coordination.coordinator_shard import CoordinatorShard
from ..coordination.key_partitions import partition_of_key
from ..network.rules.postponed import PostponedError
from ..replicas.partition import Partition
from .coordinator_context import CoordinatorContext
from .held_requests import HeldRequests

ShardT = TypeVar("ShardT", bound=CoordinatorShard)


class CoordinatorRuntime(Generic[ShardT]):
    """Finds the coordinator of a key, and follows leaderships as they come and go."""

    def __init__(
        self,
        topic: str,
        node_id: int,
        image: Callable[[], MetadataImage],
        make: Callable[[Partition], CoordinatorContext[ShardT]],
        *,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`image` is the newest one; `make` begins to load."""
        self.topic = topic
        self._node_id = node_id
        self._image = image
        self._make = make
        self._loop = loop
        self._partitions: dict[int, CoordinatorContext[ShardT]] = {}
        # Of partitions whose leadership is in the metadata, and takes its turn behind that of others.
        self._coming: dict[int, HeldRequests] = {}
        self._is_unloaded = False

    def on_leadership(self, partition: Partition) -> None:
        """To be called with every change of a partition of this node: its leadership came, went, or has a new epoch."""
        if partition.topic != self.topic:
            return
        known = self._partitions.get(partition.index)
        leads = partition.error is ErrorCode.NONE and partition.state.is_leader
        if known is not None:
            if leads and known.partition is partition and known.leader_epoch == partition.state.leader_epoch:
                return
            if not leads and known.partition is not partition:
                # What is left of a partition that was here before.
                return
            del self._partitions[partition.index]
            known.unload()
        if leads:
            self._partitions[partition.index] = self._make(partition)
        coming = self._coming.pop(partition.index, None)
        if coming is not None:
            coming.release()

    def get(self, key: str) -> CoordinatorContext[ShardT]:
        """Raises KafkaError: NOT_COORDINATOR, or COORDINATOR_LOAD_IN_PROGRESS when it will be this node in a moment; a
        PostponedError at first."""
        topic = self._image().topics.by_name.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        index = partition_of_key(key, len(topic.partitions))
        found = self._partitions.get(index)
        if found is None:
            is_to_come = topic.partitions[index].leader == self._node_id and not self._is_unloaded
            raise self._to_come(index) if is_to_come else KafkaError(ErrorCode.NOT_COORDINATOR)
        return found

    def _to_come(self, index: int) -> KafkaError:
        coming = self._coming.get(index)
        if coming is None:
            coming = self._coming[index] = HeldRequests(self._loop)
        if coming.is_open:
            return PostponedError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, coming.wait)
        return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def at(self, index: int) -> CoordinatorContext[ShardT]:
        """That of the partition. Raises KafkaError NOT_COORDINATOR when it is not here, or not yet."""
        found = self._partitions.get(index)
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return found

    def __iter__(self) -> Iterator[CoordinatorContext[ShardT]]:
        return iter(list(self._partitions.values()))

    def unload_all(self) -> None:
        """The node stops."""
        self._is_unloaded = True
        while self._partitions:
            self._partitions.popitem()[1].unload()
        while self._coming:
            self._coming.popitem()[1].release()
