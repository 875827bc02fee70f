"""Opening the logs of a directory."""

import asyncio
from random import Random
from uuid import UUID

import pytest

from penstock.protocol.records import Record, write_batch
from penstock.storage.config import LogConfig
from penstock.storage.log import Log
from penstock.storage.log_manager import LogManager
from penstock.storage.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=7)


def start(files: MemoryFiles) -> LogManager:
    manager = LogManager(files, ["/data"], node_id=1, random=Random(3), wall_clock_ms=lambda: NOW_MS)
    manager.open_directories()

    async def load() -> None:
        await manager.load(
            asyncio.get_running_loop(), config_of=lambda _: LogConfig(), is_stray=lambda _topic, _partition, _id: False
        )

    asyncio.run(load())
    return manager


def append(log: Log, value: bytes) -> None:
    log.append_as_leader(write_batch([Record(0, NOW_MS, None, value)]), leader_epoch=0, now_ms=NOW_MS)


@pytest.mark.parametrize("seed", range(20))
def test_what_recovery_counts_as_stored_survives_a_loss_of_power(seed: int) -> None:
    files = MemoryFiles(now_ms=lambda: NOW_MS)
    log = start(files).get_or_create("orders", 0, TOPIC_ID, LogConfig())
    append(log, b"synced")
    log.flush()
    append(log, b"in the page cache")
    # The process dies and comes back: the page cache is still there, and what is in it is now counted and shown.
    files.kill()
    recovered = start(files).get("orders", 0)
    assert recovered is not None
    assert recovered.log_end_offset == 2
    files.crash(Random(seed))
    after_power_loss = start(files).get("orders", 0)
    assert after_power_loss is not None
    assert after_power_loss.log_end_offset == 2
