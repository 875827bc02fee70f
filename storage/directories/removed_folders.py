"""Folders of logs that are no logs any more: renamed at once, and removed later if they are to go.

Kafka: `LogManager.asyncDelete`, `addLogToBeDeleted`.
"""

import logging
from collections import deque
from random import Random
from uuid import UUID

from ..disk.files import Files
from ..log.log import Log
from .directory_failures import DirectoryFailures
from .rules.folder_names import FolderKind, RemovedFolder, folder_name, moved_folder_name

logger = logging.getLogger(__name__)


class RemovedFolders:
    def __init__(self, files: Files, failures: DirectoryFailures, random: Random) -> None:
        self._files = files
        self._failures = failures
        self._random = random
        self.due: deque[RemovedFolder] = deque()
        """Folders to remove, oldest first: housekeeping takes them."""
        # Directories in which a log was moved aside: until they are synced, a loss of power may bring the folder back.
        self._moved_in: set[str] = set()

    def move_aside(self, path: str, topic: str, partition: int, kind: FolderKind, log: Log | None = None) -> str | None:
        """The new path of the folder, that of `log` if it is one that is open; None when the disk fails."""
        unique_id = UUID(int=self._random.getrandbits(128), version=4)
        target = f"{path.rpartition('/')[0]}/{moved_folder_name(topic, partition, kind, unique_id)}"
        try:
            if log is None:
                self._files.rename(path, target)
            else:
                log.rename_directory(target)
        except OSError as error:
            self._failures.on_error(path, error)
            return None
        self._moved_in.add(path.rpartition("/")[0])
        logger.debug("Log is renamed: partition=%s path=%s", folder_name(topic, partition), target)
        return target

    def remove_later(self, path: str, delay_ms: int) -> None:
        """A folder `….-delete`, by housekeeping."""
        self.due.append(RemovedFolder(path=path, delay_ms=delay_ms))

    def sync(self) -> None:
        """No loss of power brings back what was moved aside. OSError."""
        for path in sorted(self._moved_in):
            self._files.sync_directory(path)
            self._moved_in.remove(path)
