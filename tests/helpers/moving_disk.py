"""One partition of a node with two log directories, the mover of its logs, and a controller that notes where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from uuid import UUID

from node_disk import TOPIC_ID, NodeDisk, open_directories
from produced_batches import produced

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.batches import iterate_headers
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, read_records, write_batch
from penstock.storage.directories.log_copier import LogCopier
from penstock.storage.directories.log_mover import LogMover
from penstock.storage.directories.rules.checkpoints import TopicPartition
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

KEY: TopicPartition = ("moved", 0)
FIRST, SECOND = "/a", "/b"


class MovingDisk:
    """A `Replicas` too: what is announced is noted at once while `is_controller_up`."""

    def __init__(self, loop: VirtualLoop, key: TopicPartition = KEY, *, thread_count: int = 2) -> None:
        self.loop = loop
        self.key = key
        self.disk = NodeDisk(loop, FIRST, SECOND)
        self.disk.config = LogConfig(segment_bytes=900, index_interval_bytes=100)
        self.is_controller_up = True
        self.assigned: UUID | None = None
        self.rate = float("inf")
        self.thread_count = thread_count
        self.replaced: list[tuple[Log, Log]] = []
        self.checked: list[tuple[Log, int, int]] = []
        self.epoch = 0
        self.value = 0
        # Its ids are not those that the log manager draws.
        self.random = Random(2)
        self.mover: LogMover
        self._task: asyncio.Task[None] | None = None

    # The process

    def start(self) -> None:
        disk = self.disk
        disk.manager = disk.new_manager()
        open_directories(disk.manager, "cluster")
        self.load()
        copier = LogCopier(
            disk.manager,
            disk.files,
            self.loop,
            check=self.check,
            bytes_per_s=lambda: self.rate,
            steady_clock_ms=lambda: disk.now_ms,
            producer_id_expiration_ms=lambda: 1 << 40,
            random=self.random,
        )
        self.mover = LogMover(
            disk.manager,
            disk.files,
            self.loop,
            self,
            copier,
            thread_count=self.thread_count,
            random=self.random,
        )
        self._task = self.loop.create_task(self.mover.run())
        if self.found is not None and self.found.damage is None:
            self.announce(self.key)

    def load(self) -> None:
        manager = self.disk.manager
        self.loop.run(
            manager.load(
                self.loop,
                config_of=lambda _: self.disk.config,
                is_stray=lambda *_: False,
                assigned_directory=lambda _: self.assigned,
            )
        )

    def end(self) -> None:
        """The tasks of the process are gone."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

            async def wait() -> None:
                with suppress(asyncio.CancelledError):
                    await task

            self.loop.run(wait())

    def stop(self) -> None:
        self.end()
        self.disk.stop()

    def kill(self, random: Random | None = None) -> None:
        """With `random` the power is lost, too."""
        self.end()
        self.disk.files.heal()
        if random is None:
            self.disk.files.kill()
        else:
            self.disk.files.crash(random)

    def wait(self, seconds: float = 60) -> None:
        async def sleep() -> None:
            await asyncio.sleep(seconds)

        self.loop.run(sleep())

    # The log

    @property
    def found(self) -> Log | None:
        return self.disk.manager.get(*self.key)

    @property
    def log(self) -> Log:
        return self.disk.manager.get_or_create(*self.key, TopicId(TOPIC_ID), self.disk.config)

    def another(self, partition: int) -> Log:
        """Of the same topic, in the first directory."""
        manager = self.disk.manager
        directory_id = manager.directories[0].id
        key = self.key[0], partition
        return manager.get_or_create(*key, TopicId(TOPIC_ID), self.disk.config, directory_id=directory_id)

    def directory_of(self, log: Log) -> str:
        return log.directory.rpartition("/")[0]

    def begin(self, path: str, log: Log | None = None) -> None:
        (directory,) = [one for one in self.disk.manager.directories if one.path == path]
        self.mover.begin(self.log if log is None else log, directory)

    def append(self, count: int = 1, log: Log | None = None) -> None:
        log = self.log if log is None else log
        for _ in range(count):
            self.value += 1
            data = write_batch([Record(0, self.disk.now_ms, b"key", b"%d" % self.value)])
            log.append_as_leader(produced(data), leader_epoch=self.epoch, now_ms=self.disk.now_ms)

    def folders(self, path: str) -> list[str]:
        return [name for name in self.disk.names(path) if name.startswith("moved-0")]

    # Replicas

    def announce(self, key: TopicPartition) -> None:
        if self.is_controller_up:
            log = self.disk.manager.get(*key)
            directory_id = self.mover.announced_directory(key)
            if directory_id is None and log is not None:
                directory = self.disk.manager.directories.directory_of(log.directory)
                directory_id = None if directory is None else directory.id
            self.assigned = directory_id

    def is_assigned(self, key: TopicPartition, directory_id: UUID) -> bool:
        if self.is_controller_up and self.assigned != directory_id:
            self.announce(key)
        return self.assigned == directory_id

    def replace_log(self, log: Log, copy: Log) -> None:
        self.replaced.append((log, copy))

    def high_watermark_of(self, log: Log) -> int:
        return log.log_start_offset

    def check(self, log: Log, offset: int, size_bytes: int) -> None:
        self.checked.append((log, offset, size_bytes))


def values(log: Log) -> list[tuple[int, bytes]]:
    """Offsets and values of all records; each batch has its CRC."""
    found = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        data = log.read(position, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
        if not data.size:
            break
        log.check(position, data.size)
        chunk = b"".join(piece.read(0, piece.size) for piece in data.slices)
        for at, header in iterate_headers(chunk):
            position = header.next_offset
            if not header.is_control:
                found += [(record.offset, record.value or b"") for record in read_records(chunk[at:], header)]
    return found


@contextmanager
def moving_disk(thread_count: int = 2) -> Iterator[MovingDisk]:
    with VirtualLoop() as loop:
        it = MovingDisk(loop, thread_count=thread_count)
        try:
            it.start()
            yield it
        finally:
            it.end()
