"""The logs of a node, and the log directories that they are in, from the first start to failure."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from errno import EMFILE, ENFILE, ENOMEM, ENOSPC
from itertools import product
from random import Random
from typing import Any
from uuid import UUID

import pytest
from node_disk import NOW_MS, TOPIC_ID, NodeDisk, append, node_disk, open_directories
from produced_batches import produced

from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.errors import ConfigError, ErrorCode, KafkaError
from penstock.protocol.ids import TopicId
from penstock.protocol.records import Record, write_batch
from penstock.storage.directories.directory_choice import PREFERENCES_MAX
from penstock.storage.directories.rules.checkpoints import CLEANER_OFFSETS, encode_offsets
from penstock.storage.directories.rules.clean_shutdown import CLEAN_SHUTDOWN_FILE
from penstock.storage.disk.memory_nodes import Operation
from penstock.storage.disk.rules.disk_errors import ClosedError
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig
from penstock.storage.log.rules.control_records import write_end_transaction_marker

OTHER_ID = TopicId(UUID("c2698a74-0e10-8d65-9981-c07acf362664"))
RECOVERY = "recovery-point-offset-checkpoint"


def test_clean_stop_is_marked_with_the_broker_epoch_until_the_next_load() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        assert node.manager.directories.previous_broker_epoch() == -1
        node.stop(broker_epoch=41)
        for path in ("/a", "/b"):
            assert node.files.read(f"{path}/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":41}'
        open_directories(node.manager, "cluster")
        assert node.manager.directories.previous_broker_epoch() == 41
        node.load()
        assert ".kafka_cleanshutdown" not in node.names("/a")
        node.files.kill()
        open_directories(node.manager, "cluster")
        assert node.manager.directories.previous_broker_epoch() == -1


def test_node_that_stops_before_its_logs_are_loaded_leaves_no_mark() -> None:
    with node_disk() as node:
        open_directories(node.manager, "cluster")
        node.stop()
        assert ".kafka_cleanshutdown" not in node.names()


def test_stop_writes_the_checkpoints_that_kafka_writes() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 3)
        append(node.log("planes"), 2)
        node.log("planes").increment_log_start_offset(1)
        node.stop(flights=3, unknown=9)
        assert node.files.read(f"/data/{RECOVERY}") == b"0\n2\nflights 0 3\nplanes 0 2\n"
        assert node.files.read("/data/log-start-offset-checkpoint") == b"0\n1\nplanes 0 1\n"
        assert node.files.read("/data/replication-offset-checkpoint") == b"0\n1\nflights 0 3\n"
        node.start()
        assert [(log.name, log.log_start_offset, log.log_end_offset) for log in node.manager.logs] == [
            ("flights-0", 0, 3),
            ("planes-0", 1, 2),
        ]
        assert node.manager.directories[0].checkpointed["replication-offset-checkpoint"] == {("flights", 0): 3}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_mark_of_a_clean_stop_is_not_there_before_everything_lasts(seed: int) -> None:
    """Power is lost at each step of a stop. With the mark nothing is read or made anew: all of it must be there."""
    marked = skip = 0
    while marked < 2:
        with node_disk() as node:
            node.config = LogConfig(index_interval_bytes=0)
            node.start()
            fresh, synced = node.log("flights"), node.log("planes")
            append(fresh, 3)
            append(synced, 3)
            synced.flush()
            append_aborted(synced)
            node.files.end_process(skip=skip)
            node.stop()
            node.files.heal()
            node.files.crash(Random(seed))
            is_marked = ".kafka_cleanshutdown" in node.names()
            node.start()
            if is_marked:
                for topic, end_offset in (("flights", 3), ("planes", 5)):
                    log = node.log(topic)
                    assert (log.log_end_offset, log.recovery_point, log.damage) == (end_offset, end_offset, None)
                    assert log.leader_epochs.entries == ((0, 0),)
                    folder = f"/data/{log.name}/{0:020d}"
                    assert node.files.size(f"{folder}.index") == 8 * (end_offset - 1)
                    assert node.files.size(f"{folder}.timeindex") == 12
                aborted = [one.first_offset for one in node.log("planes").aborted_transactions(0, 5)]
                assert aborted == [3], f"after {skip} calls"
            marked += is_marked
        skip += 1
    assert skip > 30


def append_aborted(log: Log) -> None:
    """A record of a transaction, and the marker that aborts it."""
    verification = log.producers.begin_verification(7, 0, 0, has_epoch_bumps=False, now_ms=NOW_MS)
    batch = write_batch(
        [Record(0, NOW_MS, b"key", b"value")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS, verification=verification)
    marker = write_end_transaction_marker(7, 0, is_commit=False, coordinator_epoch=0, now_ms=NOW_MS)
    log.append_of_coordinator(marker, leader_epoch=0, now_ms=NOW_MS)


@pytest.mark.parametrize("threads", [1, 3])
def test_logs_are_opened_by_as_many_jobs_at_once_as_the_config_says(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with node_disk() as node:
        node.start()
        for partition in range(400):
            node.log("flights", partition)
        node.stop()
        manager = node.new_manager()
        manager.set_recovery_threads(threads)
        open_directories(manager)
        running: set[asyncio.Future[object]] = set()
        most = 0

        def run_in_executor(*job: Any) -> Any:
            nonlocal most
            future = VirtualLoop.run_in_executor(node.loop, *job)
            running.add(future)
            most = max(most, len(running))
            future.add_done_callback(running.discard)
            return future

        monkeypatch.setattr(node.loop, "run_in_executor", run_in_executor)
        node.loop.run(manager.load(node.loop, config_of=lambda _: node.config, is_stray=lambda *_: False))
        assert sum(1 for _ in manager.logs) == 400
        assert most == threads


def test_stop_syncs_nothing_of_logs_that_took_nothing_in_since_their_last() -> None:
    with node_disk() as node:
        node.start()
        for partition in range(5):
            append(node.log("flights", partition))
        node.stop()
        node.start()
        append(node.log("flights", 2))
        before = node.files.operation_counts["sync"] + node.files.operation_counts["sync_directory"]
        node.stop()
        after = node.files.operation_counts["sync"] + node.files.operation_counts["sync_directory"]
        # The log, two indexes and their names; two checkpoints and the mark, each with its name.
        assert after - before <= 4 + 2 * 3


def test_stop_that_cannot_make_an_index_anew_closes_the_other_logs_and_leaves_no_mark() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 3)
        append(node.log("planes"), 3)
        node.stop()
        node.start()
        append(node.log("planes"))
        node.log("flights").offset_for_timestamp(0, 3)
        append(node.log("flights"))
        node.files.fail("write", under="/data/flights-0/00000000000000000000.timeindex", error=ENOSPC, count=None)
        append(node.log("flights"), timestamp_ms=NOW_MS + 1)
        node.stop()
        node.files.heal()
        assert ".kafka_cleanshutdown" not in node.names()
        assert node.failures == []
        node.files.crash(Random(2))
        node.start()
        assert node.log("planes").log_end_offset == 4
        assert node.log("flights").damage is None


def test_unreadable_checkpoint_costs_a_recovery_and_no_records() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 3)
        node.stop()
        node.files.write_atomically(f"/data/{RECOVERY}", b"0\n7\nflights 0 3\n")
        node.start()
        assert node.log("flights").log_end_offset == 3


def test_new_logs_go_to_the_directory_with_the_fewest_or_the_one_assigned() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        paths = [node.log("flights", partition).directory for partition in range(4)]
        assert paths == ["/a/flights-0", "/b/flights-1", "/a/flights-2", "/b/flights-3"]
        assigned = node.manager.directories[1].id
        log = node.manager.get_or_create("planes", 0, TopicId(TOPIC_ID), node.config, directory_id=assigned)
        assert log.directory == "/b/planes-0"


@pytest.mark.parametrize("operation", ["create", "open", "make_directory", "write"])
@pytest.mark.parametrize("skip", range(6))
def test_a_log_that_could_not_be_made_is_made_where_it_was_begun(operation: Operation, skip: int) -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        node.files.fail(operation, error=EMFILE, skip=skip)
        with suppress(OSError):
            node.log("flights", 0)
        node.files.heal()
        assigned = node.manager.directories[1].id
        log = node.manager.get_or_create("flights", 0, TopicId(TOPIC_ID), node.config, directory_id=assigned)
        append(log)
        folders = [path for path in ("/a/flights-0", "/b/flights-0") if node.files.exists(path)]
        assert folders == [log.directory]
        node.stop()
        node.start()
        assert node.log("flights", 0).log_end_offset == 1


def test_what_is_left_of_a_log_that_could_not_be_made_goes_with_its_partition() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        node.files.fail("create", error=EMFILE, count=None)
        with pytest.raises(OSError, match="EMFILE"):
            node.log("flights", 0)
        node.files.heal()
        assert node.files.exists("/a/flights-0")
        node.manager.delete("flights", 0)
        assert not node.files.exists("/a/flights-0")
        log = node.manager.get_or_create("flights", 0, OTHER_ID, node.config)
        assert log.topic_id == OTHER_ID


@pytest.mark.parametrize("seed", range(8))
def test_a_loss_of_power_brings_no_log_back_whose_partition_has_another_one(seed: int) -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        first = node.log("flights", 0)
        append(first)
        node.manager.delete("flights", 0)
        assigned = node.manager.directories[1].id
        log = node.manager.get_or_create("flights", 0, TopicId(TOPIC_ID), node.config, directory_id=assigned)
        append(log)
        log.flush()
        node.files.crash(Random(seed))
        node.start()
        assert node.log("flights", 0).directory == "/b/flights-0"


def test_new_log_goes_to_the_directory_that_an_operator_asked_for_unless_another_is_assigned() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        first, second = node.manager.directories
        for partition in (0, 1):
            node.manager.directory_choice.prefer(("flights", partition), second)
        assert node.log("flights", 0).directory == "/b/flights-0"
        log = node.manager.get_or_create("flights", 1, TopicId(TOPIC_ID), node.config, directory_id=first.id)
        assert log.directory == "/a/flights-1"
        # Once it was made the word is used up.
        node.manager.delete("flights", 0)
        assert node.log("planes", 0).directory == "/b/planes-0"
        assert node.log("flights", 0).directory == "/a/flights-0"


def test_only_the_latest_wishes_for_directories_are_kept() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        for partition in range(PREFERENCES_MAX + 1):
            node.manager.directory_choice.prefer(("flights", partition), node.manager.directories[1])
        assert node.log("flights", 0).directory == "/a/flights-0"
        assert node.log("flights", 1).directory == "/b/flights-1"
        assert node.log("flights", 2).directory == "/b/flights-2"


def test_log_of_another_topic_id_is_not_given_out() -> None:
    with node_disk() as node:
        node.start()
        node.log("flights")
        node.stop()
        node.manager = node.new_manager()
        open_directories(node.manager, "cluster")
        with pytest.raises(KafkaError) as raised:
            node.log("flights", topic_id=OTHER_ID)
        assert raised.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


def test_closed_logs_and_their_manager_refuse_whatever_would_change_them() -> None:
    with node_disk() as node:
        node.start()
        log = node.log("flights")
        append(log, 3)
        node.stop()
        files = node.files
        names = node.names("/data"), node.names(log.directory)
        before = [files.read(f"{log.directory}/{name}") for name in names[1]]
        batch = write_batch([Record(0, NOW_MS, b"key", b"value")])
        appends: list[Callable[[], object]] = [
            lambda: log.append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS),
            lambda: log.append_of_coordinator(batch, leader_epoch=0, now_ms=NOW_MS),
            lambda: log.append_as_follower(batch, now_ms=NOW_MS),
        ]
        for append_late in appends:
            with pytest.raises(KafkaError, match="The log of partition flights-0 is closed") as refused:
                append_late()
            assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        changes: list[Callable[[], object]] = [
            lambda: log.truncate_to(1),
            lambda: log.truncate_fully_and_start_at(7),
            lambda: node.log("new"),
            lambda: node.manager.truncate({log: 1}),
            lambda: node.manager.restart(log, 7, (), 0),
            lambda: node.manager.begin_repair("flights", 0, 1),
            lambda: node.manager.delete("flights", 0),
        ]
        for change in changes:
            with pytest.raises(ClosedError):
                change()
        assert log.delete_old_segments(3, NOW_MS) == 0
        assert (node.names("/data"), node.names(log.directory)) == names
        assert [files.read(f"{log.directory}/{name}") for name in names[1]] == before


def test_directories_stay_locked_when_their_logs_are_closed() -> None:
    with node_disk() as node:
        node.start()
        node.loop.run(node.manager.close(node.loop))
        assert CLEAN_SHUTDOWN_FILE in node.names()
        with pytest.raises(ConfigError, match="is in use by another node"):
            node.new_manager().directories.lock()
        node.manager.directories.unlock()
        node.start()


def test_a_stop_in_the_middle_of_loading_waits_for_the_log_that_is_being_opened() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"))
        node.files.kill()
        node.manager = node.new_manager()
        open_directories(node.manager, "cluster")
        loop = node.loop

        job_count = loop.job_count

        async def cancel_while_opening() -> int:
            loading = loop.create_task(
                node.manager.load(loop, config_of=lambda _: node.config, is_stray=lambda *_: False)
            )
            for _ in range(20):
                if loop.job_count == job_count + 2:
                    # The job that opens the log waits for its turn.
                    break
                await asyncio.sleep(0)
            loading.cancel()
            await asyncio.wait({loading})
            assert loading.cancelled()
            return sum(node.files.operation_counts.values())

        calls = loop.run(cancel_while_opening())
        loop.run(asyncio.sleep(1))
        assert sum(node.files.operation_counts.values()) == calls


def test_deleted_log_is_renamed_at_once_and_queued_for_removal() -> None:
    with node_disk() as node:
        node.start()
        log = node.log("flights")
        append(log)
        piece = log.read(0, max_bytes=1000, end_offset=1, min_one_batch=True).slices[0]
        node.manager.delete("flights", 0)
        node.manager.delete("flights", 0)
        assert node.manager.get("flights", 0) is None
        (folder,) = node.manager.removed_folders
        assert folder.path.startswith("/data/flights-0.")
        assert folder.path.endswith("-delete")
        assert folder.delay_ms == 60_000
        assert piece.read(0, piece.size), "a fetch under way gets its bytes"
        node.stop()
        node.start()
        assert [found.path for found in node.manager.removed_folders] == [folder.path], "a restart does not forget it"


def test_long_topic_name_is_cut_off_in_the_name_of_a_deleted_folder() -> None:
    with node_disk() as node:
        node.start()
        node.log("t" * 249)
        node.manager.delete("t" * 249, 0)
        assert len(node.manager.removed_folders[0].path) == len("/data/") + 255


def test_log_that_is_made_again_inherits_nothing_from_the_one_before() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 9)
        node.log("flights").increment_log_start_offset(5)
        node.stop()
        node.start()
        node.manager.delete("flights", 0)
        append(node.log("flights", topic_id=OTHER_ID), 2)
        node.files.kill()
        node.start()
        log = node.log("flights", topic_id=OTHER_ID)
        assert (log.log_start_offset, log.log_end_offset, log.damage) == (0, 2, None)


def test_folders_of_partitions_that_this_node_should_not_have_are_set_aside_and_kept() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"))
        node.log("planes")
        node.stop()
        seen: list[tuple[str, int, UUID | None]] = []

        def is_stray(topic: str, partition: int, topic_id: UUID | None) -> bool:
            seen.append((topic, partition, topic_id))
            return topic == "flights"

        node.start(is_stray)
        assert seen == [("flights", 0, TOPIC_ID), ("planes", 0, TOPIC_ID)]
        assert [log.name for log in node.manager.logs] == ["planes-0"]
        (stray,) = [name for name in node.names() if name.endswith("-stray")]
        assert "00000000000000000000.log" in node.names(f"/data/{stray}")
        assert node.log("flights", topic_id=OTHER_ID).log_end_offset == 0
        node.stop()
        node.start()
        assert stray in node.names()


def test_folders_that_are_no_logs_are_left_alone() -> None:
    with node_disk() as node:
        node.start()
        for name in ("__cluster_metadata-0", "remote-log-index-cache", "notes"):
            node.files.make_directories(f"/data/{name}")
        before = node.names()
        node.stop()
        node.start()
        assert list(node.manager.logs) == []
        assert set(before) <= set(node.names())


def test_partition_in_two_directories_stops_the_start() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        node.log("flights")
        node.files.make_directories("/b/flights-0")
        node.stop()
        open_directories(node.manager, "cluster")
        with pytest.raises(ConfigError, match="flights-0 has two logs, /a/flights-0 and /b/flights-0"):
            node.load()


def test_log_that_cannot_be_opened_is_offline_alone() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"))
        append(node.log("planes"))
        node.stop()
        node.files.write_atomically("/data/flights-0/partition.metadata", b"nonsense")
        node.start()
        assert [log.name for log in node.manager.logs] == ["planes-0"]
        with pytest.raises(OSError, match="topic id"):
            node.log("flights")
        node.manager.delete("flights", 0)


def test_error_takes_one_directory_and_its_logs_offline() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        log, other = node.log("flights"), node.log("planes")
        error = OSError(5, "Input/output error")
        node.manager.on_error(log.directory, error)
        node.manager.on_error(log.directory, error)
        assert node.failures == ["/a"]
        assert list(node.manager.logs) == [other]
        with pytest.raises(OSError, match="Input/output"):
            node.log("flights")
        with pytest.raises(OSError, match="while /a is offline"):
            node.log("weather")
        new = node.manager.get_or_create("weather", 0, TopicId(TOPIC_ID), node.config, is_new=True)
        assert new.directory == "/b/weather-0"
        node.manager.delete("flights", 0)
        node.stop()
        assert ".kafka_cleanshutdown" not in node.names("/a")
        assert ".kafka_cleanshutdown" in node.names("/b")
        node.start()
        assert len(list(node.manager.logs)) == 3


def test_directory_that_fails_from_the_start_leaves_the_others_in_use() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        append(node.log("flights"))
        append(node.log("planes"))
        node.stop()
        node.files.fail(under="/a", count=None)
        node.start()
        assert [log.name for log in node.manager.logs] == ["planes-0"]
        assert [directory.is_online for directory in node.manager.directories] == [False, True]
        assert node.manager.directories.previous_broker_epoch() == -1
        with pytest.raises(OSError, match="offline"):
            node.log("flights")
        node.stop()


@pytest.mark.parametrize("operations", [3, 8, 15, 25])
def test_directory_that_fails_while_its_logs_load_goes_offline(operations: int) -> None:
    with node_disk() as node:
        node.start()
        for topic in ("flights", "planes", "weather"):
            append(node.log(topic))
        node.files.kill()
        open_directories(node.manager, "cluster")
        node.files.fail(skip=operations, count=None)
        node.load()
        assert node.failures == ["/data"]
        assert list(node.manager.logs) == []
        node.stop()
        node.files.heal()
        node.start()
        assert [log.log_end_offset for log in node.manager.logs] == [1, 1, 1]


@pytest.mark.parametrize("number", [EMFILE, ENFILE, ENOMEM])
def test_shortage_at_the_start_stops_the_start_and_takes_no_directory_offline(number: int) -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        append(node.log("flights"))
        node.stop()
        outcomes = set()
        # Not a sync: one that fails ends a directory, whatever the reason.
        operations: tuple[Operation, ...] = ("lock", "list", "open", "read", "create", "write", "remove", "rename")
        for operation, skip in product(operations, range(8)):
            node.files.fail(operation, under="/a", error=number, skip=skip)
            try:
                node.start()
            except ConfigError as error:
                outcomes.add(str(error).partition(" be used: ")[0])
                node.manager.directories.unlock()
                node.files.heal()
            else:
                assert all(directory.is_online for directory in node.manager.directories), (operation, skip)
                node.files.heal()
                node.stop()
        assert node.failures == []
        assert outcomes == {"Log directory /a cannot"}


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("skip", range(5))
def test_a_log_of_which_a_read_fails_at_the_start_is_opened_a_little_later(skip: int, *, is_clean: bool) -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 3)
        if is_clean:
            node.stop()
        node.files.kill()
        node.files.fail("read", under="/data/flights-0/", skip=skip)
        node.start()
        node.loop.run(node.manager.open_postponed(node.loop))
        assert node.log("flights").log_end_offset == 3


@pytest.mark.parametrize(("topic_id", "is_kept"), [(TOPIC_ID, True), (OTHER_ID, False)])
def test_a_folder_whose_owner_cannot_be_read_at_the_start_is_no_stray_unless_it_turns_out_to_be_one(
    topic_id: UUID, *, is_kept: bool
) -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights", 0, topic_id))
        node.files.kill()
        node.files.fail("read", under="/data/flights-0/partition.metadata", count=3)
        node.start(lambda _topic, _partition, found: found not in (None, TOPIC_ID))
        for _ in range(3):
            with pytest.raises(OSError, match=r"partition\.metadata cannot be read"):
                node.log("flights")
            node.loop.run(node.manager.open_postponed(node.loop))
        assert node.log("flights").log_end_offset == (1 if is_kept else 0)
        assert any("-stray" in name for name in node.names()) is not is_kept


def test_a_topic_that_is_deleted_while_its_folder_has_no_topic_id_comes_back_empty() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"))
        node.files.kill()
        node.files.fail("read", under="/data/flights-0/partition.metadata")
        node.start()
        node.manager.delete("flights", 0)
        node.loop.run(node.manager.open_postponed(node.loop))
        assert node.log("flights", 0, OTHER_ID).log_end_offset == 0
        assert node.failures == []


def start_unreadable(node: NodeDisk, reads: int | None = None) -> None:
    """Start a node whose only log fails so many reads, or all."""
    node.start()
    append(node.log("flights"))
    node.files.kill()
    node.files.fail("read", under="/data/flights-0/00000000000000000000.log", count=reads)
    node.start()


def test_a_log_that_cannot_be_read_at_all_counts_as_lost_in_the_end() -> None:
    with node_disk() as node:
        start_unreadable(node)
        tries = 0
        while not node.manager.not_counted_on():
            with pytest.raises(OSError, match="cannot be read"):
                node.log("flights")
            tries += 1
            node.loop.run(node.manager.open_postponed(node.loop))
        assert tries == 7
        assert node.manager.begin_repair("flights", 0, None)
        assert not node.manager.not_counted_on()
        # What is fetched in its place cannot be read either: a second folder is not set aside, nor a third.
        append(node.log("flights"))
        assert node.manager.begin_repair("flights", 0, 0)
        for _ in range(20):
            node.loop.run(node.manager.open_postponed(node.loop))
        assert not node.manager.offline.is_retried(("flights", 0))
        assert not node.manager.not_counted_on()
        assert len([name for name in node.names() if name.endswith("-stray")]) == 1
        node.files.heal()
        for _ in range(100):
            node.loop.run(node.manager.open_postponed(node.loop))
        assert node.log("flights").log_end_offset == 0


def test_a_log_that_counts_as_lost_is_there_again_when_it_can_be_read() -> None:
    """Nothing may be there to repair it from. A try can cost as much as a recovery: they become rare."""
    with node_disk() as node:
        reads = 30
        start_unreadable(node, reads)
        turns = 0
        while "flights" not in (log.topic for log in node.manager.logs):
            turns += 1
            node.loop.run(node.manager.open_postponed(node.loop))
            assert turns < 64 * reads
        assert turns > 10 * reads
        assert node.log("flights").log_end_offset == 1
        assert not node.manager.not_counted_on()


@pytest.mark.parametrize("turns", range(0, 24, 3))
def test_a_lost_log_may_be_set_aside_while_it_is_opened(turns: int) -> None:
    with node_disk() as node:
        start_unreadable(node)
        while not node.manager.not_counted_on():
            node.loop.run(node.manager.open_postponed(node.loop))
        node.files.heal()

        async def repair_meanwhile() -> bool:
            opening = asyncio.create_task(node.manager.open_postponed(node.loop))
            for _ in range(turns):
                await asyncio.sleep(0)
            is_set_aside = node.manager.begin_repair("flights", 0, None)
            await opening
            return is_set_aside

        is_set_aside = node.loop.run(repair_meanwhile())
        log = node.log("flights")
        assert log.log_end_offset == (0 if is_set_aside else 1)
        append(log)
        assert any("-stray" in name for name in node.names()) is is_set_aside


def test_shortage_at_the_stop_leaves_no_mark_and_takes_no_directory_offline() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"))
        node.files.fail("write", error=EMFILE)
        node.stop()
        assert node.failures == []
        assert ".kafka_cleanshutdown" not in node.names()


def test_directory_that_fails_while_it_closes_is_not_marked_clean() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"))
        node.files.fail("sync")
        node.stop()
        assert node.failures == ["/data"]
        assert ".kafka_cleanshutdown" not in node.names()


def test_damage_is_found_again_by_every_start_until_the_metadata_decide() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 3)
        node.stop()
        node.files.remove("/data/.kafka_cleanshutdown")
        node.files.flip_bit("/data/flights-0/00000000000000000000.log", 100, 3)
        for _ in range(2):
            node.start()
            log = node.log("flights")
            assert log.damage is not None
            assert (log.damage.offset, log.log_end_offset) == (1, 1)
            node.stop()
            assert ".kafka_cleanshutdown" not in node.names()
        node.start()
        node.manager.truncate({node.log("flights"): 1})
        append(node.log("flights"))
        node.stop()
        node.start()
        assert node.log("flights").damage is None
        assert node.log("flights").log_end_offset == 2


def test_truncations_write_one_checkpoint_before_the_first_cut() -> None:
    with node_disk() as node:
        node.start()
        logs: list[Log] = [node.log("flights", partition) for partition in range(5)]
        for log in logs:
            append(log, 4)
        node.stop()
        node.start()
        logs = list(node.manager.logs)
        before = node.files.operation_counts["rename"]
        node.manager.truncate(dict.fromkeys(logs, 2))
        assert node.files.operation_counts["rename"] == before + 1
        node.files.crash(Random(4))
        node.start()
        assert all(log.damage is None and log.log_end_offset == 2 for log in node.manager.logs)


@pytest.mark.parametrize("is_begun_anew", [False, True], ids=["cut", "begun anew"])
def test_log_that_was_cut_below_its_start_keeps_what_comes_then(is_begun_anew: bool) -> None:
    """Found behind the end of the log, the start that it had before would make it begin anew there, empty."""
    with node_disk() as node:
        node.start()
        append(node.log("flights"), 6)
        node.log("flights").increment_log_start_offset(5)
        node.stop()
        node.start()
        if is_begun_anew:
            node.manager.restart(node.log("flights"), 2, (), 0)
        else:
            node.manager.truncate({node.log("flights"): 2})
        append(node.log("flights"))
        node.log("flights").flush()
        node.files.kill()
        node.start()
        log = node.log("flights")
        assert log.log_start_offset <= 2
        assert log.log_end_offset == 3


def _cut(node: NodeDisk) -> None:
    node.manager.truncate({node.log("flights"): 10})


def _cut_in_a_gap(node: NodeDisk) -> None:
    node.stop()
    for name in node.names("/data/flights-0"):
        if name.endswith(".log") and 10 <= int(name[:20]) < 40:
            node.files.remove(f"/data/flights-0/{name}")
    node.start()
    assert node.log("flights").log_end_offset == 60
    node.manager.truncate({node.log("flights"): 39})


def _begin_anew(node: NodeDisk) -> None:
    node.manager.restart(node.log("flights"), 10, (), 0)


def _repair(node: NodeDisk) -> None:
    node.manager.begin_repair("flights", 0, 10)
    node.loop.run_until_complete(node.manager.open_postponed(node.loop))


def _lose_the_end(node: NodeDisk) -> None:
    node.stop()
    node.files.remove("/data/.kafka_cleanshutdown")
    node.files.remove(f"/data/{RECOVERY}")
    for name in node.names("/data/flights-0"):
        if name.endswith(".log") and int(name[:20]) >= 10:
            node.files.remove(f"/data/flights-0/{name}")
    node.start()


def _lose_the_end_on_a_full_disk(node: NodeDisk) -> None:
    node.files.fail("create", under=f"/data/{CLEANER_OFFSETS}", error=ENOSPC, count=None)
    _lose_the_end(node)
    node.files.heal()
    node.manager.limit_cleaned_ends()


@pytest.mark.parametrize(
    "lose", [_cut, _cut_in_a_gap, _begin_anew, _repair, _lose_the_end, _lose_the_end_on_a_full_disk]
)
def test_where_compaction_may_have_left_gaps_says_nothing_of_what_a_log_takes_in_later(
    lose: Callable[[NodeDisk], None],
) -> None:
    """As in a folder that Apache Kafka has compacted."""
    with node_disk() as node:
        node.config = LogConfig(segment_bytes=200, cleanup_policy=frozenset({"compact"}))
        node.start()
        append(node.log("flights"), 60)
        node.stop()
        node.files.write(f"/data/{CLEANER_OFFSETS}", encode_offsets([(("flights", 0), 50)]))
        if lose is _repair:
            node.files.flip_bit(f"/data/flights-0/{10:020d}.log", 10, 1)
            node.files.remove("/data/.kafka_cleanshutdown")
        node.start()
        lose(node)
        log = node.log("flights")
        end_offset = log.log_end_offset
        assert end_offset <= 10
        append(log, 30)
        short = log.segment_base_offset_of(log.log_end_offset - 8)
        assert end_offset < short < log.active_segment_base_offset < 50
        node.files.kill()
        node.files.open(f"/data/flights-0/{short:020d}.log").truncate(0)
        node.start()
        assert node.log("flights").damage is None
        assert node.log("flights").log_end_offset == short


def test_logs_are_cut_though_the_disk_of_another_directory_is_full() -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        for name, directory in zip(("flights", "planes"), node.manager.directories, strict=True):
            append(node.manager.get_or_create(name, 0, TopicId(TOPIC_ID), node.config, directory_id=directory.id), 10)
        node.stop()
        node.files.write(f"/a/{CLEANER_OFFSETS}", encode_offsets([(("flights", 0), 9)]))
        node.start()
        node.files.fail("create", under=f"/a/{CLEANER_OFFSETS}", error=ENOSPC, count=None)
        with pytest.raises(OSError, match="ENOSPC"):
            node.manager.truncate({node.log("flights"): 5})
        node.manager.truncate({node.log("planes"): 5})
        assert node.log("planes").log_end_offset == 5


@pytest.mark.parametrize("operation", ["lock", "read"])
def test_logs_are_cut_though_another_directory_was_offline_from_the_start(operation: Operation) -> None:
    with node_disk("/a", "/b") as node:
        node.start()
        directory = node.manager.directories[0].id
        log = node.manager.get_or_create("flights", 0, TopicId(TOPIC_ID), node.config, directory_id=directory)
        append(log, 10)
        node.stop()
        node.files.fail(operation, under="/b", count=None)
        node.start()
        node.manager.truncate({node.log("flights"): 5})
        assert node.log("flights").log_end_offset == 5


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [None, 1, 2, 3], ids=["killed", "power lost 1", "power lost 2", "power lost 3"])
@pytest.mark.parametrize("old_start", [0, 7, 8], ids=["behind", "where it begins then", "further"])
def test_log_that_is_begun_anew_at_an_offset_is_never_there_without_the_producers_below(
    old_start: int, seed: int | None
) -> None:
    """Elsewhere, its leader is asked for them again."""
    with node_disk() as other:
        other.start()
        batch = write_batch([Record(0, NOW_MS, b"key", b"value")], producer_id=7, producer_epoch=0, base_sequence=0)
        other.log("flights").append_as_leader(produced(batch), leader_epoch=0, now_ms=NOW_MS)
        producers = other.log("flights").producers.below(7)
    skip = 0
    while True:
        with node_disk() as node:
            node.start()
            append(node.log("flights"), 9)
            node.log("flights").increment_log_start_offset(old_start)
            node.stop()
            node.start()
            node.files.end_process(skip=skip)
            try:
                node.manager.restart(node.log("flights"), 7, producers, NOW_MS)
            except OSError:
                is_done = False
            else:
                is_done = True
            node.files.heal()
            if seed is None:
                node.files.kill()
            else:
                node.files.crash(Random(seed))
            node.start()
            log = node.log("flights")
            assert log.damage is None
            if log.log_end_offset == 7:
                assert 7 in log.producers.entries, f"after {skip} calls"
        if is_done:
            assert skip > 5
            assert log.log_end_offset == 7
            return
        skip += 1


def test_config_of_a_topic_reaches_all_its_logs() -> None:
    with node_disk() as node:
        node.start()
        logs = [node.log("flights", partition) for partition in range(2)]
        other = node.log("planes")
        config = type(node.config)(retention_ms=5)
        node.manager.update_config("flights", config)
        node.manager.update_config("unknown", config)
        assert [log.config.retention_ms for log in (*logs, other)] == [5, 5, node.config.retention_ms]


def test_partition_that_cannot_be_opened_keeps_its_checkpoints_and_prevents_the_mark_of_a_clean_stop() -> None:
    with node_disk() as node:
        node.start()
        log = node.log("a")
        append(log, 5)
        log.flush()
        log.increment_log_start_offset(3)
        node.log("b")
        node.stop()
        node.files.flip_bit("/data/a-0/partition.metadata", 3, 0)
        node.start()
        node.manager.delete("b", 0)
        node.log("b", topic_id=OTHER_ID)
        node.stop()
        assert b"a 0 5" in node.files.read(f"/data/{RECOVERY}")
        assert b"a 0 3" in node.files.read("/data/log-start-offset-checkpoint")
        assert ".kafka_cleanshutdown" not in node.names("/data")


def test_partition_that_cannot_be_opened_makes_room_for_a_new_one_when_it_is_deleted() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("a"), 5)
        append(node.log("b"), 5)
        node.stop()
        for name in ("a", "b"):
            node.files.flip_bit(f"/data/{name}-0/partition.metadata", 3, 0)
        node.start(is_stray=lambda topic, _, topic_id: (topic, topic_id) == ("b", None))
        with pytest.raises(OSError, match="names no topic id"):
            node.log("a")
        node.manager.delete("a", 0)
        assert [node.log(name, topic_id=OTHER_ID).log_end_offset for name in ("a", "b")] == [0, 0]
        assert [name.partition(".")[0] for name in node.names() if name.endswith("-stray")] == ["a-0", "b-0"]
        node.stop()
        assert ".kafka_cleanshutdown" in node.names()


def test_repair_cuts_a_damaged_log_where_it_is_not_intact_and_it_can_be_closed_again() -> None:
    with node_disk() as node:
        node.start()
        log = node.log("a")
        append(log, 10)
        end_offset, size = log.log_end_offset, log.size_bytes
        log.flush()
        node.stop()
        node.files.remove("/data/.kafka_cleanshutdown")
        node.files.flip_bit(f"/data/a-0/{0:020d}.log", size // 2, 1)
        node.start()
        damaged = node.manager.get("a", 0)
        assert damaged is not None
        assert damaged.damage is not None
        assert node.manager.begin_repair("a", 0, None)
        assert node.manager.get("a", 0) is None
        with pytest.raises(OSError, match="is being repaired"):
            node.log("a")
        node.loop.run_until_complete(node.manager.open_postponed(node.loop))
        repaired = node.log("a")
        assert repaired.damage is None
        assert not node.manager.begin_repair("a", 0, None)
        assert 0 < repaired.log_end_offset < end_offset
        append(repaired)
        node.stop()
        assert ".kafka_cleanshutdown" in node.names()


def test_repair_sets_a_log_aside_that_cannot_be_opened_at_all() -> None:
    with node_disk() as node:
        node.start()
        append(node.log("a"), 3)
        node.stop()
        node.files.write("/data/a-0/partition.metadata", b"no log's")
        node.start()
        with pytest.raises(OSError, match=r"partition\.metadata"):
            node.log("a")
        assert node.manager.begin_repair("a", 0, None)
        assert node.log("a").log_end_offset == 0
        assert any(name.startswith("a-0.") and name.endswith("-stray") for name in node.names())
        assert not node.manager.begin_repair("b", 0, None)
