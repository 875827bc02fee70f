"""Opens the logs of this node: those that its start finds, and later those that it could not open or that are repaired.

Kafka: `LogManager.loadLogs`. What waits for the disk runs in the executor: `log_loading.py`.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from errno import EIO
from functools import partial
from typing import Protocol
from uuid import UUID

from ...protocol.errors import CorruptData
from ...protocol.ids import TopicId
from ...protocol.structs import replace
from ..disk.files import Files
from ..disk.rules.disk_errors import ReadError
from ..disk.shielded_call import run_unbroken
from ..log.log import Log
from ..log.rules.config import LogConfig
from .directory_failures import DirectoryFailures
from .future_logs import FutureLogs
from .group_sync import Failure
from .log_directories import LogDirectories, check_supplies
from .log_directory import LogDirectory
from .log_jobs import LogJobs
from .log_loading import (
    FoundFolders,
    LogFolder,
    OpenSettings,
    PostponedLog,
    find_folders,
    look_into,
    open_logs,
    recovered_files,
    settle_recovered,
)
from .offline_logs import OfflineLogs
from .online_logs import OnlineLogs
from .removed_folders import RemovedFolders
from .rules.checkpoints import TopicPartition
from .rules.folder_names import FolderKind, folder_name
from .rules.interrupted_moves import FoundFolder

logger = logging.getLogger(__name__)


class SettingsOf(Protocol):
    def __call__(self, configs: Mapping[str, LogConfig], *, is_clean: bool) -> OpenSettings: ...


class LogOpening:
    def __init__(
        self,
        files: Files,
        directories: LogDirectories,
        online: OnlineLogs,
        offline: OfflineLogs,
        futures: FutureLogs,
        removed: RemovedFolders,
        failures: DirectoryFailures,
        *,
        settings_of: SettingsOf,
        truncate: Callable[[Mapping[Log, int]], None],
        limit_cleaned_ends: Callable[[Iterable[Log]], None],
        delete_delay_ms: int,
        recovery_threads: Callable[[], int],
    ) -> None:
        """`truncate` and `limit_cleaned_ends` are those of `LogManager`."""
        self._files = files
        self._directories = directories
        self._online = online
        self._offline = offline
        self._futures = futures
        self._removed = removed
        self._failures = failures
        self._settings_of = settings_of
        self._truncate = truncate
        self._limit_cleaned_ends = limit_cleaned_ends
        self._delete_delay_ms = delete_delay_ms
        self._recovery_threads = recovery_threads
        # Of `load`. A log that is postponed since then and deleted meanwhile is moved aside by `LogManager.delete`.
        self._is_stray: Callable[[str, int, TopicId | None], bool] = lambda *_: False
        # Calls of `open_postponed`.
        self._turn = 0

    async def load(
        self,
        loop: AbstractEventLoop,
        *,
        config_of: Callable[[str], LogConfig],
        is_stray: Callable[[str, int, TopicId | None], bool],
        assigned_directory: Callable[[TopicPartition], UUID | None] = lambda _: None,
    ) -> None:
        """Open every log, recovering those of directories that were not closed; settle what moves have left.

        Folders of partitions for which `is_stray` holds are renamed to `….-stray`: they are kept, but not opened. So
        are those with records that name no topic id: they may be of a deleted topic of the same name.
        `assigned_directory` is where the metadata have a replica of this node. ConfigError when two directories have a
        log of the same partition and nothing tells which one is right, or descriptors or memory are short.
        """
        self._is_stray = is_stray
        found: dict[LogDirectory, FoundFolders] = {}
        for directory in self._directories:
            if directory.is_online:
                try:
                    folders = await run_unbroken(loop, find_folders, self._files, directory)
                    folders.logs[:] = self._without_strays(directory, folders.logs)
                    found[directory] = folders
                except OSError as error:
                    check_supplies(directory, error)
                    self._failures.fail(directory, error)
        await self._settle_moves(loop, found, assigned_directory)
        for folders in found.values():
            for folder in folders.deleted:
                self._removed.remove_later(folder.path, self._delete_delay_ms)
        await asyncio.gather(
            *(self._load_directory(loop, one, folders.logs, config_of) for one, folders in found.items())
        )

    async def _settle_moves(
        self,
        loop: AbstractEventLoop,
        found: dict[LogDirectory, FoundFolders],
        assigned_directory: Callable[[TopicPartition], UUID | None],
    ) -> None:
        def move_aside(folder: FoundFolder, kind: FolderKind) -> None:
            path = self._removed.move_aside(folder.path, *folder.key, kind)
            if path is not None and kind is FolderKind.DELETED:
                self._removed.remove_later(path, self._delete_delay_ms)

        for folders in found.values():
            for future in list(folders.futures):
                if self._is_stray(*future.key, future.topic_id):
                    folders.futures.remove(future)
                    move_aside(future, FolderKind.DELETED)
        failures = await run_unbroken(
            loop,
            partial(
                self._futures.settle_found,
                found,
                assigned_directory=assigned_directory,
                has_offline_directory=len(self._directories.online) < len(self._directories),
                move_aside=move_aside,
            ),
        )
        for directory, error in failures:
            check_supplies(directory, error)
            self._failures.fail(directory, error)
        for key, path in self._futures.incomplete.items():
            self._offline.fail(key, OSError(EIO, f"the log is missing, and its copy {path} may be incomplete"))

    async def open_postponed(self, loop: AbstractEventLoop) -> None:
        """Open what could not be opened at `load`, and what is being repaired: then `get_or_create` finds it."""
        self._turn += 1
        for key, postponed in self._offline.postponed().items():
            if postponed.turn > self._turn:
                continue
            opening, log = await self._open_again(loop, postponed)
            if self._offline.postponed_log(key) is postponed:
                self._offline.on_reopened(key)
                opening.directory.unopened.discard(key)
                if log is not None:
                    self._register(opening, log)
                    if isinstance(log, Log) and log.damage is None:
                        self._limit_cleaned_ends([log])
            elif isinstance(log, Log):
                # It was deleted, or set aside to be repaired as a whole, while it was opened.
                log.close_files()

    def reopen(self, log: Log, damage_offset: int) -> None:
        """Close a log, and have it opened again as `open_postponed` is called: recovered from the segment of
        `damage_offset` on, and cut there. OSError."""
        directory = self._directories.directory_of(log.directory)
        assert directory is not None, "logs are in log directories"
        key = log.topic, log.partition
        directory.limit_recovery_points({key: log.segment_base_offset_of(damage_offset)})
        directory.limit_cleaned_ends({key: damage_offset})
        self._online.remove(*key)
        log.close_files()
        directory.unopened.add(key)
        folder = LogFolder(path=log.directory, topic=log.topic, partition=log.partition, topic_id=log.topic_id)
        settings = self._settings_of({log.topic: log.config}, is_clean=False)
        postponed = PostponedLog(directory=directory, folder=folder, settings=settings, cut_offset=damage_offset)
        self._offline.postpone(key, being_repaired(key), postponed)

    def set_unopened_aside(self, topic: str, partition: int) -> None:
        """The folders of a log that could not be opened become `….-stray`: their topic id is unknown."""
        for directory in self._directories:
            if directory.is_online and (topic, partition) in directory.unopened:
                directory.unopened.remove((topic, partition))
                folder = f"{directory.path}/{folder_name(topic, partition)}"
                folder = self._futures.incomplete.pop((topic, partition), folder)
                path = self._removed.move_aside(folder, topic, partition, FolderKind.STRAY)
                logger.warning("Log is renamed: partition=%s path=%s", folder_name(topic, partition), path)

    def _without_strays(self, directory: LogDirectory, folders: Iterable[LogFolder]) -> list[LogFolder]:
        kept: list[LogFolder] = []
        strays: Counter[str] = Counter()
        for folder in folders:
            if folder.has_unidentified_records or self._is_stray(folder.topic, folder.partition, folder.topic_id):
                self._removed.move_aside(folder.path, folder.topic, folder.partition, FolderKind.STRAY)
                strays[folder.topic] += 1
            else:
                kept.append(folder)
        for topic, count in strays.items():
            # The metadata do not have them on this node: the topic was deleted or moved while the node was down.
            logger.warning("Found stray logs, renamed: topic=%s partitions=%d path=%s", topic, count, directory.path)
        return kept

    async def _load_directory(
        self,
        loop: AbstractEventLoop,
        directory: LogDirectory,
        folders: list[LogFolder],
        config_of: Callable[[str], LogConfig],
    ) -> None:
        started = loop.time()

        async def open_some(some: Sequence[LogFolder]) -> None:
            configs = {folder.topic: config_of(folder.topic) for folder in some}
            settings = self._settings_of(configs, is_clean=directory.has_clean_shutdown)
            opened = await self._open(jobs, directory, some, settings)
            for folder, log in zip(some, opened, strict=True):
                self._register(PostponedLog(directory=directory, folder=folder, settings=settings), log)
            # Recovery may have cut them.
            self._limit_cleaned_ends([log for log in opened if isinstance(log, Log) and log.damage is None])

        with LogJobs(loop, slices_at_once=self._recovery_threads()) as jobs:
            await jobs.for_slices(folders, open_some)
        logger.info(
            "Loaded logs: directory=%s logs=%d recovered=%s seconds=%.3f",
            directory.path,
            len(folders),
            not directory.has_clean_shutdown,
            loop.time() - started,
        )

    async def _open(
        self, jobs: LogJobs, directory: LogDirectory, folders: Sequence[LogFolder], settings: OpenSettings
    ) -> list[Log | Failure]:
        opened = await jobs.run(open_logs, self._files, directory, folders, settings)
        recovered = [log for log in opened if isinstance(log, Log) and log.needs_sync]
        if not recovered:
            return opened
        errors = await jobs.sync(await jobs.run(recovered_files, recovered))
        settled = dict(zip(recovered, await jobs.run(settle_recovered, recovered, errors), strict=True))
        return [settled.get(log, log) if isinstance(log, Log) else log for log in opened]

    async def _open_again(
        self, loop: AbstractEventLoop, opening: PostponedLog
    ) -> tuple[PostponedLog, Log | CorruptData | OSError | None]:
        """None: it was deleted meanwhile, or is a stray, which was not known before."""
        directory, folder = opening.directory, opening.folder
        if folder.error is not None:
            try:
                folder = await run_unbroken(loop, look_into, self._files, folder.path, folder.topic, folder.partition)
            except OSError as error:
                return opening, error
            if self._offline.postponed_log((folder.topic, folder.partition)) is not opening or (
                folder.error is None and not self._without_strays(directory, [folder])
            ):
                return opening, None
            opening = replace(opening, folder=folder)
        with LogJobs(loop, slices_at_once=1) as jobs:
            (log,) = await self._open(jobs, directory, [folder], opening.settings)
        return opening, log

    def _register(self, opening: PostponedLog, log: Log | CorruptData | OSError) -> None:
        directory = opening.directory
        key = opening.folder.topic, opening.folder.partition
        if isinstance(log, OSError):
            self._failures.on_error(directory.path, log)
        if directory.error is not None:
            self._offline.fail(key, directory.error)
        elif isinstance(log, Log):
            self._online.add(log)
            if opening.cut_offset is not None:
                # A cut that fails leaves a damaged log, which is cut again.
                with suppress(OSError, CorruptData):
                    self._truncate({log: opening.cut_offset})
            if log.damage is not None:
                logger.error("Log is damaged: partition=%s damage=%s", log.name, log.damage)
        elif isinstance(log, CorruptData):
            logger.error("Failed to open log: partition=%s reason=%s", folder_name(*key), log)
            self._offline.fail(key, OSError(EIO, str(log)))
            directory.unopened.add(key)
        else:
            later = opening.after(log, self._turn)
            if later.counts_as_lost and not opening.counts_as_lost:
                logger.error("Failed to open log: partition=%s reason=%s", folder_name(*key), log)
            elif later.failed_reads and not later.counts_as_lost:
                logger.warning("Failed to open log, retrying: partition=%s reason=%s", folder_name(*key), log)
            directory.unopened.add(key)
            self._offline.postpone(key, log, later)


def being_repaired(key: TopicPartition) -> OSError:
    """Why its log is not to be opened or made meanwhile."""
    return ReadError(EIO, f"the log of {folder_name(*key)} is being repaired")
