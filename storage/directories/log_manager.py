"""The logs of this node, in its log directories. Kafka: `LogManager`.

Order of use: `load` (opens every log), then `get_or_create`, `delete` and so on, `close`. All on the loop's thread.
An error of the disk takes its log directory offline, and the logs in it; the process goes on. Errors that say nothing
about the disk as a whole, a full disk above all, only refuse what met them (`disk_errors.py`). What needs time and
repetition is done by `log_housekeeping`.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from errno import EIO
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from ...protocol.errors import CorruptData
from ...protocol.ids import NO_BROKER_EPOCH, BrokerEpoch, TopicId
from ..disk.files import Files
from ..disk.rules.disk_errors import ClosedError, ReadError, is_passing, leaves_directory_usable
from ..disk.shielded_call import run_unbroken
from ..log.log import DEFAULT_PRODUCER_ID_EXPIRATION_MS, Log
from ..log.rules.config import LogConfig
from ..log.rules.producer_entry import ProducerEntry
from ..log.rules.tiered_history import TieredHistory
from .directory_choice import DirectoryChoice
from .future_log import FutureLog
from .future_logs import FutureLogs
from .log_closing import close_logs, write_down_closed
from .log_directories import LogDirectories, check_supplies
from .log_directory import LogDirectory
from .log_loading import (
    FoundFolders,
    LogFolder,
    OpenSettings,
    PostponedLog,
    find_folders,
    look_into,
    open_logs,
)
from .offline_logs import OfflineLogs
from .rules.checkpoints import TopicPartition
from .rules.folder_names import FolderKind, RemovedFolder, folder_name, moved_folder_name
from .rules.interrupted_moves import FoundFolder

logger = logging.getLogger(__name__)

# Logs that are opened or closed by one job of the executor.
_LOGS_PER_JOB: Final = 50
# A full disk refuses every append; the log says so this often.
_COMPLAINT_INTERVAL_MS: Final = 10_000


class LogManager:
    def __init__(
        self,
        files: Files,
        directories: LogDirectories,
        *,
        random: Random,
        steady_clock_ms: Callable[[], int],
        default_config: LogConfig | None = None,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        on_directory_failure: Callable[[str, OSError], None] | None = None,
    ) -> None:
        """`directories` are locked and formatted before `load`.

        `on_directory_failure` is told the path of a log directory right after its logs have left `logs`.
        """
        self.directories = directories
        self.default_config = LogConfig() if default_config is None else default_config
        self.on_directory_failure = on_directory_failure
        # Folders to remove, oldest first: housekeeping takes them.
        self.removed_folders: deque[RemovedFolder] = deque()
        self._files = files
        self._random = random
        self._steady_clock_ms = steady_clock_ms
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._logs: dict[str, dict[int, Log]] = {}
        # By the path of the directory.
        self._log_counts: Counter[str] = Counter()
        self.directory_choice = DirectoryChoice(self.directories, lambda path: self._log_counts[path])
        self.offline = OfflineLogs()
        self.futures = FutureLogs(files)
        # Directories in which a log was moved aside: until they are synced, a loss of power may bring the folder back.
        self._moved_in: set[str] = set()
        # Of `load`. A log that is postponed since then and deleted meanwhile is moved aside by `delete`.
        self._is_stray: Callable[[str, int, TopicId | None], bool] = lambda *_: False
        # Where the last try to make a log failed.
        self._half_made: dict[TopicPartition, LogDirectory] = {}
        self._last_complaint_ms: dict[str, int] = {}
        self._is_loaded = False
        self._is_closed = False

    # Starting

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
        for directory in self.directories:
            if directory.is_online:
                try:
                    folders = await run_unbroken(loop, find_folders, self._files, directory)
                    folders.logs[:] = self._without_strays(directory, folders.logs, is_stray)
                    found[directory] = folders
                except OSError as error:
                    check_supplies(directory, error)
                    self._fail(directory, error)
        await self._settle_moves(loop, found, assigned_directory)
        for folders in found.values():
            for folder in folders.deleted:
                self.remove_later(folder.path, self.default_config.file_delete_delay_ms)
        await asyncio.gather(
            *(self._load_directory(loop, one, folders.logs, config_of) for one, folders in found.items())
        )
        self._is_loaded = True

    async def _settle_moves(
        self,
        loop: AbstractEventLoop,
        found: dict[LogDirectory, FoundFolders],
        assigned_directory: Callable[[TopicPartition], UUID | None],
    ) -> None:
        def move_aside(folder: FoundFolder, kind: FolderKind) -> None:
            path = self._move_aside(folder.path, *folder.key, kind, None)
            if path is not None and kind is FolderKind.DELETED:
                self.remove_later(path, self.default_config.file_delete_delay_ms)

        for folders in found.values():
            for future in list(folders.futures):
                if self._is_stray(*future.key, future.topic_id):
                    folders.futures.remove(future)
                    move_aside(future, FolderKind.DELETED)
        failures = await run_unbroken(
            loop,
            partial(
                self.futures.settle_found,
                found,
                assigned_directory=assigned_directory,
                has_offline_directory=len(self.directories.online) < len(self.directories),
                move_aside=move_aside,
            ),
        )
        for directory, error in failures:
            check_supplies(directory, error)
            self._fail(directory, error)
        for key, path in self.futures.incomplete.items():
            self.offline.fail(key, OSError(EIO, f"the log is missing, and its copy {path} may be incomplete"))

    # The logs

    @property
    def logs(self) -> Iterator[Log]:
        return (log for partitions in self._logs.values() for log in partitions.values())

    def logs_in(self, directory: LogDirectory) -> list[Log]:
        return [log for log in self.logs if log.directory.startswith(directory.path + "/")]

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get(topic, {}).get(partition)

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: TopicId,
        config: LogConfig,
        *,
        directory_id: UUID | None = None,
        is_new: bool = False,
    ) -> Log:
        """The log, a new one in the directory `directory_id` or else as `directory_choice` says.

        OSError when the directory fails or has failed, or has no room. While any directory is offline a log is made
        only if `is_new` tells that there never was one: it may be out of sight. KafkaError INCONSISTENT_TOPIC_ID.
        """
        self._check_open()
        log = self.get(topic, partition)
        if log is not None:
            if log.topic_id != topic_id:
                self._identify(log, topic_id)
            log.config = config
            return log
        key = topic, partition
        self.offline.check(key)
        offline = [directory for directory in self.directories if not directory.is_online]
        if offline and not is_new:
            raise OSError(EIO, f"no log is made for {folder_name(*key)} while {offline[0].path} is offline")
        # A try that failed may have left the folder: another one elsewhere would be a second log of the partition.
        directory = self._half_made.get(key) or self.directory_choice.choose(key, directory_id)
        if not directory.is_online:
            raise OSError(EIO, f"the log of {folder_name(*key)} was begun in {directory.path}, which is offline")
        self._half_made[key] = directory
        try:
            for path in sorted(self._moved_in):
                self._files.sync_directory(path)
                self._moved_in.remove(path)
            directory.forget_absent(key, lambda other: self.get(*other) is not None)
            log = Log.open(
                self._files,
                f"{directory.path}/{folder_name(topic, partition)}",
                topic=topic,
                partition=partition,
                topic_id=topic_id,
                config=config,
                is_clean=True,
                now_ms=self._steady_clock_ms(),
                producer_id_expiration_ms=self._producer_id_expiration_ms,
                random=self._random,
                room=directory.room,
            )
        except OSError as error:
            self.on_error(directory.path, error)
            raise
        del self._half_made[key]
        self._add(log)
        return log

    def set_producer_id_expiration(self, expiration_ms: int) -> None:
        """`producer.id.expiration.ms` has changed."""
        if expiration_ms == self._producer_id_expiration_ms:
            return
        self._producer_id_expiration_ms = expiration_ms
        for log in self.logs:
            log.producers.expiration_ms = expiration_ms

    def update_config(self, topic: str, config: LogConfig) -> None:
        for log in self._logs.get(topic, {}).values():
            log.config = config

    def truncate(self, offsets: Mapping[Log, int]) -> None:
        """`Log.truncate_to` for many logs, such that a crash in the middle is not taken for damage. OSError and
        CorruptData, when all are cut that can be.
        """
        self._check_open()
        self.directories.limit_before_truncation(offsets)
        failure: OSError | CorruptData | None = None
        for log, offset in offsets.items():
            try:
                log.truncate_to(offset)
            except (OSError, CorruptData) as error:
                failure = failure or error
        # A cut in a gap, or within a batch, ends a log below.
        self.limit_cleaned_ends(offsets)
        if failure is not None:
            raise failure

    def limit_cleaned_ends(self, logs: Iterable[Log] = ()) -> None:
        """Of these to where they end, and of others for which it could not be done; a failure is seen to."""
        for directory in self.directories:
            if directory.is_online:
                ends = {
                    (log.topic, log.partition): log.log_end_offset
                    for log in logs
                    if self.directories.directory_of(log.directory) is directory
                }
                try:
                    directory.limit_cleaned_ends(ends)
                except OSError as error:
                    self.on_error(directory.path, error)

    def restart(
        self,
        log: Log,
        offset: int,
        producers: Iterable[ProducerEntry],
        now_ms: int,
        tiered: TieredHistory | None = None,
    ) -> None:
        """`Log.truncate_fully_and_start_at`, such that a crash in the middle is not taken for damage. OSError."""
        self._check_open()
        self.directories.limit_before_restart(log)
        log.truncate_fully_and_start_at(offset, producers, now_ms, tiered=tiered)

    def begin_repair(self, topic: str, partition: int, damage_offset: int | None) -> bool:
        """Give up what a damaged log has from its damage on; one that could not be opened is set aside as a whole.

        `damage_offset` is None where opening the log has found the damage.

        The log is closed, and comes back by `open_postponed`: recovered from the segment of `damage_offset` on, which
        cuts it where it is not intact. False when there is nothing to repair, as in a directory that is offline.
        OSError.
        """
        self._check_open()
        key = topic, partition
        log = self.get(topic, partition)
        if log is None:
            has_folder = any(one.is_online and key in one.unopened for one in self.directories)
            if self.offline.is_retried(key) or not has_folder:
                return False
            self.delete(topic, partition)
            self.offline.refuse(key, _being_repaired(key), is_new=False)
            return True
        directory = self.directories.directory_of(log.directory)
        assert directory is not None, "logs are in log directories"
        if log.damage is not None:
            damage_offset = log.damage.offset
        if damage_offset is None:
            return False
        directory.limit_recovery_points({key: log.segment_base_offset_of(damage_offset)})
        directory.limit_cleaned_ends({key: damage_offset})
        self._forget(topic, partition)
        log.close_files()
        directory.unopened.add(key)
        folder = LogFolder(path=log.directory, topic=topic, partition=partition, topic_id=log.topic_id)
        settings = self._open_settings({topic: log.config}, is_clean=False)
        postponed = PostponedLog(directory=directory, folder=folder, settings=settings, cut_offset=damage_offset)
        self.offline.postpone(key, _being_repaired(key), postponed)
        return True

    def delete(self, topic: str, partition: int) -> None:
        """Rename the folder to `….-delete`; it goes after `file.delete.delay.ms`. Nothing when there is no log.

        A log that could not be opened becomes `….-stray`: its topic id is unknown.
        """
        self._check_open()
        self.futures.end((topic, partition))
        log = self._forget(topic, partition)
        for directory in self.directories:
            if directory.is_online and (topic, partition) in directory.unopened:
                directory.unopened.remove((topic, partition))
                folder = f"{directory.path}/{folder_name(topic, partition)}"
                folder = self.futures.incomplete.pop((topic, partition), folder)
                path = self._move_aside(folder, topic, partition, FolderKind.STRAY, None)
                logger.warning("Log is renamed: partition=%s path=%s", folder_name(topic, partition), path)
        if log is not None:
            path = self._move_aside(log.directory, topic, partition, FolderKind.DELETED, log)
            if path is not None:
                self.remove_later(path, log.config.file_delete_delay_ms)
        self._remove_half_made(topic, partition)

    def _remove_half_made(self, topic: str, partition: int) -> None:
        """No record was ever appended to what a failed try to make the log has left."""
        directory = self._half_made.pop((topic, partition), None)
        folder = "" if directory is None else f"{directory.path}/{folder_name(topic, partition)}"
        if directory is not None and directory.is_online and self._files.exists(folder):
            path = self._move_aside(folder, topic, partition, FolderKind.DELETED, None)
            if path is not None:
                self.remove_later(path, 0)

    def replace(self, log: Log, future: FutureLog) -> str | None:
        """The copy becomes the log, in its own directory, and `log` a folder to remove: its path, None when its
        directory refused that. OSError of the copy's directory leaves everything as it was.
        """
        self._check_open()
        assert future.log is not None, "a copy that takes over is open"
        future.log.become(f"{future.directory.path}/{log.name}", log)
        self.futures.complete(future.key)
        self._forget(log.topic, log.partition)
        self._add(future.log)
        path = f"{log.directory.rpartition('/')[0]}/{log.name}.{future.unique_id}{FolderKind.DELETED.value}"
        try:
            log.rename_directory(path)
        except OSError as error:
            # The note in the copy's folder tells the next start which of the two it is.
            self.on_error(log.directory, error)
            return None
        return path

    def discard(self, path: str, topic: str, partition: int) -> None:
        """A copy is of no use any more."""
        moved = self._move_aside(path, topic, partition, FolderKind.DELETED, None)
        if moved is not None:
            self.remove_later(moved, 0)

    # Failing

    def on_error(self, path: str, error: OSError) -> None:
        """`error` came from the disk that has `path`: the log directory goes offline if that says so much."""
        directory = self.directories.directory_of(path)
        if directory is None or not directory.is_online:
            return
        if leaves_directory_usable(error):
            self._complain(directory, error)
        else:
            self._fail(directory, error)

    # Stopping

    async def close(
        self,
        loop: AbstractEventLoop,
        *,
        broker_epoch: BrokerEpoch = NO_BROKER_EPOCH,
        high_watermarks: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Sync and close every log and write the checkpoints; then mark the stop as clean.

        Nothing else may use the logs while this runs, and from now on whatever would change one raises ClosedError. A
        directory that fails meanwhile gets no mark. The directories stay locked: metadata in one of them
        may still change.
        """
        self._is_closed = True
        if self._is_loaded:
            offsets = {} if high_watermarks is None else high_watermarks
            await asyncio.gather(
                *(self._close_directory(loop, one, broker_epoch, offsets) for one in self.directories.online)
            )
        for future in self.futures:
            future.close_files()
        self._logs.clear()
        self._log_counts.clear()

    # Helpers

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("The log directories of this node are closed.")

    def _without_strays(
        self,
        directory: LogDirectory,
        folders: Iterable[LogFolder],
        is_stray: Callable[[str, int, TopicId | None], bool],
    ) -> list[LogFolder]:
        kept: list[LogFolder] = []
        strays: Counter[str] = Counter()
        for folder in folders:
            if folder.has_unidentified_records or is_stray(folder.topic, folder.partition, folder.topic_id):
                self._move_aside(folder.path, folder.topic, folder.partition, FolderKind.STRAY, None)
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
        for first in range(0, len(folders), _LOGS_PER_JOB):
            some = folders[first : first + _LOGS_PER_JOB]
            configs = {folder.topic: config_of(folder.topic) for folder in some}
            settings = self._open_settings(configs, is_clean=directory.has_clean_shutdown)
            opened = await run_unbroken(loop, open_logs, self._files, directory, some, settings)
            for folder, log in zip(some, opened, strict=True):
                self._register(PostponedLog(directory=directory, folder=folder, settings=settings), log)
            # Recovery may have cut them.
            self.limit_cleaned_ends([log for log in opened if isinstance(log, Log) and log.damage is None])
        logger.info(
            "Loaded logs: directory=%s logs=%d recovered=%s seconds=%.3f",
            directory.path,
            len(folders),
            not directory.has_clean_shutdown,
            loop.time() - started,
        )

    def _open_settings(self, configs: Mapping[str, LogConfig], *, is_clean: bool) -> OpenSettings:
        return OpenSettings(
            configs=configs,
            now_ms=self._steady_clock_ms(),
            producer_id_expiration_ms=self._producer_id_expiration_ms,
            random=self._random,
            is_clean=is_clean,
        )

    async def open_postponed(self, loop: AbstractEventLoop) -> None:
        """Open what could not be opened at `load`, and what is being repaired: then `get_or_create` finds it."""
        for key, postponed in self.offline.postponed().items():
            opening, log = await self._open_again(loop, postponed)
            if self.offline.postponed_log(key) is postponed:
                self.offline.on_reopened(key)
                opening.directory.unopened.discard(key)
                if log is not None:
                    self._register(opening, log)
                    if isinstance(log, Log) and log.damage is None:
                        self.limit_cleaned_ends([log])

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
            if self.offline.postponed_log((folder.topic, folder.partition)) is not opening or (
                folder.error is None and not self._without_strays(directory, [folder], self._is_stray)
            ):
                return opening, None
            opening = replace(opening, folder=folder)
        (log,) = await run_unbroken(loop, open_logs, self._files, directory, [folder], opening.settings)
        return opening, log

    def _register(self, opening: PostponedLog, log: Log | CorruptData | OSError) -> None:
        directory = opening.directory
        key = opening.folder.topic, opening.folder.partition
        if isinstance(log, OSError):
            self.on_error(directory.path, log)
        if directory.error is not None:
            self.offline.fail(key, directory.error)
        elif isinstance(log, Log):
            self._add(log)
            if opening.cut_offset is not None:
                # A cut that fails leaves a damaged log, which is cut again.
                with suppress(OSError, CorruptData):
                    self.truncate({log: opening.cut_offset})
            if log.damage is not None:
                logger.error("Log is damaged: partition=%s damage=%s", log.name, log.damage)
        elif isinstance(log, CorruptData) or (later := opening.after(log)) is None:
            logger.error("Failed to open log: partition=%s reason=%s", folder_name(*key), log)
            self.offline.fail(key, OSError(EIO, str(log)))
            directory.unopened.add(key)
        else:
            if later.failed_reads:
                logger.warning("Failed to open log, retrying: partition=%s reason=%s", folder_name(*key), log)
            directory.unopened.add(key)
            self.offline.postpone(key, log, later)

    def _identify(self, log: Log, topic_id: TopicId) -> None:
        try:
            log.identify(topic_id)
        except OSError as error:
            self.on_error(log.directory, error)
            raise

    def _add(self, log: Log) -> None:
        self._logs.setdefault(log.topic, {})[log.partition] = log
        self._log_counts[log.directory.rpartition("/")[0]] += 1

    def _forget(self, topic: str, partition: int) -> Log | None:
        self.offline.forget((topic, partition))
        partitions = self._logs.get(topic, {})
        log = partitions.pop(partition, None)
        if log is not None:
            self._log_counts[log.directory.rpartition("/")[0]] -= 1
            if not partitions:
                del self._logs[topic]
        return log

    def _move_aside(self, path: str, topic: str, partition: int, kind: FolderKind, log: Log | None) -> str | None:
        """The new path of the folder, or None when the disk fails."""
        unique_id = UUID(int=self._random.getrandbits(128), version=4)
        target = f"{path.rpartition('/')[0]}/{moved_folder_name(topic, partition, kind, unique_id)}"
        try:
            if log is None:
                self._files.rename(path, target)
            else:
                log.rename_directory(target)
        except OSError as error:
            self.on_error(path, error)
            return None
        self._moved_in.add(path.rpartition("/")[0])
        logger.debug("Log is renamed: partition=%s path=%s", folder_name(topic, partition), target)
        return target

    def remove_later(self, path: str, delay_ms: int) -> None:
        """A folder `….-delete`, by housekeeping."""
        self.removed_folders.append(RemovedFolder(path=path, delay_ms=delay_ms))

    def _complain(self, directory: LogDirectory, error: OSError) -> None:
        now_ms = self._steady_clock_ms()
        last_ms = self._last_complaint_ms.get(directory.path)
        if last_ms is None or abs(now_ms - last_ms) >= _COMPLAINT_INTERVAL_MS:
            self._last_complaint_ms[directory.path] = now_ms
            logger.error("Error while accessing log directory: path=%s error=%s", directory.path, error)

    def _fail(self, directory: LogDirectory, error: OSError) -> None:
        if not directory.is_online:
            return
        directory.fail(error)
        logger.error("Stopping serving logs in dir: path=%s error=%s", directory.path, error)
        for log in self.logs_in(directory):
            self._forget(log.topic, log.partition)
            self.offline.fail((log.topic, log.partition), error)
            log.close_files()
        self.futures.end_in(directory)
        if self.on_directory_failure is not None:
            self.on_directory_failure(directory.path, error)

    async def _close_directory(
        self,
        loop: AbstractEventLoop,
        directory: LogDirectory,
        broker_epoch: BrokerEpoch,
        high_watermarks: Mapping[TopicPartition, int],
    ) -> None:
        logs = self.logs_in(directory)
        try:
            for first in range(0, len(logs), _LOGS_PER_JOB):
                await run_unbroken(loop, close_logs, logs[first : first + _LOGS_PER_JOB])
            write_down_closed(directory, logs, broker_epoch, high_watermarks)
        except OSError as error:
            if is_passing(error):
                logger.error("Failed to write clean shutdown file: path=%s error=%s", directory.path, error)
            else:
                self._fail(directory, error)


def _being_repaired(key: TopicPartition) -> OSError:
    return ReadError(EIO, f"the log of {folder_name(*key)} is being repaired")
