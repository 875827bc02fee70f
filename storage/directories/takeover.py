"""A copy takes over: the replica's log is in another log directory from then on (KIP-113, decision 22).

prepare     the copy, its checkpoints and the note of which log it replaces are synced: a start may find it alone
take over   one turn of the loop: the last bytes, two renames, and the replica has another log
settle      the names are synced, the note goes, and the folder that was replaced may be removed
"""

import asyncio
import logging
from typing import Protocol

from ..disk.files import Files
from ..disk.shielded_call import run_unbroken
from ..log.log import Log
from .future_log import FutureLog, forget_replaced_directory, source_errors
from .log_closing import start_offset_to_checkpoint
from .log_copier import LogCopier
from .log_directory import LogDirectory
from .log_manager import LogManager
from .rules.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS

logger = logging.getLogger(__name__)


class ReplicaLogs(Protocol):
    """The replicas of this node whose logs are replaced."""

    def replace_log(self, log: Log, copy: Log) -> None:
        """The replica's log is `copy` from now on."""

    def high_watermark_of(self, log: Log) -> int: ...


class Takeover:
    """Of one copy after the other, each by calls of its move's task."""

    def __init__(
        self,
        manager: LogManager,
        files: Files,
        loop: asyncio.AbstractEventLoop,
        copier: LogCopier,
        replicas: ReplicaLogs,
    ) -> None:
        self._manager = manager
        self._files = files
        self._loop = loop
        self._copier = copier
        self._replicas = replicas
        self.completed_count = 0

    async def prepare(self, future: FutureLog) -> bool:
        """Make last what the next start needs if it finds the copy in the log's place. False when the log is not there.

        OSError of the copy's directory, SourceError.
        """
        log = self._manager.get(*future.key)
        source = None if log is None else self._manager.directories.directory_of(log.directory)
        if log is None or source is None or future.has_ended():
            return False
        await run_unbroken(self._loop, future.flush)
        with source_errors(log, self._manager.on_error):
            # Or two folders would say of each other that they replace it.
            await run_unbroken(self._loop, forget_replaced_directory, self._files, log.directory)
        await run_unbroken(self._loop, future.note_replaced, self._files, source.id)
        await self._write_checkpoints(future, log, source)
        return not future.has_ended()

    async def take_over(self, future: FutureLog) -> None:
        """Nothing has changed when the log was cut, or appended to too fast, meanwhile: it is tried again. OSError of
        the copy's directory, CorruptData of the copy, KafkaError, SourceError."""
        if not (await self.prepare(future) and await self._copier.catch_up(future)):
            return
        # From here to `replace_log` nothing else has its turn.
        log = self._manager.get(*future.key)
        copy = future.log
        if log is None or copy is None or log is not future.source or log.damage is not None:
            return
        if not self._copier.copy_rest(future, log, copy) or not self._fits_checkpoints(future, copy):
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
            says_so = False
            while not says_so and directory.is_online and not future.is_over:
                async with directory.checkpoint(name) as write:
                    for other, known in directory.checkpointed[name].items():
                        if other != key:
                            write.add(*other, known)
                    if offset is not None:
                        write.add(*key, offset)
                    says_so = not write.is_change or await write.replace_file(self._loop)

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
