"""The log directories of one node, and one process after the other that uses them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from uuid import UUID

from produced_batches import produced

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.ids import BrokerEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.log_directories import LogDirectories
from penstock.storage.directories.log_manager import LogManager
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID("b2698a74-0e10-8d65-9981-c07acf362664")


class NodeDisk:
    def __init__(self, loop: VirtualLoop, *log_dirs: str) -> None:
        self.loop = loop
        self.files = MemoryFiles(now_ms=lambda: self.now_ms)
        self.log_dirs = log_dirs or ("/data",)
        # How far the wall clock is ahead of the loop's, beside NOW_MS.
        self.skew_ms = 0
        self.config = LogConfig()
        self.failures: list[str] = []
        self._random = Random(1)
        self.manager = self.new_manager()

    @property
    def now_ms(self) -> int:
        return NOW_MS + self.skew_ms + int(self.loop.time() * 1000)

    def new_manager(self, node_id: int = 1, metadata_log_dir: str | None = None) -> LogManager:
        directories = LogDirectories(
            self.files,
            self.log_dirs,
            node_id=NodeId(node_id),
            random=self._random,
            metadata_log_dir=metadata_log_dir,
        )
        return LogManager(
            self.files,
            directories,
            random=self._random,
            steady_clock_ms=lambda: self.now_ms,
            on_directory_failure=lambda path, _: self.failures.append(path),
        )

    def start(self, is_stray: Callable[[str, int, UUID | None], bool] = lambda *_: False) -> None:
        self.manager = self.new_manager()
        open_directories(self.manager, "cluster")
        self.load(is_stray)

    def load(self, is_stray: Callable[[str, int, UUID | None], bool] = lambda *_: False) -> None:
        self.loop.run(self.manager.load(self.loop, config_of=lambda _: self.config, is_stray=is_stray))

    def stop(self, broker_epoch: int = 7, **high_watermarks: int) -> None:
        known = {(name, 0): offset for name, offset in high_watermarks.items()}
        self.loop.run(self.manager.close(self.loop, broker_epoch=BrokerEpoch(broker_epoch), high_watermarks=known))
        self.manager.directories.unlock()

    def log(self, topic: str, partition: int = 0, topic_id: UUID = TOPIC_ID) -> Log:
        return self.manager.get_or_create(topic, partition, TopicId(topic_id), self.config)

    def names(self, path: str = "/data") -> list[str]:
        return self.files.list_directory(path)


def open_directories(manager: LogManager, cluster_id: str | None = None) -> str:
    """Lock and format, as a node that finds or draws the cluster's id."""
    known = manager.directories.lock()
    return manager.directories.format(cluster_id or known)


def append(log: Log, count: int = 1, timestamp_ms: int = NOW_MS) -> None:
    for _ in range(count):
        batch = write_batch([Record(0, timestamp_ms, b"key", b"value")])
        log.append_as_leader(produced(batch), leader_epoch=0, now_ms=timestamp_ms)


@contextmanager
def node_disk(*log_dirs: str) -> Iterator[NodeDisk]:
    with VirtualLoop() as loop:
        yield NodeDisk(loop, *log_dirs)
