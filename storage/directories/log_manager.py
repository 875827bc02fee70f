"""The logs of this node, in its log directories. Kafka: `LogManager`.

Order of use: `load` (opens every log), then `get_or_create`, `delete` and so on, `close`. All on the loop's thread.
Opening is `LogOpening`'s, and what an error of the disk does to its log directory `DirectoryFailures`'. What needs time
and repetition is done by `log_housekeeping`.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from errno import EIO
from random import Random
from uuid import UUID

from ...protocol.errors import CorruptData
from ...protocol.ids import NO_BROKER_EPOCH, BrokerEpoch, TopicId
from ..disk.files import Files
from ..disk.rules.disk_errors import ClosedError, is_passing
from ..log.log import DEFAULT_PRODUCER_ID_EXPIRATION_MS, Log
from ..log.rules.config import LogConfig
from ..log.rules.producer_entry import ProducerEntry
from ..log.rules.tiered_history import TieredHistory
from .directory_choice import DirectoryChoice
from .directory_failures import DirectoryFailures
from .future_log import FutureLog
from .future_logs import FutureLogs
from .log_closing import close_logs, write_down_closed
from .log_directories import LogDirectories
from .log_directory import LogDirectory
from .log_jobs import DEFAULT_RECOVERY_THREADS, LogJobs
from .log_loading import OpenSettings
from .log_opening import LogOpening, being_repaired
from .offline_logs import OfflineLogs
from .online_logs import OnlineLogs
from .removed_folders import RemovedFolders
from .rules.checkpoints import TopicPartition
from .rules.folder_names import FolderKind, RemovedFolder, folder_name

logger = logging.getLogger(__name__)


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
        recovery_threads: int = DEFAULT_RECOVERY_THREADS,
        on_directory_failure: Callable[[str, OSError], None] | None = None,
    ) -> None:
        """`directories` are locked and formatted before `load`. `recovery_threads` are for each of them, see `LogJobs`.

        `on_directory_failure` is told the path of a log directory right after its logs have left `logs`.
        """
        self.directories = directories
        self._files = files
        self._random = random
        self._steady_clock_ms = steady_clock_ms
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._recovery_threads = recovery_threads
        self._online = OnlineLogs()
        self.directory_choice = DirectoryChoice(directories, self._online.count_in)
        self.offline = OfflineLogs()
        self.futures = FutureLogs(files)
        self._failures = DirectoryFailures(
            directories,
            self._online,
            self.offline,
            self.futures,
            steady_clock_ms=steady_clock_ms,
            on_directory_failure=on_directory_failure,
        )
        self._removed = RemovedFolders(files, self._failures, random)
        self._opening = LogOpening(
            files,
            directories,
            self._online,
            self.offline,
            self.futures,
            self._removed,
            self._failures,
            settings_of=self._open_settings,
            truncate=self.truncate,
            limit_cleaned_ends=self.limit_cleaned_ends,
            delete_delay_ms=(default_config or LogConfig()).file_delete_delay_ms,
            recovery_threads=lambda: self._recovery_threads,
        )
        # In this process.
        self._set_aside: set[TopicPartition] = set()
        # Where the last try to make a log failed.
        self._half_made: dict[TopicPartition, LogDirectory] = {}
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
        """`LogOpening.load`."""
        await self._opening.load(loop, config_of=config_of, is_stray=is_stray, assigned_directory=assigned_directory)
        self._is_loaded = True

    async def open_postponed(self, loop: AbstractEventLoop) -> None:
        """Open what could not be opened at `load`, and what is being repaired: then `get_or_create` finds it."""
        await self._opening.open_postponed(loop)

    # The logs

    @property
    def logs(self) -> Iterator[Log]:
        return iter(self._online)

    def logs_in(self, directory: LogDirectory) -> list[Log]:
        return self._online.in_directory(directory)

    def get(self, topic: str, partition: int) -> Log | None:
        return self._online.get(topic, partition)

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
            self._removed.sync()
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
        self._online.add(log)
        return log

    def set_producer_id_expiration(self, expiration_ms: int) -> None:
        """`producer.id.expiration.ms` has changed."""
        if expiration_ms == self._producer_id_expiration_ms:
            return
        self._producer_id_expiration_ms = expiration_ms
        for log in self.logs:
            log.producers.expiration_ms = expiration_ms

    def set_recovery_threads(self, count: int) -> None:
        """`num.recovery.threads.per.data.dir` has changed."""
        self._recovery_threads = count

    def update_config(self, topic: str, config: LogConfig) -> None:
        for log in self._online.of_topic(topic):
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

    def not_counted_on(self) -> list[TopicPartition]:
        """Those whose folders could not be opened, for good or for seconds: `begin_repair` sets them aside.

        Without those that were set aside before: folders would pile up on a disk that goes on to fail.
        """
        return [
            key
            for directory in self.directories
            if directory.is_online
            for key in directory.unopened
            if key not in self._set_aside and not self.offline.is_retried(key)
        ]

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
            self._set_aside.add(key)
            self.delete(topic, partition)
            self.offline.refuse(key, being_repaired(key), is_new=False)
            return True
        if log.damage is not None:
            damage_offset = log.damage.offset
        if damage_offset is None:
            return False
        self._opening.reopen(log, damage_offset)
        return True

    def delete(self, topic: str, partition: int) -> None:
        """Rename the folder to `….-delete`; it goes after `file.delete.delay.ms`. Nothing when there is no log.

        A log that could not be opened becomes `….-stray`: its topic id is unknown.
        """
        self._check_open()
        self.futures.end((topic, partition))
        log = self._forget(topic, partition)
        self._opening.set_unopened_aside(topic, partition)
        if log is not None:
            path = self._removed.move_aside(log.directory, topic, partition, FolderKind.DELETED, log)
            if path is not None:
                self._removed.remove_later(path, log.config.file_delete_delay_ms)
        self._remove_half_made(topic, partition)

    def _remove_half_made(self, topic: str, partition: int) -> None:
        """No record was ever appended to what a failed try to make the log has left."""
        directory = self._half_made.pop((topic, partition), None)
        folder = "" if directory is None else f"{directory.path}/{folder_name(topic, partition)}"
        if directory is not None and directory.is_online and self._files.exists(folder):
            path = self._removed.move_aside(folder, topic, partition, FolderKind.DELETED)
            if path is not None:
                self._removed.remove_later(path, 0)

    def replace(self, log: Log, future: FutureLog) -> str | None:
        """The copy becomes the log, in its own directory, and `log` a folder to remove: its path, None when its
        directory refused that. OSError of the copy's directory leaves everything as it was.
        """
        self._check_open()
        assert future.log is not None, "a copy that takes over is open"
        future.log.become(f"{future.directory.path}/{log.name}", log)
        self.futures.complete(future.key)
        self._forget(log.topic, log.partition)
        self._online.add(future.log)
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
        moved = self._removed.move_aside(path, topic, partition, FolderKind.DELETED)
        if moved is not None:
            self._removed.remove_later(moved, 0)

    def remove_later(self, path: str, delay_ms: int) -> None:
        """A folder `….-delete`, by housekeeping."""
        self._removed.remove_later(path, delay_ms)

    @property
    def removed_folders(self) -> deque[RemovedFolder]:
        """Folders to remove, oldest first: housekeeping takes them."""
        return self._removed.due

    # Failing

    def on_error(self, path: str, error: OSError) -> None:
        """`error` came from the disk that has `path`: the log directory goes offline if that says so much."""
        self._failures.on_error(path, error)

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
        self._online.clear()

    # Helpers

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("The log directories of this node are closed.")

    def _open_settings(self, configs: Mapping[str, LogConfig], *, is_clean: bool) -> OpenSettings:
        return OpenSettings(
            configs=configs,
            now_ms=self._steady_clock_ms(),
            producer_id_expiration_ms=self._producer_id_expiration_ms,
            random=self._random,
            is_clean=is_clean,
        )

    def _forget(self, topic: str, partition: int) -> Log | None:
        self.offline.forget((topic, partition))
        return self._online.remove(topic, partition)

    def _identify(self, log: Log, topic_id: TopicId) -> None:
        try:
            log.identify(topic_id)
        except OSError as error:
            self.on_error(log.directory, error)
            raise

    async def _close_directory(
        self,
        loop: AbstractEventLoop,
        directory: LogDirectory,
        broker_epoch: BrokerEpoch,
        high_watermarks: Mapping[TopicPartition, int],
    ) -> None:
        logs = self.logs_in(directory)
        try:
            with LogJobs(loop, slices_at_once=self._recovery_threads) as jobs:
                await close_logs(jobs, logs)
            write_down_closed(directory, logs, broker_epoch, high_watermarks)
        except (OSError, CorruptData) as error:
            if isinstance(error, CorruptData) or is_passing(error):
                logger.error("Failed to write clean shutdown file: path=%s error=%s", directory.path, error)
            else:
                self._failures.fail(directory, error)
