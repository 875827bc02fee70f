"""A log directory while no node runs on it: held by its lock, as the last stop left it.

A partition's folder that lies alone, a copy for instance, is in no log directory: nothing is held, and the checkpoints
say nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from ...protocol.errors import ConfigError
from ...protocol.ids import TopicId
from ..directories.log_directory import LogDirectory
from ..directories.rules.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS
from ..directories.rules.folder_names import FolderKind, parse_folder_name
from ..directories.rules.meta_properties import META_PROPERTIES
from ..disk.files import Files
from ..inspection.folder_check import check_folder
from ..inspection.rules.report import Report
from ..log.log import Log
from ..log.partition_metadata import read_topic_id
from ..log.rules.config import LogConfig


class OfflineError(Exception):
    """What was asked for cannot be done, in a sentence. Nothing was changed."""


@dataclass(slots=True, kw_only=True)
class ClosedPartition:
    """A partition's folder that no node uses."""

    path: str
    topic: str
    partition: int
    topic_id: TopicId | None
    directory: LogDirectory | None
    """That it lies in, locked; None for a folder that lies alone."""

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    def checkpointed(self, name: str) -> int | None:
        return None if self.directory is None else self.directory.checkpointed[name].get(self.key)


@contextmanager
def held_directory(files: Files, path: str) -> Iterator[LogDirectory]:
    """A log directory, locked. OfflineError when a node has it, or did not stop in good order; OSError."""
    directory = LogDirectory(files, path)
    try:
        try:
            directory.lock()
        except ConfigError as error:
            raise OfflineError(f"{error} Stop the node first.") from error
        properties = directory.properties
        if properties is None or properties.directory_id is None:
            raise OfflineError(f"{path} is no log directory of a node: its {META_PROPERTIES} has no directory.id.")
        directory.format(properties.cluster_id, properties.node_id, Random(0))
        if not directory.has_clean_shutdown:
            raise OfflineError(
                f"The node of {path} did not stop in good order: start it and stop it, so that its logs are recovered."
            )
        yield directory
    finally:
        directory.unlock()


@contextmanager
def closed_partition(files: Files, path: str) -> Iterator[ClosedPartition]:
    """The partition whose folder is `path`. OfflineError, OSError."""
    parent, _, name = path.rpartition("/")
    folder = parse_folder_name(name)
    if not files.is_directory(path) or folder is None or folder.kind is not FolderKind.LOG:
        raise OfflineError(f"{path} is no folder of a partition: it is not named topic-partition.")
    if not files.exists(f"{parent}/{META_PROPERTIES}"):
        yield _partition(files, path, folder.topic, folder.partition, None)
        return
    with held_directory(files, parent) as directory:
        yield _partition(files, path, folder.topic, folder.partition, directory)


def _partition(files: Files, path: str, topic: str, partition: int, directory: LogDirectory | None) -> ClosedPartition:
    topic_id = read_topic_id(files, path)
    return ClosedPartition(path=path, topic=topic, partition=partition, topic_id=topic_id, directory=directory)


def check_intact(files: Files, path: str) -> int:
    """The log end offset. OfflineError when something in the folder is wrong, or cut off; OSError."""
    report = Report()
    end_offset = check_folder(files, path, report)
    wrong = [*report.findings, *(note for note in report.notes if note.position is not None and ".log" in note.path)]
    if wrong:
        raise OfflineError(f"{wrong[0]}. See `penstock log verify {path}`.")
    if end_offset is None:
        raise OfflineError(f"{path} has no segment.")
    return end_offset


def open_closed(files: Files, partition: ClosedPartition, config: LogConfig, *, end_offset: int, now_ms: int) -> Log:
    """As a node does after a stop in good order. `end_offset` is what `check_intact` says."""
    return Log.open(
        files,
        partition.path,
        topic=partition.topic,
        partition=partition.partition,
        topic_id=partition.topic_id,
        config=config,
        log_start_offset=partition.checkpointed(LOG_START_OFFSETS) or 0,
        # All was synced at the stop, and must not be cut.
        recovery_point=end_offset,
        cleaned_end=partition.checkpointed(CLEANER_OFFSETS) or 0,
        is_clean=True,
        now_ms=now_ms,
        is_identified=partition.topic_id is not None,
    )


def high_watermark_of(partition: ClosedPartition) -> int | None:
    return partition.checkpointed(HIGH_WATERMARKS)
