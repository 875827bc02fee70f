"""Those of the rules of replication that logs and whole nodes hold: 8, 10 and 12 (`test_rules_of_replication.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import memory_node
import pytest
from produced_batches import produced
from typed_ids import node_ids

from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.records import ConfigRecord, PartitionChangeRecord
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.log.log import Log
from penstock.storage.log.rules.config import LogConfig

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode

FOLDER = "/data/a-0"
CHECKPOINT = f"{FOLDER}/leader-epoch-checkpoint"
# Batches of one record, and the epochs of the leaders that wrote them.
EPOCHS = (0, 0, 2, 2, 5)
ENTRIES = ((0, 0), (2, 2), (5, 4))


def batch(offset: int, leader_epoch: int) -> memoryview:
    return memoryview(write_batch([Record(offset, 0, None, b"v")], leader_epoch=leader_epoch))


def open_log(files: MemoryFiles, *, is_clean: bool = True, recovery_point: int = 0) -> Log:
    return Log.open(
        files,
        FOLDER,
        topic="a",
        partition=0,
        topic_id=TopicId(UUID(int=7)),
        config=LogConfig(),
        is_clean=is_clean,
        recovery_point=recovery_point,
        now_ms=0,
    )


def followed(files: MemoryFiles) -> Log:
    """A follower's log."""
    files.make_directories("/data")
    log = open_log(files)
    for offset, epoch in enumerate(EPOCHS):
        log.append_as_follower(batch(offset, epoch), now_ms=0)
    return log


# Rule 8: the epoch cache truncates with the log and is rebuilt from batches in recovery; a follower takes epochs from
# batches.


def test_rule_8_a_follower_takes_epochs_from_the_batches() -> None:
    log = followed(MemoryFiles())
    assert log.leader_epochs.entries == ENTRIES


def test_rule_8_a_follower_asks_by_the_epoch_of_its_last_batch_not_by_its_leaders(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    for _ in range(3):
        node.elect("a", leader=2)
    partition = node.hosted()
    partition.append_as_follower(batch(0, 1), 0)
    assert (partition.state.leader_epoch, partition.log.leader_epochs.latest_epoch) == (3, 1)


def test_rule_8_a_follower_takes_no_batch_of_a_later_epoch_than_its_leaders(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(1, 2))
    partition = node.hosted()
    partition.append_as_follower(batch(0, 1), 0)
    before = partition.log.log_end_offset
    node.elect("a", leader=2)
    partition.append_as_follower(batch(0, 1), 0)
    assert (before, partition.log.log_end_offset) == (0, 1)


@pytest.mark.parametrize(
    ("offset", "entries"), [(5, ENTRIES), (4, ENTRIES[:2]), (3, ENTRIES[:2]), (2, ENTRIES[:1]), (0, ())]
)
def test_rule_8_the_epochs_are_cut_with_the_log(offset: int, entries: tuple[tuple[int, int], ...]) -> None:
    log = followed(MemoryFiles())
    log.truncate_to(offset)
    assert log.leader_epochs.entries == entries


def test_rule_8_the_epoch_of_a_leader_that_never_wrote_is_cut_when_it_follows() -> None:
    """Else the next leader, which knows nothing of that epoch, could not tell where the logs part."""
    log = followed(MemoryFiles())
    log.assign_leader_epoch(LeaderEpoch(6))
    latest = [log.leader_epochs.latest_epoch]
    log.truncate_to(log.log_end_offset)
    assert [*latest, log.leader_epochs.latest_epoch] == [6, 5]


@pytest.mark.parametrize("end", [3, 4, 5])
def test_rule_8_the_epochs_that_a_cut_left_are_on_disk(end: int) -> None:
    files = MemoryFiles()
    log = followed(files)
    log.flush()
    log.truncate_to(end)
    expected = log.leader_epochs.entries
    files.kill()
    assert open_log(files, is_clean=False, recovery_point=0).leader_epochs.entries == expected


@pytest.mark.parametrize("damage", ["gone", "garbled", "old"])
def test_rule_8_recovery_finds_the_epochs_in_the_batches(damage: str) -> None:
    files = MemoryFiles()
    log = followed(files)
    log.flush()
    files.kill()
    if damage == "gone":
        files.remove(CHECKPOINT)
    else:
        files.write(CHECKPOINT, b"what is this" if damage == "garbled" else b"0\n1\n0 0\n")
    assert open_log(files, is_clean=False).leader_epochs.entries == ENTRIES


# Rule 10: topic ids are checked everywhere; unknown folders become -stray, never deleted at once.


def test_rule_10_what_is_meant_for_a_topic_that_was_deleted_does_not_go_to_its_namesake(node: DataNode) -> None:
    old_id = node.create_topic()
    node.delete_topic("a")
    node.create_topic()
    assert node.produce(topic=old_id).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert node.fetch((0, 0), topic=old_id, version=17).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert node.hosted().log.log_end_offset == 0


def test_rule_10_a_session_that_knows_a_topic_by_its_id_is_told_of_its_end(node: DataNode) -> None:
    old_id = node.create_topic()
    begun = node.begin_fetch((0, 0), topic=old_id, version=17, session_epoch=0, max_wait_ms=0).answer
    node.delete_topic("a")
    node.create_topic()
    node.produce()
    going_on = node.begin_fetch(topic=old_id, version=17, session_id=begun.session_id, session_epoch=1, max_wait_ms=0)
    (topic,) = going_on.answer.responses
    assert topic.partitions[0].error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)


def test_rule_10_a_follower_of_the_topic_that_was_counts_for_nothing(node: DataNode) -> None:
    old_id = node.create_topic(replicas=(1, 2))
    node.delete_topic("a")
    node.create_topic(replicas=(1, 2))
    node.produce(acks=1)
    node.peer_node_id = NodeId(2)
    follower: dict[str, Any] = {"replica_id": 2, "replica_epoch": 2, "log_start_offset": 0, "version": 17}
    assert node.fetch((0, 1), topic=old_id, **follower).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert node.hosted().state.high_watermark == 0


def test_rule_10_a_log_of_another_topic_id_is_not_opened() -> None:
    files = MemoryFiles()
    followed(files).close()
    with pytest.raises(KafkaError) as raised:
        Log.open(
            files,
            FOLDER,
            topic="a",
            partition=0,
            topic_id=TopicId(UUID(int=8)),
            config=LogConfig(),
            is_clean=True,
            now_ms=0,
        )
    assert raised.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


def test_rule_10_folders_that_the_metadata_do_not_know_are_kept_as_stray() -> None:
    async def scenario() -> None:
        world = memory_node.World()
        async with world.running() as (_, connection):
            await memory_node.create_topic(connection, "a")
            await memory_node.produce(connection, "a", b"kept")
        # Another topic's, and one that no node knows.
        log = Log.open(
            world.files, "/data/b-0", topic="b", partition=0, topic_id=TopicId(UUID(int=9)), config=LogConfig(),
            is_clean=True, now_ms=0,
        )  # fmt: skip
        log.append_as_leader(produced(batch(0, 0)), leader_epoch=0, now_ms=0)
        log.flush()
        log.close()
        async with world.running() as (_, connection):
            names = world.files.list_directory("/data")
            (stray,) = [name for name in names if name.endswith("-stray")]
            assert stray.startswith("b-0.")
            assert world.files.read(f"/data/{stray}/00000000000000000000.log")
            assert await memory_node.end_offset(connection, "a") == 1

    memory_node.run(scenario)


# Rule 12: publishers run in a fixed order: configs before leadership.


def test_rule_12_a_leader_begins_with_the_configs_of_the_same_change(node: DataNode) -> None:
    """Alone in sync it would commit everything at once by what was said before."""
    topic_id = node.create_topic(leader=2, replicas=(1, 2))
    partition = node.hosted()
    partition.append_as_follower(batch(0, 0), 0)
    node.configs = replace(node.configs, min_insync_replicas=2)
    node.publish(
        PartitionChangeRecord(topic_id=TopicId(topic_id), partition_id=0, leader=NodeId(1), isr=node_ids(1)),
        ConfigRecord(resource_type=2, resource_name="a", name="min.insync.replicas", value="2"),
    )
    assert (partition.state.is_leader, partition.state.is_under_min_isr) == (True, True)
    assert partition.state.high_watermark == 0


def test_rule_12_a_new_partition_begins_with_the_configs_of_the_same_change() -> None:
    async def scenario() -> None:
        world = memory_node.World()
        async with world.running() as (node, connection):
            await memory_node.create_topic(connection, "a", flush_messages="1", min_insync_replicas="2")
            partition = node.parts.partitions.get_online("a", 0)
            assert (partition.log.config.flush_messages, partition.log.config.min_insync_replicas) == (1, 2)
            await memory_node.produce(connection, "a", b"synced")
            assert partition.log.recovery_point == 1
        # And so does one that was there before the node.
        async with world.running() as (node, _):
            assert node.parts.partitions.get_online("a", 0).log.config.flush_messages == 1

    memory_node.run(scenario)
