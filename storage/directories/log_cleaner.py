"""Compacts the logs of a node, the dirtiest first, and puts what comes of it into their places. Kafka: `LogCleaner`.

The reading and writing is the `Compactor`'s; here is decided which log is next, its segments are swapped, and how far
it is compacted is written down. A log that cannot be compacted is *uncleanable*: it is named in the log and left alone
until it is cut, repaired or the node restarts; the others have their turn. A worker that was killed says nothing about
the log: it is compacted again, at most three times in a row, as it may be what the worker has too little memory for.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final

from msgspec import Struct

from ...protocol.errors import CorruptData
from ..compaction.cleanable import Cleanable, find_cleanable, plan_compaction
from ..compaction.compactor import Compactor
from ..compaction.rules.job import CleanedSegment, Compacted, CompactionJob
from ..disk.files import Files
from ..disk.rules.disk_errors import is_passing
from ..disk.shielded_call import run_unbroken
from ..log.log import Log
from ..log.segment_swap import SwapSettled
from ..workers.worker_process import WorkerEnded
from .log_directory import LogDirectory
from .log_manager import LogManager
from .rules.checkpoints import CLEANER_OFFSETS, TopicPartition
from .rules.cleaner_figures import CleanerFigures

logger = logging.getLogger(__name__)

_SLICE: Final = 200
"""Logs that are looked at in one turn of the loop."""
_WORKERS_MAX: Final = 3
"""Workers that end, one after the other, in the middle of the same log."""


class LogCleanerConfig(Struct, frozen=True, kw_only=True):
    """Kafka's property names and defaults."""

    log_cleaner_enable: bool = True
    # Compactions at a time, each in a process of its own.
    log_cleaner_threads: int = 1
    # For keys and their offsets, of all compactions together.
    log_cleaner_dedupe_buffer_size: int = 128 * 1024 * 1024
    # What all of them read and write together.
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max
    # How long after a look at all logs that found nothing to do the next one is.
    log_cleaner_backoff_ms: int = 15_000


class LogCleaner:
    def __init__(
        self,
        manager: LogManager,
        files: Files,
        loop: asyncio.AbstractEventLoop,
        compactor: Compactor,
        *,
        config: Callable[[], LogCleanerConfig],
        steady_clock_ms: Callable[[], int],
        stable_offset_of: Callable[[Log], int],
        on_corrupt: Callable[[Log], None] = lambda _: None,
    ) -> None:
        """`stable_offset_of` is the last stable offset of a log: below it nothing is cut, or still undecided, ever.

        `on_corrupt` is to look at a log in which something is corrupt, and to call `retry` when that is repaired.
        """
        self._manager = manager
        self._files = files
        self._loop = loop
        self._compactor = compactor
        self._config = config
        self._steady_clock_ms = steady_clock_ms
        self._stable_offset_of = stable_offset_of
        self._on_corrupt = on_corrupt
        self._in_progress: set[TopicPartition] = set()
        self._uncleanable: dict[Log, str] = {}
        # How many workers have ended while they compacted it, since one came to its end.
        self._ended_workers: dict[Log, int] = {}
        self.figures = CleanerFigures()

    @property
    def uncleanable(self) -> dict[str, str]:
        """Why, by the name of the partition."""
        return {log.name: reason for log, reason in self._uncleanable.items() if self._is_present(log)}

    def uncleanable_in(self, directory: LogDirectory) -> list[Log]:
        return [
            log for log in self._uncleanable if self._is_present(log) and log.directory.startswith(directory.path + "/")
        ]

    async def run(self) -> None:
        """Until cancelled."""
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                config = self._config()
                found = None
                if config.log_cleaner_enable and len(running) < config.log_cleaner_threads:
                    found = await self._find_dirtiest()
                if found is not None:
                    running.add(self._loop.create_task(self._clean_one(*found)))
                elif running:
                    _, running = await asyncio.wait(
                        running, timeout=config.log_cleaner_backoff_ms / 1000, return_when=asyncio.FIRST_COMPLETED
                    )
                else:
                    await asyncio.sleep(config.log_cleaner_backoff_ms / 1000)
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
            await self._compactor.close()

    async def clean_dirtiest(self) -> bool:
        """Compact the log that needs it most; False when none does."""
        found = await self._find_dirtiest()
        if found is None:
            return False
        await self._clean_one(*found)
        return True

    async def _clean_one(self, log: Log, cleanable: Cleanable) -> None:
        try:
            await self._clean(log, cleanable)
        except Exception as error:
            # Of our own making: it must not end the others' turns.
            logger.exception("Uncleanable log: partition=%s", log.name)
            self._uncleanable[log] = repr(error)
        finally:
            self._in_progress.discard((log.topic, log.partition))

    # Which log

    async def _find_dirtiest(self) -> tuple[Log, Cleanable] | None:
        """It is in progress then."""
        now_ms = self._steady_clock_ms()
        figures = self.figures
        figures.looked_s = self._loop.time()
        dirty_ratio_max, overdue_ms_max = 0.0, 0
        dirtiest: tuple[Log, Cleanable] | None = None
        for number, log in enumerate(list(self._manager.logs)):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            if not log.config.is_compacted or not self._may_be_cleaned(log):
                continue
            directory = self._directory_of(log)
            try:
                cleanable = find_cleanable(
                    log,
                    cleaned_end=directory.checkpointed[CLEANER_OFFSETS].get((log.topic, log.partition)),
                    stable_offset=self._stable_offset_of(log),
                    now_ms=now_ms,
                )
            except (OSError, CorruptData) as error:
                self._give_up(log, error)
                continue
            dirty_ratio_max = max(dirty_ratio_max, cleanable.dirty_ratio)
            overdue_ms_max = max(overdue_ms_max, cleanable.overdue_ms)
            if cleanable.is_due(log.config.min_cleanable_dirty_ratio) and (
                dirtiest is None or cleanable.dirty_ratio > dirtiest[1].dirty_ratio
            ):
                dirtiest = log, cleanable
        figures.dirty_ratio_max, figures.overdue_ms_max = dirty_ratio_max, overdue_ms_max
        if dirtiest is None or not self._may_be_cleaned(dirtiest[0]):
            return None
        self._in_progress.add((dirtiest[0].topic, dirtiest[0].partition))
        return dirtiest

    def _may_be_cleaned(self, log: Log) -> bool:
        return (
            self._is_present(log)
            and log.damage is None
            and log not in self._uncleanable
            and (log.topic, log.partition) not in self._in_progress
            # A copy of what is compacted while it is copied may lack a tombstone, and not what that deleted.
            and (log.topic, log.partition) not in self._manager.futures
        )

    # One log

    async def _clean(self, log: Log, cleanable: Cleanable) -> None:
        config = self._config()
        threads = max(config.log_cleaner_threads, 1)
        began_s = self._loop.time()
        cut_count = log.swap.cut_count
        try:
            job = plan_compaction(
                log,
                cleanable,
                now_ms=self._steady_clock_ms(),
                map_bytes=config.log_cleaner_dedupe_buffer_size // threads,
            )
        except (OSError, CorruptData) as error:
            self._give_up(log, error)
            return
        bases = [segment.base_offset for segment in job.segments]
        try:
            compacted = await self._compact(log, job, cut_count, config.log_cleaner_io_max_bytes_per_second / threads)
        except (OSError, CorruptData, WorkerEnded) as error:
            # Files that were deleted under the hands of who reads them are no failure.
            if self._is_present(log) and log.swap.can_replace(bases, cut_count):
                self._give_up(log, error)
            compacted = None
        if compacted is None:
            self._remove_cleaned(log)
            return
        self._ended_workers.pop(log, None)
        seconds = self._loop.time() - began_s
        figures = compacted.figures
        self.figures.add(figures, seconds, job.map_bytes)
        logger.info(
            "Compacted log: partition=%s offsets=%d-%d read_bytes=%d written_bytes=%d records=%d kept=%d keys=%d "
            "seconds=%.3f",
            log.name,
            cleanable.dirty_offset,
            compacted.end_offset,
            figures.map_read_bytes + figures.read_bytes,
            figures.written_bytes,
            figures.read_records,
            figures.kept_records,
            figures.key_count,
            seconds,
        )

    async def _compact(self, log: Log, job: CompactionJob, cut_count: int, bytes_per_s: float) -> Compacted | None:
        """None when the log was cut meanwhile, or some of it deleted: what is left of the result is thrown away."""
        async with aclosing(self._compactor.compact(job, bytes_per_s=bytes_per_s)) as results:
            async for result in results:
                if isinstance(result, CleanedSegment):
                    if not await self._swap(log, result, cut_count):
                        return None
                elif self._is_present(log) and cut_count == log.swap.cut_count:
                    await self._write_down(log, result.end_offset)
                    return result
        return None

    def _remove_cleaned(self, log: Log) -> None:
        if self._is_present(log):
            # The next start does it too.
            with suppress(OSError):
                log.swap.remove_cleaned()

    async def _swap(self, log: Log, cleaned: CleanedSegment, cut_count: int) -> bool:
        swap = log.swap
        if not self._is_present(log) or not swap.can_replace(cleaned.replaced, cut_count):
            return False
        steps = swap.steps(
            cleaned.base_offset, cleaned.size_bytes, cleaned.replaced, log.config, clock_ms=self._steady_clock_ms
        )
        with suppress(SwapSettled):
            for _ in steps:
                await run_unbroken(self._loop, self._files.sync_directory, log.directory)
                if not self._is_present(log):
                    return False
            return True
        return False

    async def _write_down(self, log: Log, end_offset: int) -> None:
        directory = self._directory_of(log)
        async with directory.checkpoint(CLEANER_OFFSETS) as write:
            cleaned_ends = {**directory.checkpointed[CLEANER_OFFSETS], (log.topic, log.partition): end_offset}
            for key, offset in cleaned_ends.items():
                if self._manager.get(*key) is not None or key in directory.unopened:
                    write.add(*key, offset)
            await write.replace_file(self._loop)

    def _give_up(self, log: Log, error: OSError | CorruptData | WorkerEnded) -> None:
        if not self._is_present(log):
            return
        # A file that is gone from its folder is damage of this log; without the folder it is the directory's.
        is_damage = isinstance(error, CorruptData) or (
            isinstance(error, FileNotFoundError) and self._files.exists(log.directory)
        )
        if isinstance(error, OSError) and not is_damage:
            self._manager.on_error(log.directory, error)
            if is_passing(error):
                return
        if isinstance(error, WorkerEnded):
            ended = self._ended_workers[log] = self._ended_workers.get(log, 0) + 1
            if ended < _WORKERS_MAX:
                logger.warning("Compaction is tried again: partition=%s reason=%s", log.name, error)
                return
            del self._ended_workers[log]
        self._uncleanable[log] = str(error)
        logger.error("Uncleanable log: partition=%s reason=%s", log.name, error)
        if is_damage:
            self._on_corrupt(log)

    def retry(self, log: Log) -> None:
        """What made it uncleanable may be gone."""
        self._uncleanable.pop(log, None)

    def _is_present(self, log: Log) -> bool:
        return self._manager.get(log.topic, log.partition) is log

    def _directory_of(self, log: Log) -> LogDirectory:
        directory = self._manager.directories.directory_of(log.directory)
        assert directory is not None, "logs are in log directories"
        return directory
