"""In which log directory a new log is made: where the controller says, else where an operator asked, else the emptiest.

An operator asks with AlterReplicaLogDirs before the replica is there (KIP-113). A cordoned directory is chosen only
where the controller says so, or where all are cordoned: whether this broker takes a replica is the controller's to
decide.
"""

from collections.abc import Callable
from errno import EIO
from typing import Final
from uuid import UUID

from .log_directories import LogDirectories
from .log_directory import LogDirectory
from .rules.checkpoints import TopicPartition

PREFERENCES_MAX: Final = 10_000
"""Of partitions that may never come; beyond it the oldest is forgotten, and its log goes to the emptiest directory."""


class DirectoryChoice:
    def __init__(self, directories: LogDirectories, log_count_of: Callable[[str], int]) -> None:
        """`log_count_of` tells how many logs are in the directory of a path."""
        self._directories = directories
        self._log_count_of = log_count_of
        self._preferred: dict[TopicPartition, LogDirectory] = {}

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Of the log of this partition, once it is made; the last word counts."""
        self._preferred.pop(partition, None)
        if len(self._preferred) >= PREFERENCES_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[partition] = directory

    def choose(self, partition: TopicPartition, directory_id: UUID | None) -> LogDirectory:
        """The one with this id if it can be used. Raises OSError when none can."""
        online = self._directories.online
        preferred = self._preferred.pop(partition, None)
        for directory in online:
            if directory.id == directory_id:
                return directory
        if preferred is not None and preferred.is_online and not preferred.is_cordoned:
            return preferred
        if not online:
            raise OSError(EIO, "all log directories are offline")
        open_ones = [directory for directory in online if not directory.is_cordoned]
        return min(open_ones or online, key=lambda directory: self._log_count_of(directory.path))
