"""What is done to all logs again and again: syncs, checkpoints, retention, removal of folders, expiry of producers.

Kafka: `LogManager.cleanupLogs`, `flushDirtyLogs`, `checkpointLogRecoveryOffsets`.

One task for each, on the loop's time. What goes over all logs does so in slices, so that requests get their turn; what
waits for the disk is done in the executor. The intervals are those of Apache Kafka, but that due syncs are looked for
at least every second, whatever `log.flush.scheduler.interval.ms` says: its default is never.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, TaskGroup
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Struct

from ...protocol.errors import CorruptData
from ..disk.files import Files
from ..disk.rules.disk_errors import is_passing
from ..disk.shielded_call import run_unbroken
from ..log.log import Log
from ..log.rules.config import MAX_INT64
from .flusher import Flusher
from .log_closing import recovery_point_to_checkpoint, start_offset_to_checkpoint
from .log_directory import LogDirectory
from .log_manager import LogManager
from .rules.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS

logger = logging.getLogger(__name__)

# Items handled in one turn of the loop: some tenths of a millisecond.
_SLICE: Final = 200
_FLUSH_CHECK_MS_MAX: Final = 1000
_FLUSH_CHECK_MS_MIN: Final = 10
_REMOVAL_CHECK_MS: Final = 1000


class HousekeepingConfig(Struct, frozen=True, kw_only=True):
    """Kafka's property names and defaults."""

    # How long after the start the first round of anything is.
    log_initial_task_delay_ms: int = 30_000
    # Upper bound of the time between looks for logs whose flush.ms is over.
    log_flush_scheduler_interval_ms: int = MAX_INT64
    # After an unclean stop, what was synced before the last checkpoint of it is not read again.
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    # DeleteRecords that came after the last checkpoint of it are undone by an unclean stop.
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    log_retention_check_interval_ms: int = 300_000
    producer_id_expiration_check_interval_ms: int = 600_000


class LogHousekeeping:
    """`high_watermark_of` is what the broker knows of a log: retention never goes beyond it. `on_deleted` receives logs
    whose log start offset moved."""

    def __init__(
        self,
        manager: LogManager,
        flusher: Flusher,
        files: Files,
        loop: AbstractEventLoop,
        *,
        config: HousekeepingConfig,
        steady_clock_ms: Callable[[], int],
        high_watermark_of: Callable[[Log], int],
        on_deleted: Callable[[Log], None],
    ) -> None:
        self._manager = manager
        self._flusher = flusher
        self._files = files
        self._loop = loop
        self._config = config
        self._steady_clock_ms = steady_clock_ms
        self._high_watermark_of = high_watermark_of
        self._on_deleted = on_deleted
        # Since when a log has had something to sync.
        self._dirty_since: dict[Log, float] = {}
        # (due on the loop's clock, path), oldest first.
        self._folders_to_remove: list[tuple[float, str]] = []

    async def run(self) -> None:
        """Until cancelled."""
        config = self._config
        async with TaskGroup() as tasks:
            tasks.create_task(self._flush_due_logs_forever())
            tasks.create_task(self._every(_REMOVAL_CHECK_MS, self.remove_due_files, initial_delay_ms=0))
            for interval_ms, action in (
                (config.log_flush_offset_checkpoint_interval_ms, self.checkpoint_recovery_points),
                (config.log_flush_start_offset_checkpoint_interval_ms, self.checkpoint_start_offsets),
                (config.replica_high_watermark_checkpoint_interval_ms, self.checkpoint_high_watermarks),
                (config.log_retention_check_interval_ms, self.apply_retention),
                (config.producer_id_expiration_check_interval_ms, self.expire_producers),
            ):
                tasks.create_task(self._every(interval_ms, action, initial_delay_ms=config.log_initial_task_delay_ms))

    # Syncing

    async def flush_due_logs(self) -> int:
        """Sync logs whose `flush.ms` is over, segments that were rolled, and logs whose start is not synced and must be
        kept; milliseconds until the next look.
        """
        now = self._loop.time()
        shortest_ms = _FLUSH_CHECK_MS_MAX
        dirty_since: dict[Log, float] = {}
        for number, log in enumerate(list(self._manager.logs)):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            if (log.unflushed_records <= 0 and log.is_folder_synced) or not self._is_present(log):
                continue
            flush_ms = log.config.flush_ms
            if flush_ms < MAX_INT64:
                since = dirty_since[log] = self._dirty_since.get(log, now)
                shortest_ms = min(shortest_ms, max(flush_ms // 2, _FLUSH_CHECK_MS_MIN))
                if (now - since) * 1000 >= flush_ms:
                    del dirty_since[log]
                    self._flush(log, log.log_end_offset)
                    continue
            if log.recovery_point < log.active_segment_base_offset:
                self._flush(log, log.active_segment_base_offset)
            elif log.log_start_offset > (log.recovery_point if log.is_folder_synced else 0):
                self._flush(log, log.log_end_offset)
        self._dirty_since = dirty_since
        return min(shortest_ms, self._config.log_flush_scheduler_interval_ms)

    # Checkpoints

    async def checkpoint_recovery_points(self) -> None:
        # What a full disk left undone.
        self._manager.limit_cleaned_ends()
        for directory in self._manager.directories.online:
            await self._checkpoint(directory, RECOVERY_POINTS, partial(recovery_point_to_checkpoint, directory))

    async def checkpoint_start_offsets(self) -> None:
        for directory in self._manager.directories.online:
            await self._checkpoint(directory, LOG_START_OFFSETS, start_offset_to_checkpoint)

    async def checkpoint_high_watermarks(self) -> None:
        for directory in self._manager.directories.online:
            await self._checkpoint(directory, HIGH_WATERMARKS, self._high_watermark_of)

    # Deleting

    async def apply_retention(self) -> None:
        await self._make_starts_last()
        now_ms = self._steady_clock_ms()
        partition_count = segment_count = 0
        for log in list(self._manager.logs):
            if not self._is_present(log):
                continue
            count = 0
            # What is appended meanwhile has its turn in the next round.
            end_offset = log.log_end_offset
            try:
                # Of a log with producers a call deletes some; where a snapshot is missing, it makes it and deletes one.
                while self._is_present(log):
                    deleted = log.delete_old_segments(
                        min(self._high_watermark_of(log), end_offset),
                        now_ms,
                        lasting_start_offset=self._lasting_start_offset(log),
                    )
                    if deleted == 0:
                        break
                    count += deleted
                    await asyncio.sleep(0)
            except OSError as error:
                self._manager.on_error(log.directory, error)
            except CorruptData as error:
                # What cannot be judged stays; the other logs have their turn.
                logger.error("Failed to delete segments: partition=%s reason=%s", log.name, error)
            if count:
                logger.debug("Deleted segments: partition=%s count=%d start=%d", log.name, count, log.log_start_offset)
                partition_count += 1
                segment_count += count
                self._on_deleted(log)
            await asyncio.sleep(0)
        if segment_count:
            logger.info("Deleted segments: partitions=%d segments=%d", partition_count, segment_count)

    async def _make_starts_last(self) -> None:
        """Of logs with a tier: one whose start is forgotten begins with what the tier has still, and what was deleted
        behind that without a copy is missing between the two."""
        for directory in self._manager.directories.online:
            if any(
                log.config.remote_storage_enable and log.log_start_offset > self._lasting_start_offset(log)
                for log in self._manager.logs_in(directory)
            ):
                await self._checkpoint(directory, LOG_START_OFFSETS, start_offset_to_checkpoint)

    def _lasting_start_offset(self, log: Log) -> int:
        """Of a log without a tier its segments tell where it begins."""
        if not log.config.remote_storage_enable:
            return MAX_INT64
        directory = self._manager.directories.directory_of(log.directory)
        return 0 if directory is None else directory.checkpointed[LOG_START_OFFSETS].get((log.topic, log.partition), 0)

    async def remove_due_files(self) -> None:
        """Remove files of deleted segments and folders of deleted logs whose `file.delete.delay.ms` is over."""
        now_ms = self._steady_clock_ms()
        for number, log in enumerate(list(self._manager.logs)):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            paths = log.take_removable_files(now_ms)
            if not paths or not self._is_present(log):
                continue
            if not await self._remove(log.directory, partial(_remove_files, self._files, paths)):
                log.put_back_removable_files([path for path in paths if self._files.exists(path)], now_ms)
        now = self._loop.time()
        removed = self._manager.removed_folders
        while removed:
            folder = removed.popleft()
            self._folders_to_remove.append((now + folder.delay_ms / 1000, folder.path))
        due = [path for time, path in self._folders_to_remove if time <= now]
        self._folders_to_remove = [(time, path) for time, path in self._folders_to_remove if time > now]
        for path in due:
            if not await self._remove(path, partial(_remove_folder, self._files, path)):
                self._folders_to_remove.append((now, path))

    async def expire_producers(self) -> None:
        now_ms = self._steady_clock_ms()
        for number, log in enumerate(list(self._manager.logs)):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            log.producers.expire(now_ms)

    # Helpers

    async def _every(self, interval_ms: int, action: Callable[[], Awaitable[None]], *, initial_delay_ms: int) -> None:
        await asyncio.sleep(initial_delay_ms / 1000)
        while True:
            await action()
            await asyncio.sleep(interval_ms / 1000)

    async def _flush_due_logs_forever(self) -> None:
        while True:
            next_look_ms = await self.flush_due_logs()
            await asyncio.sleep(next_look_ms / 1000)

    def _flush(self, log: Log, end_offset: int) -> None:
        def on_flushed(error: OSError | None) -> None:
            if error is not None:
                self._manager.on_error(log.directory, error)

        self._flusher.request(log, end_offset, on_flushed)

    def _is_present(self, log: Log) -> bool:
        """Whether it was not deleted or taken offline while others had their turn."""
        return self._manager.get(log.topic, log.partition) is log

    async def _checkpoint(self, directory: LogDirectory, name: str, offset_of: Callable[[Log], int | None]) -> None:
        async with directory.checkpoint(name) as write:
            for (topic, partition), unopened_offset in directory.offsets_of_unopened(name).items():
                write.add(topic, partition, unopened_offset)
            for number, log in enumerate(self._manager.logs_in(directory)):
                if number % _SLICE == 0:
                    await asyncio.sleep(0)
                offset = offset_of(log)
                if offset is not None and self._is_present(log):
                    write.add(log.topic, log.partition, offset)
            try:
                await write.replace_file(self._loop)
            except OSError as error:
                self._manager.on_error(directory.path, error)

    async def _remove(self, path: str, remove: Callable[[], None]) -> bool:
        """False where the disk refused it for now: it is to be tried again."""
        try:
            await run_unbroken(self._loop, remove)
        except FileNotFoundError:
            # The folder was renamed meanwhile, and goes as a whole later.
            pass
        except OSError as error:
            self._manager.on_error(path, error)
            return not is_passing(error)
        return True


def _remove_files(files: Files, paths: list[str]) -> None:
    for path in paths:
        files.remove(path)


def _remove_folder(files: Files, path: str) -> None:
    # A loss of power must not take its renaming back, and leave a log without some of its segments.
    files.sync_directory(path.rpartition("/")[0])
    files.remove_tree(path)
    logger.debug("Deleted log: path=%s", path)
