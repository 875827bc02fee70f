"""Log directories from first start to failure, and the logs in them."""

import asyncio
from collections.abc import Callable
from random import Random
from uuid import UUID

from penstock.storage.config import LogConfig
from penstock.storage.log_manager import LogManager
from penstock.storage.memory_files import MemoryFiles

NOW = 1_700_000_000_000
TOPIC_ID = UUID("b2698a74-0e10-8d65-9981-c07acf362664")


class Node:
    """One process after the other on the same disk."""

    def __init__(self, *log_dirs: str) -> None:
        self.files = MemoryFiles()
        self.log_dirs = log_dirs or ("/data",)
        self.failures: list[str] = []
        self.random = Random(1)
        self.loop = asyncio.new_event_loop()
        self.manager = self.new_manager()

    def new_manager(self, node_id: int = 1, metadata_log_dir: str | None = None) -> LogManager:
        return LogManager(
            self.files,
            self.log_dirs,
            node_id=node_id,
            random=self.random,
            wall_clock_ms=lambda: NOW,
            metadata_log_dir=metadata_log_dir,
            on_directory_failure=lambda path, _: self.failures.append(path),
        )

    def start(self, is_stray: Callable[[str, int, UUID | None], bool] = lambda *_: False) -> None:
        self.manager = self.new_manager()
        self.manager.open_directories("cluster")
        self.loop.run_until_complete(self.manager.load(self.loop, config_of=lambda _: LogConfig(), is_stray=is_stray))

    def stop(self, broker_epoch: int = 7, **high_watermarks: int) -> None:
        known = {(name, 0): offset for name, offset in high_watermarks.items()}
        self.loop.run_until_complete(self.manager.close(self.loop, broker_epoch=broker_epoch, high_watermarks=known))
