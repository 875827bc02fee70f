"""The copies of logs on their way to another log directory, and what becomes of those that a process left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, assert_never
from uuid import UUID

from ..disk.files import Files
from .future_log import FutureLog, forget_replaced_directory, read_replaced_directory
from .log_directory import LogDirectory
from .log_loading import FoundFolders, LogFolder, look_into
from .rules.checkpoints import TopicPartition
from .rules.folder_names import FolderKind, folder_name
from .rules.interrupted_moves import Decision, Discard, FoundFolder, Incomplete, Promote, Resume, SetAside, settle

logger = logging.getLogger(__name__)

MoveAside: TypeAlias = Callable[[FoundFolder, FolderKind], None]


class FutureLogs:
    """At most one of a partition. `LogMover` fills them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._futures: dict[TopicPartition, FutureLog] = {}
        # Paths of copies that have no log any more: the replica is offline.
        self.incomplete: dict[TopicPartition, str] = {}
        # Sees to the folder of a copy that is of no use any more.
        self.on_ended: Callable[[FutureLog], None] = lambda _: None

    def __iter__(self) -> Iterator[FutureLog]:
        return iter(list(self._futures.values()))

    def __len__(self) -> int:
        return len(self._futures)

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._futures

    def get(self, key: TopicPartition) -> FutureLog | None:
        return self._futures.get(key)

    def add(self, future: FutureLog) -> None:
        assert future.key not in self._futures, "the one before is ended first"
        self._futures[future.key] = future
        future.directory.moving_in.add(future.key)

    def end(self, key: TopicPartition) -> FutureLog | None:
        """The move of this partition is over before it is done. None when it does not move."""
        future = self._remove(key)
        if future is not None:
            self.on_ended(future)
        return future

    def complete(self, key: TopicPartition) -> None:
        """The copy has taken over."""
        self._remove(key)

    def _remove(self, key: TopicPartition) -> FutureLog | None:
        future = self._futures.pop(key, None)
        if future is not None:
            future.is_over = True
            future.directory.moving_in.discard(key)
        return future

    def end_in(self, directory: LogDirectory) -> None:
        """It has failed."""
        for future in self:
            if future.directory is directory:
                self.end(future.key)

    # At the start. Waits for the disk.

    def settle_found(
        self,
        found: Mapping[LogDirectory, FoundFolders],
        *,
        assigned_directory: Callable[[TopicPartition], UUID | None],
        has_offline_directory: bool,
        move_aside: MoveAside,
    ) -> list[tuple[LogDirectory, OSError]]:
        """Carry out what `interrupted_moves` decides about the folders of all directories that are online.

        Logs that have become something else leave `found`, a copy that is one now comes in. Returns the directories
        that failed meanwhile. ConfigError.
        """
        failures: list[tuple[LogDirectory, OSError]] = []
        by_id = {directory.id: directory for directory in found}
        logs = []
        for directory, folders in found.items():
            try:
                logs += [self._seen(folder, directory, is_alone=len(by_id) == 1) for folder in folders.logs]
            except OSError as error:
                failures.append((directory, error))
        decisions = settle(
            logs,
            [folder for folders in found.values() for folder in folders.futures],
            [folder for folders in found.values() for folder in folders.deleted],
            assigned_directory=assigned_directory,
            has_offline_directory=has_offline_directory or bool(failures),
        )
        for decision in decisions:
            folder = decision.folder
            directory = by_id[folder.directory_id]
            try:
                self._carry_out(decision, directory, found[directory], move_aside)
            except OSError as error:
                failures.append((directory, error))
        noted = [log for log in logs if log.replaced_directory_id is not None]
        if not failures:
            failures += self._forget_notes(by_id, noted, is_settled=not has_offline_directory)
        return failures

    def _carry_out(
        self, decision: Decision, directory: LogDirectory, folders: FoundFolders, move_aside: MoveAside
    ) -> None:
        folder = decision.folder
        name = folder_name(*folder.key)
        match decision:
            case Promote():
                path = f"{directory.path}/{name}"
                self._files.rename(folder.path, path)
                # Before what it replaces is removed.
                self._files.sync_directory(directory.path)
                forget_replaced_directory(self._files, path)
                folders.logs.append(look_into(self._files, path, *folder.key))
                logger.info("Move of a log is finished: partition=%s path=%s", name, path)
            case Resume():
                self.add(FutureLog(folder.key, directory, folder.path, folder.unique_id, is_resumed=True))
                logger.info("Move of a log goes on: partition=%s path=%s", name, folder.path)
            case Discard():
                folders.logs[:] = [log for log in folders.logs if log.path != folder.path]
                move_aside(folder, FolderKind.DELETED)
            case SetAside():
                folders.logs[:] = [log for log in folders.logs if log.path != folder.path]
                move_aside(folder, FolderKind.STRAY)
                logger.warning(
                    "Renamed an old log, its replica is in another log directory: partition=%s path=%s",
                    name,
                    folder.path,
                )
            case Incomplete():
                self.incomplete[folder.key] = folder.path
                directory.unopened.add(folder.key)
                logger.error(
                    "Log is missing and its copy may be incomplete, the replica is offline until another one leads: "
                    "partition=%s path=%s",
                    name,
                    folder.path,
                )
            case _:
                assert_never(decision)

    def _seen(self, folder: LogFolder, directory: LogDirectory, *, is_alone: bool) -> FoundFolder:
        return FoundFolder(
            path=folder.path,
            key=(folder.topic, folder.partition),
            directory_id=directory.id,
            # One look less at each of thousands of folders, where nothing was ever moved.
            replaced_directory_id=None if is_alone else read_replaced_directory(self._files, folder.path),
        )

    def _forget_notes(
        self, directories: Mapping[UUID, LogDirectory], noted: list[FoundFolder], *, is_settled: bool
    ) -> list[tuple[LogDirectory, OSError]]:
        """No loss of power is to take back the names of these, as what they have replaced is removed soon.

        Their notes go when all directories were seen: none of them has the log that is replaced.
        """
        for directory in directories.values() if noted else ():
            try:
                self._files.sync_directory(directory.path)
            except OSError as error:
                return [(directory, error)]
        for log in noted if is_settled else ():
            try:
                forget_replaced_directory(self._files, log.path)
            except OSError as error:
                return [(directories[log.directory_id], error)]
        return []
