"""The log directories of a node as one: locked, formatted and marked together, and found by a path.

Order of use: `lock`, `format`, then the rest, `unlock`. One whose disk fails at the start is offline from the start; a
node without any cannot start.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import overload
from uuid import UUID

from ...protocol.errors import ConfigError
from ...protocol.ids import NO_BROKER_EPOCH, BrokerEpoch, NodeId
from ..disk.files import Files
from ..disk.rules.disk_errors import is_shortage
from ..log.log import Log
from .log_directory import LogDirectory, draw_id
from .rules.meta_properties import uuid_text

logger = logging.getLogger(__name__)


class LogDirectories(Sequence[LogDirectory]):
    """A sequence of those in `log.dirs`; beside them it has the one of the metadata log."""

    def __init__(
        self,
        files: Files,
        log_dirs: Sequence[str],
        *,
        node_id: NodeId,
        random: Random,
        metadata_log_dir: str | None = None,
        reserve_bytes: int = 0,
    ) -> None:
        """`metadata_log_dir` is locked and formatted too; it need not be one of `log_dirs`.

        Of the disk of each log directory `reserve_bytes` are kept free of records; below 0 that follows from its size.
        """
        self._directories = tuple(LogDirectory(files, path) for path in dict.fromkeys(log_dirs))
        self._metadata_directory: LogDirectory | None = None
        if metadata_log_dir is not None and metadata_log_dir not in log_dirs:
            self._metadata_directory = LogDirectory(files, metadata_log_dir)
        self._node_id = node_id
        self._random = random
        self._reserve_bytes = reserve_bytes

    @overload
    def __getitem__(self, index: int) -> LogDirectory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LogDirectory, ...]: ...
    def __getitem__(self, index: int | slice) -> LogDirectory | tuple[LogDirectory, ...]:
        return self._directories[index]

    def __len__(self) -> int:
        return len(self._directories)

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.is_online]

    def cordon(self, paths: Collection[str]) -> bool:
        """New replicas go into the others, while there are some (KIP-1066); whether that is a change."""
        before = [directory.is_cordoned for directory in self._directories]
        for directory in self._directories:
            directory.is_cordoned = directory.path in paths
        return before != [directory.is_cordoned for directory in self._directories]

    @property
    def metadata_directory_id(self) -> UUID:
        """Of `metadata_log_dir`, else of the first log directory; zero before it is formatted."""
        return (self._metadata_directory or self._directories[0]).id

    def directory_of(self, path: str) -> LogDirectory | None:
        """The one of `log.dirs` that `path` lies in."""
        for directory in self._directories:
            if path == directory.path or path.startswith(directory.path + "/"):
                return directory
        return None

    # Starting and stopping

    def lock(self) -> str | None:
        """Lock every directory; the cluster that they belong to, None when all are empty.

        ConfigError when one is in use, or when all fail.
        """
        try:
            self._attempt(self._all, LogDirectory.lock)
        except ConfigError:
            self.unlock()
            raise
        known = [one.properties.cluster_id for one in self._all if one.is_online and one.properties is not None]
        return known[0] if known else None

    def format(self, cluster_id: str | None) -> str:
        """Format the empty ones; the cluster id, drawn for a new cluster.

        ConfigError when one is another cluster's or node's, or when all fail.
        """
        to_use = cluster_id or uuid_text(draw_id(self._random))
        try:
            self._attempt(self._all, lambda one: one.format(to_use, self._node_id, self._random))
            self._attempt(self._directories, lambda one: one.keep_room(self._reserve_bytes))
        except ConfigError:
            self.unlock()
            raise
        return to_use

    def count_start(self) -> int:
        """The number of this start, above all earlier ones, and kept. ConfigError when the last directory fails."""
        number = 1 + max(directory.start_count for directory in self._directories)
        self._attempt(self._directories, lambda directory: directory.keep_start_count(number))
        return number

    def previous_broker_epoch(self) -> BrokerEpoch:
        """The broker epoch of the last registration when the stop after it was clean in all directories; else -1.

        To be asked before logs are loaded, which removes the marks. ConfigError when the last directory fails.
        """
        epochs: set[BrokerEpoch | None] = set()
        self._attempt(self._directories, lambda directory: epochs.add(directory.closed_by_broker_epoch()))
        epoch = epochs.pop()
        return NO_BROKER_EPOCH if epochs or epoch is None or len(self.online) < len(self) else epoch

    def unlock(self) -> None:
        """Let go of the directories as they are."""
        for directory in self._all:
            directory.unlock()

    # Checkpoints, before logs are cut

    def limit_before_truncation(self, offsets: Mapping[Log, int]) -> None:
        """A crash while these logs are cut at `offsets` is not to be taken for damage. OSError.

        One write of each checkpoint for each directory, whatever the number of logs in it.
        """
        for directory in self._directories:
            limits = {
                log: log.segment_base_offset_of(offset)
                for log, offset in offsets.items()
                if self.directory_of(log.directory) is directory
            }
            if not limits:
                continue
            directory.limit_recovery_points({(log.topic, log.partition): limit for log, limit in limits.items()})
            directory.limit_cleaned_ends(
                {(log.topic, log.partition): min(offsets[log], log.log_end_offset) for log in limits}
            )
            # Of those that are cut below it.
            directory.limit_start_offsets(
                {
                    (log.topic, log.partition): limit
                    for log, limit in limits.items()
                    if offsets[log] < log.log_start_offset
                }
            )

    def limit_before_restart(self, log: Log) -> None:
        """There is a moment without any segment: the log of a process that ends then begins at 0. OSError."""
        directory = self.directory_of(log.directory)
        if directory is not None:
            directory.limit_recovery_points({(log.topic, log.partition): 0})
            directory.limit_start_offsets({(log.topic, log.partition): 0})
            directory.limit_cleaned_ends({(log.topic, log.partition): 0})

    # Helpers

    @property
    def _all(self) -> tuple[LogDirectory, ...]:
        return self._directories if self._metadata_directory is None else (*self._directories, self._metadata_directory)

    def _attempt(self, directories: Sequence[LogDirectory], step: Callable[[LogDirectory], None]) -> None:
        for directory in directories:
            try:
                if directory.is_online:
                    step(directory)
            except OSError as error:
                check_supplies(directory, error)
                if directory is self._metadata_directory:
                    raise ConfigError(f"Metadata log directory {directory.path} cannot be used: {error}.") from error
                directory.fail(error)
                logger.error("Stopping serving logs in dir: path=%s error=%s", directory.path, error)
        if not self.online:
            first = self._directories[0]
            raise ConfigError(f"No log directory can be used; {first.path}: {first.error}.")


def check_supplies(directory: LogDirectory, error: OSError) -> None:
    """ConfigError for a shortage at the start, which says nothing about the directory: a node that started without it
    would be without its replicas until the next restart."""
    if is_shortage(error):
        raise ConfigError(f"Log directory {directory.path} cannot be used: {error}.") from error
