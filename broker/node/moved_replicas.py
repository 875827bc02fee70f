"""The replicas of this node, for the mover of their logs between log directories (KIP-113, KIP-858)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from ...protocol.ids import NodeId
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import MetadataImage
from ...storage.directories.log_mover import LogMover
from ...storage.directories.rules.checkpoints import TopicPartition
from ...storage.log.log import Log
from ..replicas.partition import Partition
from ..replicas.replica_manager import ReplicaManager


class MovedReplicas:
    """The mover's `Replicas`."""

    def __init__(
        self, partitions: ReplicaManager, recheck_replica: Callable[[Partition], None], *, node_id: NodeId
    ) -> None:
        """`recheck_replica` lets the controller be told where the replica is."""
        self._partitions = partitions
        self._recheck_replica = recheck_replica
        self._node_id = node_id

    def announce(self, key: TopicPartition) -> None:
        partition = self._partitions.find(*key)
        if partition is not None:
            self._recheck_replica(partition)

    def is_assigned(self, key: TopicPartition, directory_id: UUID) -> bool:
        registration = self._partitions.image.topics.partition(*key)
        return registration is not None and registration.directory_of(self._node_id) == directory_id

    def replace_log(self, log: Log, copy: Log) -> None:
        partition = self._partitions.find(log.topic, log.partition)
        if partition is not None and partition.log is log:
            partition.replace_log(copy)

    def high_watermark_of(self, log: Log) -> int:
        partition = self._partitions.find(log.topic, log.partition)
        return log.log_start_offset if partition is None else partition.state.high_watermark

    def check(self, log: Log, offset: int, size_bytes: int) -> None:
        partition = self._partitions.find(log.topic, log.partition)
        if partition is not None and partition.log is log:
            partition.check(offset, size_bytes)


class MoveWatch:
    """A publisher behind the replica manager: the controller may have noted where a replica is."""

    def __init__(self, mover: LogMover) -> None:
        self._mover = mover

    def publish(self, delta: MetadataDelta, _image: MetadataImage) -> None:
        if delta.topics.changed:
            self._mover.wake()
