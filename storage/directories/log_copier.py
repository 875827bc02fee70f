"""Brings the copy of a log in another log directory up to the log, a piece at a time (KIP-113).

Kafka: `ReplicaAlterLogDirsThread`, `LocalLeaderEndPoint`.

What is cut off the log is cut off the copy before anything is added to it. Reading and appending are jobs of the
executor; the pieces of all moves share one throttle.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from ...protocol.errors import CorruptData, ErrorCode, KafkaError
from ..disk.files import Files
from ..disk.shielded_call import run_unbroken
from ..log.file_slice import FetchData
from ..log.log import Log
from .future_log import FutureLog, SourceError, common_end, source_errors
from .log_manager import LogManager
from .rules.move_throttle import MoveThrottle

logger = logging.getLogger(__name__)

_PIECE_BYTES: Final = 1024 * 1024
"""Read and appended by one job of the executor: some milliseconds of a disk."""
_FLUSH_BYTES: Final = 64 * 1024 * 1024
"""Copied between two syncs: what a kill makes the next start check again."""
_LAST_BYTES: Final = 512 * 1024
"""What may be copied in the turn of the loop in which a copy takes over, or one batch."""


class LogCopier:
    def __init__(
        self,
        manager: LogManager,
        files: Files,
        loop: asyncio.AbstractEventLoop,
        *,
        check: Callable[[Log, int, int], None],
        bytes_per_s: Callable[[], float],
        steady_clock_ms: Callable[[], int],
        producer_id_expiration_ms: Callable[[], int],
        random: Random,
    ) -> None:
        """`check` is told a log that could not be read, from where on, and how many bytes.

        `bytes_per_s` is `replica.alter.log.dirs.io.max.bytes.per.second`, for all moves together.
        """
        self._manager = manager
        self._files = files
        self._loop = loop
        self._check = check
        self._throttle = MoveThrottle(bytes_per_s)
        self._throttling = asyncio.Lock()
        self._steady_clock_ms = steady_clock_ms
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._random = random
        self.moved_bytes = 0

    async def catch_up(self, future: FutureLog) -> bool:
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

    def copy_rest(self, future: FutureLog, log: Log, copy: Log) -> bool:
        """What there is, in this turn of the loop; False when that is too much, or the log was cut meanwhile."""
        now_ms = self._steady_clock_ms()
        if log.lowest_cut.offset < copy.log_end_offset or copy.log_end_offset < log.local_log_start_offset:
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

    async def _agree(self, future: FutureLog, log: Log) -> Log:
        """The copy, open, with nothing in it that `log` has not."""
        if future.log is None:
            with source_errors(log, self._manager.on_error):
                # What a compaction reads now it must not put in the place of what is copied.
                log.swap.settle_for_cut()
                # A copy that outlives its log in a loss of power looks as if that was lost with its directory.
                await run_unbroken(self._loop, log.sync_folder)
            await self._open(future, log)
        copy = future.log
        assert copy is not None, "it was opened"
        copy.config = log.config
        cut_end = log.lowest_cut.offset
        if future.source is not log:
            cut_end = min(cut_end, common_end(copy, log))
        await self._fit(copy, future, log, cut_end)
        future.source = log
        log.lowest_cut.followed(cut_end)
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
            with source_errors(log, self._manager.on_error):
                data = log.read(offset, max_bytes=max_bytes, end_offset=end_offset, min_one_batch=True)
        except SourceError:
            self._check(log, offset, max_bytes)
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
            if self._manager.get(*future.key) is log and not log.lowest_cut.has_been:
                # It was neither cut nor closed while it was read.
                self._check(log, offset, data.size)
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
