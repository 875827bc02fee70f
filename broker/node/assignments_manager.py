"""Tells the controller in which log directory each replica of this node is (KIP-858). Kafka: `AssignmentsManager`.

The controller must know, to take the replicas of a directory that fails out of service, and only those. It knows by
itself where a new replica will be when a broker has one directory; otherwise the broker chooses, and says so here. So
does a broker whose directory is in order and the log of one replica in it is not, because it could not be opened or was
found damaged since: others are to lead in its place. The same for a leader that cannot do its work, as a coordinator
that cannot be loaded: the replica is reported as lost, and as present when another one leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final, Protocol
from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.ids import BrokerEpoch, NodeId
from ...quorum.decisions.directories import ASSIGN_REPLICAS_TO_DIRS
from ...quorum.metadata.delta import MetadataDelta
from ...quorum.metadata.image import EMPTY_IMAGE, MetadataImage
from ...quorum.metadata.records import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from ..cluster.controller_channel import ControllerChannel
from ..replicas.partition import Partition
from ..replicas.rules.damage import is_replaceable

logger = logging.getLogger(__name__)

ASSIGNMENTS_MAX: Final = 2_250
"""In one request, as many as Kafka's broker sends: it keeps requests and the controller's batches small."""
RETRY_S: Final = 0.5
"""After a refusal, and between two looks at replicas that have no log yet."""
LOST_AGAIN_S: Final = 5.0
"""Between two reports of a replica that another one is to replace, while the controller has none that may."""


class ReplicaManager(Protocol):
    """What this needs of `replicas/replica_manager.py`."""

    async def settled(self) -> None: ...

    def find(self, topic: str, index: int) -> Partition | None: ...

    def absence(self, topic: str, index: int) -> ErrorCode: ...

    def is_postponed(self, topic: str, index: int) -> bool: ...


class AssignmentsManager:
    """A publisher behind the replica manager; `run` sends AssignReplicasToDirs. Kafka: `AssignmentsManager`."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        controller: ControllerChannel,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], BrokerEpoch],
        directory_id_of: Callable[[Partition], UUID],
        is_online: Callable[[UUID], bool],
    ) -> None:
        """`directory_id_of` gives the id of the log directory that has a partition's log, or is about to; `is_online`
        is whether a log directory is one of this node's and has not failed."""
        self._replica_manager = replica_manager
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._directory_id_of = directory_id_of
        self._is_online = is_online
        self._image: MetadataImage = EMPTY_IMAGE
        # Replicas to look at, and those that are elsewhere than the metadata says, until the controller has answered.
        self._changed: set[tuple[UUID, int]] = set()
        self._misplaced: dict[tuple[UUID, int], UUID] = {}
        # Those that have no log in a directory that has not failed, until the controller counts on them no more.
        self._lost: set[tuple[UUID, int]] = set()
        self._wake = asyncio.Event()

    @property
    def queued_count(self) -> int:
        """Replicas whose log directory the controller has still to be told."""
        return len(self._misplaced)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        for change in delta.topics.changed.values():
            for index, registration in change.changed.items():
                if self._node_id in registration.replicas:
                    self._changed.add((change.topic_id, index))
        if self._changed:
            self._wake.set()

    def recheck_replica(self, partition: Partition) -> None:
        """The log of a replica is damaged or moves to another directory, or its leadership is given up."""
        self._changed.add((partition.topic_id, partition.index))
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        said = ""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOST_AGAIN_S if self._lost else None):
                    await self._wake.wait()
            self._wake.clear()
            self._changed |= self._lost
            self._lost.clear()
            await self._replica_manager.settled()
            self._look()
            try:
                while self._misplaced:
                    await self._tell(dict(islice(self._misplaced.items(), ASSIGNMENTS_MAX)))
                said = ""
            except KafkaError as error:
                if str(error) != said:
                    said = str(error)
                    logger.warning("AssignReplicasToDirs failed, retrying: reason=%s", said)
            if self._misplaced or self._changed:
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    def _look(self) -> None:
        """Sorts out where the changed replicas are; those that have no room to be opened are looked at again."""
        changed, self._changed = self._changed, set()
        for topic_id, index in changed:
            topic = self._image.topics.by_id.get(topic_id)
            if topic is None or self._node_id not in topic.partitions[index].replicas:
                self._misplaced.pop((topic_id, index), None)
                continue
            known = topic.partitions[index].directory_of(self._node_id)
            partition = self._replica_manager.find(topic.name, index)
            if partition is not None:
                found = self._directory_id_of(partition)
                if partition.recheck() or partition.is_leadership_given_up:
                    self._lost.add((topic_id, index))
                    if is_replaceable(topic.partitions[index], self._node_id):
                        found = DIRECTORY_LOST
            elif self._replica_manager.is_postponed(topic.name, index):
                self._changed.add((topic_id, index))
                continue
            elif self._replica_manager.absence(topic.name, index) == ErrorCode.KAFKA_STORAGE_ERROR and (
                known == DIRECTORY_UNASSIGNED or self._is_online(known)
            ):
                # It may be in a directory that has failed, or its log is damaged: the controller must not count on it.
                # Replicas known to be in a failed directory: the heartbeat reports the directory.
                found = self._misplaced.get((topic_id, index), DIRECTORY_LOST)
                if known != DIRECTORY_UNASSIGNED:
                    self._lost.add((topic_id, index))
            else:
                continue
            if found != known:
                self._misplaced[topic_id, index] = found
            else:
                self._misplaced.pop((topic_id, index), None)

    async def _tell(self, misplaced: Mapping[tuple[UUID, int], UUID]) -> None:
        """Whatever the controller says of a replica ends the matter: what it changes is published, and looked at."""
        directories: dict[UUID, dict[UUID, list[int]]] = defaultdict(lambda: defaultdict(list))
        for (topic_id, index), directory_id in misplaced.items():
            directories[directory_id][topic_id].append(index)
        request = AssignReplicasToDirsRequest(
            broker_id=BrokerId(self._node_id),
            broker_epoch=i64(self._broker_epoch()),
            directories=tuple(
                DirectoryData(
                    id_=directory_id,
                    topics=tuple(
                        TopicData(
                            topic_id=topic_id,
                            partitions=tuple(PartitionData(partition_index=i32(index)) for index in indexes),
                        )
                        for topic_id, indexes in topics.items()
                    ),
                )
                for directory_id, topics in directories.items()
            ),
        )
        await self._controller.submit(ASSIGN_REPLICAS_TO_DIRS, request)
        for key, directory_id in misplaced.items():
            if self._misplaced.get(key) == directory_id:
                del self._misplaced[key]
