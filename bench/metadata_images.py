"""Partitions in the metadata of a stopped cluster that no broker serves: what an image of that size costs by itself.

Their replicas are on brokers that are registered and fenced, so no node opens a log for them. Each voter gets the same
snapshot, at an offset that all have.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final
from uuid import UUID

from ..protocol.ids import BrokerEpoch, ControllerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from ..quorum.metadata.delta import MetadataDelta
from ..quorum.metadata.image import MetadataImage
from ..quorum.metadata.loader import MetadataLoader
from ..quorum.metadata.metadata_log import METADATA_FOLDER
from ..quorum.metadata.publishers import Publishers
from ..quorum.metadata.records import NO_LEADER, MetadataRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from ..quorum.metadata.snapshot_records import image_chunks
from ..quorum.voter.voter_disk import RecoveredState, VoterDisk
from ..storage.disk.files import DiskFiles
from .target import Cluster

PARTITIONS_PER_TOPIC: Final = 10_000
REPLICAS: Final = 3
_ABSENT_BROKERS: Final = tuple(map(NodeId, range(101, 107)))


def add_partitions(cluster: Cluster, count: int) -> None:
    """Give the cluster, which has been started once and stopped, topics with `count` partitions in all."""
    disks = [
        VoterDisk(DiskFiles(), str(node.data / METADATA_FOLDER), reserve_bytes=0) for node in cluster.nodes.values()
    ]
    for disk in disks:
        disk.open()
    try:
        found = [disk.recover() for disk in disks]
        end_offset = min(one.log.end_offset for one in found)
        image = _filled(_image_at(found[0], end_offset), count)
        for disk in disks:
            writer = disk.begin_snapshot(end_offset=end_offset, epoch=image.epoch)
            writer.append(list(image_chunks(image)))
            writer.finish()
    finally:
        for disk in disks:
            disk.close()


def _image_at(found: RecoveredState, end_offset: int) -> MetadataImage:
    loader = MetadataLoader(Publishers())
    if found.snapshot is not None:
        snapshot = found.snapshot
        loader.load_snapshot(snapshot.chunks, end_offset=snapshot.end_offset, epoch=snapshot.epoch)
    for offset in range(loader.offset + 1, end_offset):
        entry = found.log.entry(offset)
        loader.load_entry(entry.offset, ControllerEpoch(entry.epoch), entry.command)
    loader.catch_up()
    return loader.image


def _filled(image: MetadataImage, count: int) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in _records(count, Random(count)):
        delta.replay(record)
    return delta.apply(offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)


def _records(count: int, random: Random) -> Iterator[MetadataRecord]:
    directories = {broker_id: UUID(int=random.getrandbits(128), version=4) for broker_id in _ABSENT_BROKERS}
    for broker_id, directory in directories.items():
        yield RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=UUID(int=random.getrandbits(128), version=4),
            broker_epoch=BrokerEpoch(0),
            is_fenced=True,
            log_dirs=(directory,),
        )
    for start in range(0, count, PARTITIONS_PER_TOPIC):
        topic_id = TopicId(UUID(int=random.getrandbits(128), version=4))
        yield TopicRecord(name=f"absent-{start // PARTITIONS_PER_TOPIC}", topic_id=topic_id)
        for index in range(min(PARTITIONS_PER_TOPIC, count - start)):
            replicas = tuple(random.sample(_ABSENT_BROKERS, REPLICAS))
            yield PartitionRecord(
                topic_id=topic_id,
                partition_id=index,
                replicas=replicas,
                isr=replicas[:1],
                leader=NO_LEADER,
                leader_epoch=LeaderEpoch(1),
                partition_epoch=PartitionEpoch(1),
                directories=tuple([directories[replica] for replica in replicas]),
            )
