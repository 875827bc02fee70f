"""Syncs logs in groups: all requests of one turn of the loop, and all that come while a sync is under way, cost one.

Each log directory has its own line, so that a slow disk keeps only its own logs waiting. Of one log there is never more
than one sync at a time, as `Log.files_to_sync` asks.
"""

import logging
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from errno import EIO, ENOMEM
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from ...protocol.errors import CorruptData
from ..disk.rules.disk_errors import SyncError
from ..log.log import Log
from .group_sync import Failure, sync_group, sync_groups

logger = logging.getLogger(__name__)

OnFlushed: TypeAlias = Callable[[OSError | None], None]


class FlusherStatistics(Struct, frozen=True, kw_only=True):
    request_count: int
    # Groups of requests, and the files and folders to sync for them: once each, where several logs have one in common.
    round_count: int
    sync_count: int


class Flusher:
    def __init__(self, loop: AbstractEventLoop, on_round: Callable[[float], None] = lambda _seconds: None) -> None:
        """`on_round` is called with the time that each round of syncs took, in seconds."""
        self._loop = loop
        self._on_round = on_round
        self._lines: dict[str, _Line] = {}
        self._request_count = 0

    def request(self, log: Log, end_offset: int, on_flushed: OnFlushed) -> None:
        """Sync `log` up to `end_offset` and call back in a later turn of the loop, with the error if there was one.

        The recovery point has moved when the call comes. It also comes, without an error, when the log was removed
        in the meantime. After an error the log directory is not to be trusted any more: take it offline. A log whose
        sync failed is not synced again for those who asked meanwhile: they hear of the same error.
        """
        self._request_count += 1
        path = log.directory.rpartition("/")[0]
        line = self._lines.get(path)
        if line is None:
            line = self._lines[path] = _Line(self._loop, self._on_round)
        line.request(log, end_offset, on_flushed)

    async def drain(self) -> None:
        """Wait until nothing is under way: before the logs close."""
        for line in self._lines.values():
            while line.round is not None:
                await line.round

    def statistics(self) -> FlusherStatistics:
        return FlusherStatistics(
            request_count=self._request_count,
            round_count=sum(line.round_count for line in self._lines.values()),
            sync_count=sum(line.sync_count for line in self._lines.values()),
        )


class _Wanted:
    """What is asked for one log."""

    __slots__ = ("directory", "end_offset", "on_flushed")

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.end_offset = 0
        self.on_flushed: list[OnFlushed] = []


class _Line:
    """Idle (no round), or in a round: collecting until the next turn of the loop, then syncing in the executor."""

    __slots__ = ("_begun_s", "_loop", "_on_round", "_wanted", "round", "round_count", "sync_count")

    def __init__(self, loop: AbstractEventLoop, on_round: Callable[[float], None]) -> None:
        self._loop = loop
        self._on_round = on_round
        self._begun_s = 0.0
        self._wanted: dict[Log, _Wanted] = {}
        self.round: Future[None] | None = None
        self.round_count = 0
        self.sync_count = 0

    def request(self, log: Log, end_offset: int, on_flushed: OnFlushed) -> None:
        wanted = self._wanted.get(log)
        if wanted is None:
            wanted = self._wanted[log] = _Wanted(log.directory)
        wanted.end_offset = max(wanted.end_offset, end_offset)
        wanted.on_flushed.append(on_flushed)
        if self.round is None:
            self.round = self._loop.create_future()
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        wanted, self._wanted = self._wanted, {}
        self.round_count += 1
        self._begun_s = self._loop.time()
        groups = [sync_group(log, partial(Log.files_to_sync, end_offset=one.end_offset)) for log, one in wanted.items()]
        self.sync_count += sum(len(files) for files, _ in groups)
        try:
            # Almost all of it is waiting in system calls.
            done = self._loop.run_in_executor(None, sync_groups, groups)
        except RuntimeError as error:
            # No thread could be started: nothing was synced, and the next round may be.
            logger.error("Failed to flush logs: reason=%s", error)
            refused = [OSError(ENOMEM, f"no thread to sync in: {error}")] * len(groups)
            self._loop.call_soon(self._end, wanted, refused)
        else:
            done.add_done_callback(lambda future: self._end(wanted, future.result()))

    def _end(self, wanted: dict[Log, _Wanted], errors: Sequence[Failure | None]) -> None:
        finished = self.round
        assert finished is not None, "rounds end once"
        self._on_round(self._loop.time() - self._begun_s)
        for (log, one), error in zip(wanted.items(), errors, strict=True):
            if isinstance(error, SyncError) and log.directory == one.directory:
                # No second try: the system may say that all is well when it has dropped what it could not write.
                again = self._wanted.pop(log, None)
                if again is not None:
                    one.on_flushed += again.on_flushed
        if self._wanted:
            self.round = self._loop.create_future()
            self._loop.call_soon(self._begin)
        else:
            self.round = None
        finished.set_result(None)
        for (log, one), error in zip(wanted.items(), errors, strict=True):
            if log.directory != one.directory:
                # Renamed for deletion: that its old names were not found says nothing about the disk.
                error = None
            elif error is None:
                log.mark_flushed(one.end_offset)
            elif isinstance(error, CorruptData):
                # An index that cannot be read keeps its own log from being synced, not the others of this round.
                error = OSError(EIO, str(error))
            for on_flushed in one.on_flushed:
                try:
                    on_flushed(error)
                except Exception:
                    # The others of this round wait too.
                    logger.exception("Callback of a flush failed: partition=%s", log.name)
