"""Moves logs between the log directories of a node, while they are read and written (KIP-113, KIP-858).

Kafka: `ReplicaAlterLogDirsManager`. The copying is `LogCopier`'s, the end of a move `Takeover`'s.

| state     | what happens                                                          | leaves by                     |
|-----------|-----------------------------------------------------------------------|-------------------------------|
| copying   | the future log takes in what the log has, a piece at a time           | it has all: announced         |
| announced | goes on; the controller is told that the replica is in that directory | it has noted that: taken over |
| over      | taken over, cancelled, the log deleted, or the directory failed       |                               |

The controller knows before anything changes: a directory that fails from then on counts for the replica in it. While it
is told, the replica is where it was; if the move ends then, it is told again.

A log that is copied is not compacted: the copy could get a record from before a compaction, and lack the tombstone that
a later one took out. Retention goes on. `num.replica.alter.log.dirs.threads` logs are copied at a time, first come,
first served; those that are announced go on beside them.
"""

import asyncio
import logging
from contextlib import suppress
from random import Random
from typing import Final, Protocol
from uuid import UUID

from ...protocol.errors import CorruptData, KafkaError
from ..disk.files import Files
from ..log.log import Log
from .future_log import FutureLog, SourceError
from .log_copier import LogCopier
from .log_directory import LogDirectory
from .log_manager import LogManager
from .rules.checkpoints import TopicPartition
from .rules.folder_names import FolderKind, folder_name, moved_folder_name
from .takeover import ReplicaLogs, Takeover

logger = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
"""Between two looks at what has been appended meanwhile, and whether the controller has noted the move."""
_RETRY_S: Final = 5.0
"""After a full disk, or a log that cannot be read."""


class Replicas(ReplicaLogs, Protocol):
    """What the node knows of the replicas whose logs are moved."""

    def announce(self, key: TopicPartition) -> None:
        """Tell the controller anew where the replica is: `announced_directory` has changed."""

    def is_assigned(self, key: TopicPartition, directory_id: UUID) -> bool:
        """Whether the controller has noted that it is there."""


class LogMover:
    def __init__(
        self,
        manager: LogManager,
        files: Files,
        loop: asyncio.AbstractEventLoop,
        replicas: Replicas,
        copier: LogCopier,
        *,
        thread_count: int,
        random: Random,
    ) -> None:
        """`thread_count` is `num.replica.alter.log.dirs.threads`: so many logs are copied at a time."""
        self._manager = manager
        self._files = files
        self._loop = loop
        self._replicas = replicas
        self._copier = copier
        self._takeover = Takeover(manager, files, loop, copier, replicas)
        self._random = random
        # First come, first served.
        self._turns = asyncio.Semaphore(thread_count)
        self._tasks: dict[FutureLog, asyncio.Task[None]] = {}
        self._wakes: dict[FutureLog, asyncio.Event] = {}
        self._changed = asyncio.Event()
        manager.futures.on_ended = self._on_ended
        # Tried again now and then: a disk is full, or a log unreadable.
        self._failed: set[FutureLog] = set()

    @property
    def completed_count(self) -> int:
        return self._takeover.completed_count

    @property
    def moved_bytes(self) -> int:
        return self._copier.moved_bytes

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
                    await self._takeover.take_over(future)
                else:
                    await self._copier.catch_up(future)
            else:
                async with self._turns:
                    has_caught_up = await self._copier.catch_up(future)
                if has_caught_up and await self._takeover.prepare(future):
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

    def _clean_up(self, future: FutureLog) -> None:
        """The move is over, and no call uses the copy."""
        is_log = future.log is not None and self._manager.get(*future.key) is future.log
        if is_log or not future.directory.is_online:
            return
        future.close_files()
        if self._files.exists(future.path):
            self._manager.discard(future.path, *future.key)
