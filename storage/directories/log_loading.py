"""Finds and opens the logs of a log directory at start (Kafka: `LogManager.loadLogs`). Runs in the executor."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final, Self

from msgspec import Struct

from ...protocol.errors import CorruptData
from ...protocol.ids import TopicId
from ...protocol.structs import replace
from ..disk.files import Files
from ..disk.rules.disk_errors import ReadError, is_passing
from ..log.log import Log
from ..log.partition_metadata import read_topic_id
from ..log.rules.config import LogConfig
from ..log.rules.file_names import LOG
from .group_sync import Failure, SyncGroup, sync_group
from .log_directory import LogDirectory
from .rules.checkpoints import CLEANER_OFFSETS, LOG_START_OFFSETS, RECOVERY_POINTS
from .rules.folder_names import FolderKind, PartitionFolder, parse_folder_name
from .rules.interrupted_moves import FoundFolder

logger = logging.getLogger(__name__)

# Folders in a log directory that are not partitions of topics.
_NOT_LOGS: Final = frozenset({"__cluster_metadata-0", "remote-log-index-cache", "lost+found"})

# Tries to open a log that fail at a read, before its replica counts as lost: it is tried seldom from then on.
_READS: Final = 8
# Of the pause between two tries from then on: to 64 turns.
_DOUBLINGS_MAX: Final = 6


class LogFolder(Struct, frozen=True, kw_only=True):
    """The folder of a log, not opened yet."""

    path: str
    topic: str
    partition: int
    # None when the folder does not know it.
    topic_id: TopicId | None = None
    # Their topic id is unknown: a log is not synced before its topic id is, so they were not either.
    has_unidentified_records: bool = False
    # Why it cannot be opened.
    error: CorruptData | ReadError | None = None


class FoundFolders(Struct, frozen=True, kw_only=True):
    logs: list[LogFolder]
    # Those that were renamed for removal.
    deleted: list[FoundFolder]
    # Copies that were on their way here from another directory.
    futures: list[FoundFolder]


class OpenSettings(Struct, frozen=True, kw_only=True):
    # By topic.
    configs: Mapping[str, LogConfig]
    now_ms: int
    producer_id_expiration_ms: int
    random: Random
    # Whether the logs were ended by `Log.close`.
    is_clean: bool


class PostponedLog(Struct, frozen=True, kw_only=True):
    """A log that could not be opened, and may be opened later."""

    directory: LogDirectory
    folder: LogFolder
    settings: OpenSettings
    # How many times in a row a read failed.
    failed_reads: int = 0
    # The turn of the retries in which it is tried next.
    turn: int = 0
    # Where it is to end, however much of it is found to be intact: no CRC covers all that may be damaged.
    cut_offset: int | None = None

    @property
    def counts_as_lost(self) -> bool:
        """It has not been readable for so long that another replica is to take its place."""
        return self.failed_reads >= _READS

    def after(self, error: OSError, turn: int) -> Self:
        """The next try, after this one failed in `turn`.

        A shortage is over sometime. A read may fail once, and succeed when it is tried again. To try it can mean to
        read all that there is: of a log that counts as lost the pauses get longer.
        """
        if not isinstance(error, ReadError):
            return replace(self, failed_reads=0, turn=turn)
        failed_reads = self.failed_reads + 1
        doublings = min(max(0, failed_reads - _READS), _DOUBLINGS_MAX)
        return replace(self, failed_reads=failed_reads, turn=turn + 2**doublings)


def find_folders(files: Files, directory: LogDirectory) -> FoundFolders:
    """What is in a directory; from here on its last stop was not clean. OSError."""
    directory.remove_clean_shutdown()
    found = FoundFolders(logs=[], deleted=[], futures=[])
    for name in files.list_directory(directory.path):
        path = f"{directory.path}/{name}"
        if name in _NOT_LOGS or not files.is_directory(path):
            continue
        folder = parse_folder_name(name)
        if folder is None:
            logger.warning("Ignoring directory, its name is not topic-partition: path=%s", path)
        elif folder.kind is FolderKind.DELETED:
            found.deleted.append(_moved_folder(files, directory, path, folder))
        elif folder.kind is FolderKind.FUTURE:
            found.futures.append(_moved_folder(files, directory, path, folder))
        elif folder.kind is FolderKind.LOG:
            found.logs.append(look_into(files, path, folder.topic, folder.partition))
        else:
            logger.warning("Keeping directory that was moved aside: path=%s", path)
    return found


def _moved_folder(files: Files, directory: LogDirectory, path: str, folder: PartitionFolder) -> FoundFolder:
    has_records, topic_id = True, None
    if folder.kind is FolderKind.FUTURE:
        has_records = has_log_bytes(files, path)
        # Of a copy that says nothing the log will be asked.
        with suppress(CorruptData, ReadError):
            topic_id = read_topic_id(files, path)
    return FoundFolder(
        path=path,
        key=(folder.topic, folder.partition),
        directory_id=directory.id,
        unique_id=folder.unique_id,
        topic_id=topic_id,
        has_records=has_records,
    )


def open_logs(
    files: Files, directory: LogDirectory, folders: Sequence[LogFolder], settings: OpenSettings
) -> list[Log | Failure]:
    """The logs, or why they could not be opened. Unless they were closed they are recovered, and synced next."""
    opened: list[Log | Failure] = []
    recovery_points = directory.checkpointed[RECOVERY_POINTS]
    start_offsets = directory.checkpointed[LOG_START_OFFSETS]
    cleaned_ends = directory.checkpointed[CLEANER_OFFSETS]
    for folder in folders:
        key = folder.topic, folder.partition
        if folder.error is not None:
            opened.append(folder.error)
            continue
        try:
            log = Log.open(
                files,
                folder.path,
                topic=folder.topic,
                partition=folder.partition,
                topic_id=folder.topic_id,
                config=settings.configs[folder.topic],
                log_start_offset=start_offsets.get(key, 0),
                recovery_point=recovery_points.get(key, 0),
                cleaned_end=cleaned_ends.get(key, 0),
                is_clean=settings.is_clean,
                now_ms=settings.now_ms,
                producer_id_expiration_ms=settings.producer_id_expiration_ms,
                random=settings.random,
                is_identified=folder.topic_id is not None,
                is_synced_next=True,
                room=directory.room,
            )
        except (CorruptData, OSError) as error:
            opened.append(error)
        else:
            opened.append(log)
    return opened


def recovered_files(logs: Iterable[Log]) -> list[SyncGroup]:
    """What is to be synced of logs that recovery has opened, and `settle_recovered` afterwards.

    What it found may lie in the page cache only, and from now on it counts as stored: it is readable, and the
    duplicate of a batch in it is acknowledged at once, also where `flush.messages` promises that a loss of power takes
    back nothing acknowledged.
    """
    return [sync_group(log, lambda log: log.files_to_sync(log.log_end_offset)) for log in logs]


def settle_recovered(logs: Sequence[Log], errors: Sequence[Failure | None]) -> list[Log | Failure]:
    """The logs whose files were synced with these errors, or the errors that remain. On a full disk the batches are
    synced at least."""
    settled: list[Log | Failure] = []
    for log, error in zip(logs, errors, strict=True):
        if error is None:
            log.mark_flushed(log.log_end_offset)
            settled.append(log)
        elif isinstance(error, OSError) and is_passing(error):
            try:
                log.sync_records()
            except OSError as later:
                settled.append(later)
            else:
                settled.append(log)
        else:
            settled.append(error)
    return settled


def look_into(files: Files, path: str, topic: str, partition: int) -> LogFolder:
    """Whose log is in a folder. OSError when descriptors or memory are short."""
    try:
        topic_id = read_topic_id(files, path)
    except (CorruptData, ReadError) as error:
        return LogFolder(path=path, topic=topic, partition=partition, error=error)
    has_records = topic_id is None and has_log_bytes(files, path)
    return LogFolder(
        path=path, topic=topic, partition=partition, topic_id=topic_id, has_unidentified_records=has_records
    )


def has_log_bytes(files: Files, path: str) -> bool:
    return any(name.endswith(LOG) and files.size(f"{path}/{name}") for name in files.list_directory(path))
