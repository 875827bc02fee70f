"""What is done to all logs as time passes."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EMFILE
from random import Random
from uuid import UUID

import pytest
from node_disk import NOW_MS, NodeDisk, append, node_disk
from produced_batches import produced

from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories import log_housekeeping
from penstock.storage.directories.flusher import Flusher
from penstock.storage.directories.log_closing import start_offset_to_checkpoint
from penstock.storage.directories.log_housekeeping import HousekeepingConfig, LogHousekeeping
from penstock.storage.disk.memory_nodes import Operation
from penstock.storage.log.rules.config import LogConfig

RECOVERY = "/data/recovery-point-offset-checkpoint"
STARTS = "/data/log-start-offset-checkpoint"
HIGH_WATERMARKS = "/data/replication-offset-checkpoint"


class Kept:
    """A node whose house is kept while time passes."""

    def __init__(self, node: NodeDisk, config: HousekeepingConfig) -> None:
        self.node = node
        node.start()
        self.flusher = Flusher(node.loop)
        self.keeper = LogHousekeeping(
            node.manager,
            self.flusher,
            node.files,
            node.loop,
            config=config,
            steady_clock_ms=lambda: node.now_ms,
            high_watermark_of=lambda log: log.log_end_offset,
            on_deleted=lambda log: self.deleted.append(log.log_start_offset),
        )
        self.deleted: list[int] = []
        self.task = node.loop.create_task(self.keeper.run())

    async def ended(self) -> None:
        await asyncio.wait([self.task])

    def pass_ms(self, milliseconds: int) -> None:
        self.node.loop.run(asyncio.sleep(milliseconds / 1000))

    def read(self, path: str) -> bytes | None:
        return self.node.files.read(path) if self.node.files.exists(path) else None


@contextmanager
def kept(config: HousekeepingConfig | None = None, *log_dirs: str) -> Iterator[Kept]:
    with node_disk(*log_dirs) as node:
        house = Kept(node, config or HousekeepingConfig(log_initial_task_delay_ms=0))
        try:
            yield house
            assert not house.task.done()
        finally:
            house.task.cancel()
            node.loop.run(house.ended())


def test_a_round_of_retention_leaves_what_comes_meanwhile_to_the_next_one() -> None:
    """As of a backfill, whose records are old at once: the round went on as long as it came."""
    with node_disk() as node:
        house = Kept(node, HousekeepingConfig())
        house.task.cancel()
        node.config = LogConfig(retention_bytes=0)
        log = node.log("flights")
        append(log)

        async def round_beside_appends() -> None:
            going = asyncio.ensure_future(house.keeper.apply_retention())
            for _ in range(100):
                append(log)
                await asyncio.sleep(0)
                if going.done():
                    return
            raise AssertionError("the round goes on")

        node.loop.run(round_beside_appends())
        assert log.log_start_offset <= 2


def test_a_loss_of_power_brings_back_a_deleted_log_as_a_whole_or_not_at_all() -> None:
    """One that came back without its first segments was taken for a replica whose first records are deleted."""
    for seed in range(40):
        with node_disk() as node:
            house = Kept(node, HousekeepingConfig())
            house.task.cancel()
            node.config = LogConfig(segment_bytes=200, file_delete_delay_ms=0)
            append(node.log("flights"), 20)
            node.log("flights").flush()
            node.manager.delete("flights", 0)
            node.loop.run(house.keeper.remove_due_files())
            node.files.crash(Random(seed))
            node.start()
            log = node.manager.get("flights", 0)
            assert log is None or (log.log_start_offset, log.log_end_offset) == (0, 20), f"seed {seed}"


def test_log_is_synced_when_its_flush_ms_is_over() -> None:
    with kept() as house:
        house.node.config = LogConfig(flush_ms=500)
        log = house.node.log("flights")
        lazy = house.node.manager.get_or_create("planes", 0, TopicId(UUID(int=3)), LogConfig())
        append(log)
        append(lazy)
        house.pass_ms(400)
        assert log.recovery_point == 0
        house.pass_ms(600)
        assert (log.recovery_point, lazy.recovery_point) == (1, 0)
        append(log)
        house.pass_ms(300)
        assert log.recovery_point == 1
        house.pass_ms(1000)
        assert log.recovery_point == 2


def test_rolled_segments_are_synced_whatever_flush_ms_says() -> None:
    with kept() as house:
        house.node.config = LogConfig(segment_bytes=200)
        log = house.node.log("flights")
        append(log, 5)
        base = log.active_segment_base_offset
        assert base > 0
        house.pass_ms(3000)
        assert log.recovery_point >= base - 1
        house.pass_ms(3000)
        assert log.recovery_point == base


def test_checkpoints_are_written_at_their_intervals_and_only_when_they_change() -> None:
    with kept(HousekeepingConfig()) as house:
        log = house.node.log("flights")
        append(log, 3)
        log.flush()
        log.increment_log_start_offset(2)
        house.pass_ms(29_000)
        assert (house.read(RECOVERY), house.read(STARTS), house.read(HIGH_WATERMARKS)) == (None, None, None)
        house.pass_ms(2_000)
        assert house.read(RECOVERY) == b"0\n1\nflights 0 3\n"
        assert house.read(STARTS) == b"0\n1\nflights 0 2\n"
        assert house.read(HIGH_WATERMARKS) == b"0\n1\nflights 0 3\n"
        renames = house.node.files.operation_counts["rename"]
        house.pass_ms(120_000)
        assert house.node.files.operation_counts["rename"] == renames
        append(log)
        house.pass_ms(6_000)
        assert house.read(HIGH_WATERMARKS) == b"0\n1\nflights 0 4\n"
        assert house.read(RECOVERY) == b"0\n1\nflights 0 3\n"


def test_a_log_start_is_synced_before_it_is_checkpointed() -> None:
    with kept(HousekeepingConfig()) as house:
        log = house.node.log("flights")
        append(log, 3)
        log.flush()
        append(log, 2)
        log.increment_log_start_offset(5)
        assert start_offset_to_checkpoint(log) == 3
        house.pass_ms(3_000)
        assert log.recovery_point == 5
        assert start_offset_to_checkpoint(log) == 5


def test_checkpoints_keep_what_they_say_of_a_partition_that_could_not_be_opened() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("a"), 3)
        node.stop()
        node.files.flip_bit("/data/a-0/partition.metadata", 3, 0)
        house = Kept(node, HousekeepingConfig(log_initial_task_delay_ms=0))
        append(node.log("b"), 2)
        node.log("b").flush()
        house.pass_ms(61_000)
        assert house.read(RECOVERY) == b"0\n2\na 0 3\nb 0 2\n"
        house.task.cancel()
        node.loop.run(house.ended())


def test_checkpoint_in_the_making_does_not_outlive_the_log_it_speaks_of() -> None:
    with kept() as house:
        node = house.node
        log = node.log("flights")
        append(log, 5)
        log.flush()
        directory = node.manager.directories[0]

        async def run() -> None:
            checkpoint = node.loop.create_task(house.keeper.checkpoint_recovery_points())
            # One turn to begin, one to collect, one for the executor to write: the file is not in place yet.
            for _ in range(3):
                await asyncio.sleep(0)
            assert not checkpoint.done()
            node.manager.delete("flights", 0)
            append(node.log("flights", topic_id=UUID(int=9)))
            await checkpoint

        node.loop.run(run())
        assert ("flights", 0) not in directory.checkpointed["recovery-point-offset-checkpoint"]
        node.files.crash(Random(2))
        node.start()
        assert all(log.damage is None for log in node.manager.logs)
        node.stop()


def test_retention_deletes_segments_and_their_files_follow_after_the_delay() -> None:
    with kept() as house:
        node = house.node
        node.config = LogConfig(segment_bytes=100, retention_ms=60_000)
        log = node.log("flights")
        append(log, 3)
        house.pass_ms(300_000)
        assert (log.log_start_offset, log.log_end_offset) == (0, 3)
        house.pass_ms(10_000)
        assert (log.log_start_offset, house.deleted) == (3, [3])
        assert any(name.endswith(".deleted") for name in node.names("/data/flights-0"))
        house.pass_ms(65_000)
        assert not any(name.endswith(".deleted") for name in node.names("/data/flights-0"))


def test_segments_that_one_pass_deletes_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with kept() as house, caplog.at_level(logging.DEBUG, log_housekeeping.__name__):
        house.node.config = LogConfig(segment_bytes=100, retention_ms=60_000)
        for index in range(20):
            append(house.node.log("flights", index), 3)
        house.pass_ms(400_000)
        lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
        assert lines == ["Deleted segments: partitions=20 segments=60"]
        assert "Deleted segments: partition=flights-7 count=3 start=3" in caplog.messages


def test_folder_of_a_deleted_log_goes_after_the_delay() -> None:
    with kept() as house:
        node = house.node
        append(node.log("flights"))
        node.manager.delete("flights", 0)
        house.pass_ms(59_000)
        assert any(name.endswith("-delete") for name in node.names())
        house.pass_ms(3_000)
        assert not any(name.endswith("-delete") for name in node.names())


def test_removal_that_lacks_descriptors_for_a_moment_is_tried_again() -> None:
    with kept() as house:
        node = house.node
        node.config = LogConfig(segment_bytes=100, retention_ms=60_000)
        append(node.log("flights"), 3)
        append(node.log("planes"))
        house.pass_ms(310_000)
        node.manager.delete("planes", 0)
        node.files.fail("remove", error=EMFILE, count=None)
        house.pass_ms(70_000)
        assert any(name.endswith(".deleted") for name in node.names("/data/flights-0"))
        assert any(name.endswith("-delete") for name in node.names())
        node.files.heal()
        house.pass_ms(3_000)
        assert not any(name.endswith(".deleted") for name in node.names("/data/flights-0"))
        assert not any(name.endswith("-delete") for name in node.names())
        assert node.failures == []


def test_idle_producers_are_forgotten() -> None:
    with kept() as house:
        log = house.node.log("flights")
        batch = write_batch([Record(0, NOW_MS, None, b"v")], producer_id=5, producer_epoch=0, base_sequence=0)
        log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS)
        house.node.skew_ms += 25 * 3600 * 1000
        house.pass_ms(601_000)
        assert log.producers.active(NOW_MS) == []


def test_error_in_any_of_it_takes_the_directory_offline_and_nothing_else() -> None:
    operations: tuple[Operation, ...] = ("sync", "write", "rename")
    for operation in operations:
        with kept(None, "/data", "/other") as house:
            node = house.node
            node.config = LogConfig(segment_bytes=100, retention_ms=60_000, flush_ms=10)
            first, second = node.log("flights"), node.log("planes")
            append(first, 3)
            append(second, 3)
            node.files.fail(operation, under="/data", count=None)
            house.pass_ms(700_000)
            house.pass_ms(700_000)
            assert node.failures == ["/data"], operation
            assert list(node.manager.logs) == [second]
            assert second.log_start_offset == 3


def test_thousands_of_logs_are_gone_over_in_slices() -> None:
    with kept() as house:
        node = house.node
        for partition in range(1000):
            node.log("flights", partition)
        turns = 0

        async def count_turns(until: "asyncio.Task[None]") -> None:
            nonlocal turns
            while not until.done():
                turns += 1
                await asyncio.sleep(0)

        async def run() -> None:
            await count_turns(node.loop.create_task(house.keeper.checkpoint_high_watermarks()))

        node.loop.run(run())
        assert turns >= 5


def test_log_that_retention_cannot_read_keeps_its_segments_and_the_house_goes_on() -> None:
    with node_disk() as node:
        node.config = LogConfig(segment_bytes=150, retention_ms=1000)
        node.start()
        for name in ("a", "b"):
            append(node.log(name), 6)
        node.stop()
        node.files.flip_bit("/data/a-0/00000000000000000000.log", 8, 7)
        node.files.open("/data/a-0/00000000000000000000.timeindex").truncate(5)
        house = Kept(node, HousekeepingConfig(log_initial_task_delay_ms=0))
        house.pass_ms(700_000)
        assert node.log("b").segment_count == 1
        assert not house.task.done()
        house.task.cancel()
        node.loop.run(house.ended())
