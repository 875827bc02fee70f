"""Moves logs between the log directories of a node, while they are read and written (KIP-113, KIP-858).

Kafka: `ReplicaAlterLogDirsManager`, `ReplicaAlterLogDirsThread`.

| state     | what happens                                                          | leaves by                     |
|-----------|-----------------------------------------------------------------------|-------------------------------|
| copying   | the future log takes in what the log has, a piece at a time           | it has all: announced         |
| announced | goes on; the controller is told that the replica is in that directory | it has noted that: taken over |
| over      | taken over, cancelled, the log deleted, or the directory failed       |                               |

The controller knows before anything changes: a directory that fails from then on counts for the replica in it. While it
is told, the replica is where it was; if the move ends then, it is told again.

A log that is copied is not compacted: the copy could get a record from before a compaction, and lack the tombstone that
a later one took out. Retention goes on. What is cut off the log is cut off the copy before anything is added to it.
Into one directory one log is copied at a time, in the order in which that was asked.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from typing import Final, Protocol
from uuid import UUID

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ..disk.files import Files
from ..disk.shielded_call import run_unbroken
from ..log.file_slice import FetchData
from ..log.log import Log
from ..log.rules.config import MAX_INT64
from .future_log import FutureLog, SourceError, common_end, forget_replaced_directory
from .log_closing import start_offset_to_checkpoint
from .log_directory import LogDirectory
from .log_manager import LogManager
from .rules.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS, TopicPartition
from .rules.folder_names import FolderKind, folder_name, moved_folder_name
from .rules.move_throttle import MoveThrottle

logger = logging.getLogger(__name__)

_PIECE_BYTES: Final = 1024 * 1024
"""Read and appended by one job of the executor: some milliseconds of a disk."""
_FLUSH_BYTES: Final = 64 * 1024 * 1024
"""Copied between two syncs: what a kill makes the next start check again."""
_LAST_BYTES: Final = 512 * 1024
"""What may be copied in the turn of the loop in which a copy takes over, or one batch."""
_LOOK_S: Final = 0.5
"""Between two looks at what has been appended meanwhile, and whether the controller has noted the move."""
_RETRY_S: Final = 5.0
"""After a full disk, or a log that cannot be read."""


class Replicas(Protocol):
    """What the node knows of the replicas whose logs are moved."""

    def announce(self, key: TopicPartition) -> None:
        """Tell the controller anew where the replica is: `announced_directory` has changed."""

    def is_assigned(self, key: TopicPartition, directory_id: UUID) -> bool:
        """Whether the controller has noted that it is there."""

    def replace_log(self, log: Log, copy: Log) -> None:
        """The replica's log is `copy` from now on."""

    def high_watermark_of(self, log: Log) -> int: ...

    def check(self, log: Log, offset: int, size_bytes: int) -> None:
        """It could not be copied from `offset` on: see whether it is damaged."""


class LogMover:
    def __init__(
        self,
        manager: LogManager,
        files: Files,
        loop: asyncio.AbstractEventLoop,
        replicas: Replicas,
        *,
        bytes_per_s: Callable[[], float],
        steady_clock_ms: Callable[[], int],
        producer_id_expiration_ms: Callable[[], int],
        random: Random,
    ) -> None:
        """`bytes_per_s` is `replica.alter.log.dirs.io.max.bytes.per.second`, for all moves together."""
        self._manager = manager
        self._files = files
        self._loop = loop
        self._replicas = replicas
        self._throttle = MoveThrottle(bytes_per_s)
        self._throttling = asyncio.Lock()
        self._steady_clock_ms = steady_clock_ms
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._random = random
        self._turns: dict[LogDirectory, asyncio.Lock] = {}
        self._tasks: dict[FutureLog, asyncio.Task[None]] = {}
        self._wakes: dict[FutureLog, asyncio.Event] = {}
        self._changed = asyncio.Event()
        manager.futures.on_ended = self._on_ended
        # Tried again now and then: a disk is full, or a log unreadable.
        self._failed: set[FutureLog] = set()
        self.completed_count = 0
        self.moved_bytes = 0

    @property
    def moving_count(self) -> int:
        return len(self._manager.futures)

    @property
    def failed_count(self) -> int:
        """Moves that wait, because they cannot go on."""
        return len(self._failed)

    @property
    def lag_max(self) -> int:
        """Offsets that the copy furthest behind lacks."""
        return max((self.lag(future) for future in self._manager.futures), default=0)

    def lag(self, future: FutureLog) -> int:
        """Offsets that it lacks; -1 while its log is not there."""
        log = self._manager.get(*future.key)
        return -1 if log is None else max(log.log_end_offset - future.log_end_offset, 0)

    def announced_directory(self, key: TopicPartition) -> UUID | None:
        """Where the controller is to note a replica whose log is still elsewhere."""
        future = self._manager.futures.get(key)
        return future.directory.id if future is not None and future.is_announced else None

    def begin(self, log: Log, directory: LogDirectory) -> None:
        """Move it there, instead of wherever it is on its way to; nothing more if it is there.

        OSError when the folder for the copy cannot be made.
        """
        key = log.topic, log.partition
        underway = self._manager.futures.get(key)
        if underway is not None and underway.directory is directory:
            return
        if underway is not None:
            self.cancel(key)
        if self._manager.directories.directory_of(log.directory) is directory:
            return
        unique_id = UUID(int=self._random.getrandbits(128), version=4)
        path = f"{directory.path}/{moved_folder_name(*key, FolderKind.FUTURE, unique_id)}"
        try:
            # At once: if the process ends before it is this log's turn, the next start goes on with it.
            self._files.make_directory(path)
        except OSError as error:
            self._manager.on_error(directory.path, error)
            raise
        logger.info("Move of a log begins: partition=%s from=%s to=%s", log.name, log.directory, directory.path)
        self._manager.futures.add(FutureLog(key, directory, path, unique_id.hex))
        self._changed.set()

    def cancel(self, key: TopicPartition) -> None:
        """The log stays where it is. Nothing when it is not moved."""
        future = self._manager.futures.end(key)
        if future is not None:
            logger.info("Move of a log is cancelled: partition=%s path=%s", folder_name(*key), future.path)

    def wake(self) -> None:
        """The metadata have changed."""
        for future, event in self._wakes.items():
            if future.is_announced:
                event.set()

    def _on_ended(self, future: FutureLog) -> None:
        task = self._tasks.get(future)
        if task is None:
            self._clean_up(future)
        else:
            # It ends when no call uses the copy any more.
            task.cancel()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self._changed.clear()
                for future in self._manager.futures:
                    if future not in self._tasks:
                        self._wakes[future] = asyncio.Event()
                        self._tasks[future] = self._loop.create_task(self._move(future))
                await self._changed.wait()
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    # One move

    async def _move(self, future: FutureLog) -> None:
        try:
            while not future.is_over:
                await self._wait(future, await self._go_on(future))
        except Exception:
            # Of our own making: it must not end the others' turns.
            logger.exception("Move of a log failed: partition=%s", folder_name(*future.key))
            if not future.is_over:
                self._manager.futures.complete(future.key)
        finally:
            del self._tasks[future], self._wakes[future]
            self._failed.discard(future)
            # Else the node stops, and the next start goes on.
            if future.is_over:
                if future.is_announced:
                    self._replicas.announce(future.key)
                self._clean_up(future)

    async def _go_on(self, future: FutureLog) -> float:
        """As far as it can; how long until the next look at it."""
        log = self._manager.get(*future.key)
        if log is None or log.damage is not None:
            return _RETRY_S
        try:
            if future.is_announced:
                if self._replicas.is_assigned(future.key, future.directory.id):
                    await self._take_over(future)
                else:
                    await self._catch_up(future)
            else:
                async with self._turns.setdefault(future.directory, asyncio.Lock()):
                    has_caught_up = await self._catch_up(future)
                if has_caught_up and await self._prepare(future):
                    future.is_announced = True
                    self._replicas.announce(future.key)
        except (OSError, CorruptData, KafkaError, SourceError) as error:
            self._on_failure(future, error)
            return _RETRY_S
        self._failed.discard(future)
        return _LOOK_S

    async def _wait(self, future: FutureLog, seconds: float) -> None:
        event = self._wakes[future]
        if not future.is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
        event.clear()

    async def _catch_up(self, future: FutureLog) -> bool:
        """Copy what there is, but for what is appended while the last piece is copied.

        False when the log is not there, or the move is over. OSError of the copy's directory, CorruptData of the copy,
        KafkaError, SourceError.
        """
        unflushed_bytes = 0
        while not future.is_over:
            log = self._manager.get(*future.key)
            if log is None or log.damage is not None:
                return False
            copy = await self._agree(future, log)
            if future.has_ended() or copy.log_end_offset >= log.log_end_offset:
                break
            end_offset = log.log_end_offset
            data = self._next_piece(copy, log, self._throttle.piece_bytes(_PIECE_BYTES))
            if data is None:
                break
            await self._copy(future, log, data)
            if data.size < _LAST_BYTES and copy.log_end_offset >= end_offset:
                # What has been appended meanwhile is little.
                break
            unflushed_bytes += data.size
            if unflushed_bytes >= _FLUSH_BYTES:
                unflushed_bytes = 0
                await run_unbroken(self._loop, future.flush)
        return not future.has_ended()

    async def _agree(self, future: FutureLog, log: Log) -> Log:
        """The copy, open, with nothing in it that `log` has not."""
        if future.log is None:
            with self._errors_of(log):
                # What a compaction reads now it must not put in the place of what is copied.
                log.swap.settle_for_cut()
                # A copy that outlives its log in a loss of power looks as if that was lost with its directory.
                await run_unbroken(self._loop, log.sync_folder)
            await self._open(future, log)
        copy = future.log
        assert copy is not None, "it was opened"
        copy.config = log.config
        cut_end = log.cut_end
        if future.source is not log:
            cut_end = min(cut_end, common_end(copy, log))
        await self._fit(copy, future, log, cut_end)
        future.source = log
        if cut_end <= log.cut_end:
            # It was not cut deeper meanwhile.
            log.cut_end = MAX_INT64
        return copy

    async def _open(self, future: FutureLog, log: Log) -> None:
        opening = partial(
            future.open,
            self._files,
            log,
            now_ms=self._steady_clock_ms(),
            producer_id_expiration_ms=self._producer_id_expiration_ms(),
            random=self._random,
        )
        try:
            await run_unbroken(self._loop, opening)
        except (CorruptData, KafkaError) as error:
            logger.warning("Copy of a log is made anew: partition=%s reason=%s", log.name, error)
            await run_unbroken(self._loop, self._empty, future)
            future.is_resumed = False
            await run_unbroken(self._loop, opening)

    def _empty(self, future: FutureLog) -> None:
        future.close_files()
        self._files.remove_tree(future.path)
        self._files.make_directory(future.path)

    async def _fit(self, copy: Log, future: FutureLog, log: Log, cut_end: int) -> None:
        start_offset = log.local_log_start_offset
        begins_right = copy.first_segment_base_offset <= start_offset <= copy.log_end_offset
        if cut_end < copy.log_end_offset or not begins_right or log.log_start_offset > copy.log_start_offset:
            producers = log.producers.below(start_offset, aborted=log.aborted_since(start_offset))
            fitting = partial(
                future.fit, cut_end, start_offset, producers, self._steady_clock_ms(), tiered=log.tiered_history
            )
            await run_unbroken(self._loop, fitting)

    def _next_piece(self, copy: Log, log: Log, max_bytes: int) -> FetchData | None:
        """None: what is left has been compacted away, and the copy ends where the log does."""
        end_offset = log.log_end_offset
        offset = copy.log_end_offset
        try:
            with self._errors_of(log):
                data = log.read(offset, max_bytes=max_bytes, end_offset=end_offset, min_one_batch=True)
        except SourceError:
            self._replicas.check(log, offset, max_bytes)
            raise
        if data.size:
            return data
        copy.end_in_gap(end_offset, self._steady_clock_ms())
        return None

    async def _copy(self, future: FutureLog, log: Log, data: FetchData) -> None:
        await self._take(data.size)
        if future.has_ended():
            return
        offset = future.log_end_offset
        now_ms = self._steady_clock_ms()
        try:
            await run_unbroken(self._loop, future.append, data, now_ms, now_ms)
        except (SourceError, KafkaError) as error:
            if isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            if self._manager.get(*future.key) is log and log.cut_end == MAX_INT64:
                # It was neither cut nor closed while it was read.
                self._replicas.check(log, offset, data.size)
                raise
        else:
            self.moved_bytes += data.size

    async def _take(self, size_bytes: int) -> None:
        """Wait until so much may be copied."""
        async with self._throttling:
            self._throttle.take(size_bytes)
            while pause_s := self._throttle.pause_s():
                await asyncio.sleep(pause_s)
                self._throttle.pass_s(pause_s)

    async def _prepare(self, future: FutureLog) -> bool:
        """Make last what the next start needs if it finds the copy in the log's place. False when it is not there."""
        log = self._manager.get(*future.key)
        source = None if log is None else self._manager.directories.directory_of(log.directory)
        if log is None or source is None or future.has_ended():
            return False
        await run_unbroken(self._loop, future.flush)
        with self._errors_of(log):
            # Or two folders would say of each other that they replace it.
            await run_unbroken(self._loop, forget_replaced_directory, self._files, log.directory)
        await run_unbroken(self._loop, future.note_replaced, self._files, source.id)
        await self._write_checkpoints(future, log, source)
        return not future.has_ended()

    async def _write_checkpoints(self, future: FutureLog, log: Log, source: LogDirectory) -> None:
        copy, key, directory = future.log, future.key, future.directory
        assert copy is not None, "it is open"
        cleaned_end = source.checkpointed[CLEANER_OFFSETS].get(key)
        for name, offset in (
            (RECOVERY_POINTS, copy.recovery_point),
            (LOG_START_OFFSETS, start_offset_to_checkpoint(copy)),
            (HIGH_WATERMARKS, self._replicas.high_watermark_of(log)),
            (CLEANER_OFFSETS, None if cleaned_end is None else min(cleaned_end, copy.log_end_offset)),
        ):
            is_written = False
            while not is_written and directory.is_online and not future.is_over:
                offsets = {other: known for other, known in directory.checkpointed[name].items() if other != key}
                if offset is not None:
                    offsets[key] = offset
                if offsets == directory.checkpointed[name]:
                    break
                write = directory.begin_checkpoint(name)
                for (topic, partition), known in offsets.items():
                    write.add(topic, partition, known)
                await run_unbroken(self._loop, write.write)
                is_written = directory.finish_checkpoint(write)
                if is_written:
                    await run_unbroken(self._loop, write.settle)

    async def _take_over(self, future: FutureLog) -> None:
        if not (await self._prepare(future) and await self._catch_up(future)):
            return
        # From here to `replace_log` nothing else has its turn.
        log = self._manager.get(*future.key)
        copy = future.log
        if log is None or copy is None or log is not future.source or log.damage is not None:
            return
        if not self._copy_rest(future, log, copy) or not self._fits_checkpoints(future, copy):
            return
        if copy.recovery_point < log.recovery_point:
            # What was promised to last does so here, too.
            copy.flush()
        source = log.directory
        removed = self._manager.replace(log, future)
        self._replicas.replace_log(log, copy)
        self.completed_count += 1
        logger.info("Move of a log is finished: partition=%s from=%s to=%s", log.name, source, copy.directory)
        await self._settle(future, copy, log, removed)

    def _copy_rest(self, future: FutureLog, log: Log, copy: Log) -> bool:
        """In this turn of the loop, when it is little."""
        now_ms = self._steady_clock_ms()
        if log.cut_end < copy.log_end_offset or copy.log_end_offset < log.local_log_start_offset:
            return False
        copied_bytes = 0
        while copy.log_end_offset < log.log_end_offset:
            if copied_bytes >= _LAST_BYTES:
                return False
            data = self._next_piece(copy, log, _LAST_BYTES - copied_bytes)
            if data is not None:
                future.append(data, now_ms, now_ms)
                copied_bytes += data.size
                self.moved_bytes += data.size
        return True

    def _fits_checkpoints(self, future: FutureLog, copy: Log) -> bool:
        """It may have been cut since they were written: the next start would take that for damage."""
        return all(
            future.directory.checkpointed[name].get(future.key, 0) <= limit
            for name, limit in (
                (RECOVERY_POINTS, copy.recovery_point),
                (LOG_START_OFFSETS, copy.log_end_offset),
                (CLEANER_OFFSETS, copy.log_end_offset),
            )
        )

    async def _settle(self, future: FutureLog, copy: Log, log: Log, removed: str | None) -> None:
        """Make the new names last; then what is replaced may be removed, and the note with it."""
        path, key = copy.directory, future.key
        try:
            await run_unbroken(self._loop, self._files.sync_directory, future.directory.path)
        except OSError as error:
            self._manager.on_error(future.directory.path, error)
            return
        if removed is None:
            return
        try:
            await run_unbroken(self._loop, self._files.sync_directory, removed.rpartition("/")[0])
        except OSError as error:
            self._manager.on_error(removed, error)
            return
        self._manager.remove_later(removed, log.config.file_delete_delay_ms)
        if self._manager.get(*key) is copy:
            try:
                await run_unbroken(self._loop, forget_replaced_directory, self._files, path)
            except OSError as error:
                self._manager.on_error(path, error)

    def _on_failure(self, future: FutureLog, error: OSError | CorruptData | KafkaError | SourceError) -> None:
        if isinstance(error, OSError):
            self._manager.on_error(future.directory.path, error)
        if future not in self._failed and not future.is_over:
            self._failed.add(future)
            logger.warning(
                "Move of a log cannot go on, retrying: partition=%s path=%s reason=%s",
                folder_name(*future.key),
                future.path,
                error,
            )
        if isinstance(error, CorruptData) or (future.log is not None and future.log.damage is not None):
            # The copy is not to be trusted: it is recovered first.
            future.close_files()

    @contextmanager
    def _errors_of(self, log: Log) -> Iterator[None]:
        """What its directory refuses says nothing about that of the copy. SourceError."""
        try:
            yield
        except (OSError, CorruptData) as error:
            if isinstance(error, OSError):
                self._manager.on_error(log.directory, error)
            raise SourceError(str(error)) from error

    def _clean_up(self, future: FutureLog) -> None:
        """The move is over, and no call uses the copy."""
        is_log = future.log is not None and self._manager.get(*future.key) is future.log
        if is_log or not future.directory.is_online:
            return
        future.close_files()
        if self._files.exists(future.path):
            self._manager.discard(future.path, *future.key)
