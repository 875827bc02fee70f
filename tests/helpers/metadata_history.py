"""The metadata of a cluster as they were committed, change after change, from the disk of one of its controllers."""

from __future__ import annotations

from pathlib import Path

from penstock.chaos.checkers.leaderships import ClusterState, PartitionState
from penstock.quorum.inspection.stored_metadata import open_folder
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.loader import MetadataLoader
from penstock.quorum.metadata.publishers import Publishers
from penstock.storage.disk.files import DiskFiles


def read_history(data: Path) -> list[ClusterState]:
    """Return what each committed entry made of brokers and partitions. The disk must have all of them."""
    entries = open_folder(DiskFiles(), str(data)).entries
    assert entries.start_offset == 0, f"{data} has the metadata from offset {entries.start_offset} on only"
    history = _History()
    publishers = Publishers()
    publishers.add(history)
    loader = MetadataLoader(publishers)
    loader.catch_up()
    for entry in entries.entries[: entries.committed_end]:
        loader.load_entry(*entry)
    return history.states


class _History:
    def __init__(self) -> None:
        self.states: list[ClusterState] = []

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        self.states.append(
            ClusterState(
                offset=image.offset,
                processes={broker.id: str(broker.incarnation_id) for broker in image.brokers.values()},
                partitions={
                    f"{topic.name}-{index}": PartitionState(
                        leader=partition.leader,
                        leader_epoch=partition.leader_epoch,
                        isr=partition.isr,
                        elr=partition.elr,
                        last_known_elr=partition.last_known_elr,
                    )
                    for topic in image.topics.by_name.values()
                    for index, partition in enumerate(topic.partitions)
                },
            )
        )
