"""Partitions of a node: made, led, found and removed as the metadata says."""

from __future__ import annotations

from errno import EIO, EMFILE, ENFILE, ENOMEM, ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from waiting import loop_until

from penstock.broker.replicas.change_queue import CHANGES_PER_TURN
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.quorum.metadata.delta import MetadataDelta
from penstock.quorum.metadata.image import EMPTY_IMAGE
from penstock.quorum.metadata.records import DIRECTORY_UNASSIGNED
from penstock.storage.disk.rules.disk_errors import failed_read
from penstock.storage.log.log import Log
from penstock.storage.log.recovery import Damage
from penstock.storage.log.segment import Segment
from penstock.storage.log.segments import Segments

if TYPE_CHECKING:
    from unit.broker.conftest import DataNode


def error_of(node: DataNode, topic: str, index: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        node.partitions.get_online(topic, index)
    return raised.value.code


def test_new_topic_is_led_and_its_epoch_noted(node: DataNode) -> None:
    node.create_topic(partition_count=3)
    assert [node.hosted("a", index).state.is_leader for index in range(3)] == [True] * 3
    assert node.hosted().log.leader_epochs.entries == ((0, 0),)


def test_other_nodes_partitions_are_not_made(node: DataNode, tmp_path: Path) -> None:
    node.create_topic(leader=2, replicas=(2,))
    assert error_of(node, "a") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list(tmp_path.iterdir()) == []


def test_unknown_partitions(node: DataNode) -> None:
    node.create_topic()
    assert error_of(node, "none") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(node, "a", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(node, "a", -1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_added_partitions_are_made(node: DataNode) -> None:
    topic_id = node.create_topic()
    node.add_partition("a", 1)
    assert node.hosted("a", 1).topic_id == topic_id


def test_deleted_topic_takes_its_logs_along(node: DataNode, tmp_path: Path) -> None:
    node.create_topic(partition_count=2)
    partition = node.hosted()
    node.delete_topic("a")
    assert error_of(node, "a") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(tmp_path.iterdir()) == []


def test_partition_that_moves_away_is_removed(node: DataNode, tmp_path: Path) -> None:
    node.create_topic()
    node.reassign("a", 2)
    assert error_of(node, "a") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list(tmp_path.iterdir()) == []


def test_a_cut_that_fails_ends_the_log_there_and_is_finished_when_the_disk_can_be_read(
    node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elected meanwhile, it must not go on behind what is there no more."""
    node.create_topic(leader=2, replicas=(2, 1))
    partition = node.hosted()
    batches = [bytearray(write_batch([Record(0, 0, None, b"v")], leader_epoch=0)) for _ in range(3)]
    for offset, batch in enumerate(batches):
        batch[:8] = offset.to_bytes(8, "big")
        partition.append_as_follower(memoryview(batch), 0)

    def fail(_: Segment) -> int:
        raise failed_read("a.log", OSError(EIO, "the disk"))

    with monkeypatch.context() as patches:
        patches.setattr(Segment, "read_next_offset", fail)
        with pytest.raises(KafkaError, match="cannot be read"):
            node.partitions.truncate({partition: 1})
        assert (partition.state.log_end_offset, partition.log.log_end_offset) == (1, 1)
        assert partition.recheck()
        with pytest.raises(KafkaError, match="it could not be cut there"):
            partition.append_as_follower(memoryview(batches[1]), 0)
    assert not partition.recheck()
    partition.append_as_follower(memoryview(batches[1]), 0)
    assert (partition.state.log_end_offset, partition.log.log_end_offset) == (2, 2)


@pytest.mark.parametrize(("number", "is_damage"), [(EIO, True), (EMFILE, False), (ENFILE, False), (ENOMEM, False)])
def test_shortage_of_descriptors_or_memory_is_no_damage_of_a_log(
    node: DataNode, monkeypatch: pytest.MonkeyPatch, number: int, *, is_damage: bool
) -> None:
    node.create_topic()
    node.produce()
    partition = node.hosted()

    def fail(*_: object) -> None:
        raise failed_read("a.log", OSError(number, "the disk"))

    with monkeypatch.context() as patches:
        patches.setattr(Log, "check", fail)
        patches.setattr(Log, "read", lambda *_, **__: fail())
        with pytest.raises(KafkaError, match="cannot be read"):
            partition.read(0, 1000, 1, True)
    assert (partition.damage is not None) is is_damage
    assert node.failed_directories == []


def test_a_log_that_finds_no_room_to_begin_anew_is_empty_until_there_is(
    node: DataNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create_topic(leader=2, replicas=(2, 1))
    partition = node.hosted()
    partition.append_as_follower(memoryview(write_batch([Record(0, 0, None, b"v")], leader_epoch=0)), 0)

    def fail(*_: object, **__: object) -> None:
        raise OSError(ENOSPC, "no room")

    with monkeypatch.context() as patches:
        patches.setattr(Segments, "create", fail)
        with pytest.raises(KafkaError, match="no room"):
            node.partitions.restart(partition, 8, ())
        assert partition.damage is not None
        assert (partition.state.log_end_offset, partition.log.log_start_offset, partition.log.log_end_offset) == (
            0,
            0,
            0,
        )
        assert partition.recheck()
    assert not partition.recheck()
    node.partitions.restart(partition, 8, ())
    assert (partition.state.log_end_offset, partition.state.high_watermark) == (8, 8)


def test_topic_made_again_in_one_delta_is_another(node: DataNode) -> None:
    node.create_topic()
    node.produce()
    before = node.image
    node.delete_topic("a")
    after_id = node.create_topic()
    restarted = node.image
    node.partitions.publish(MetadataDelta.between(restarted, before), before)
    node.partitions.publish(MetadataDelta.between(before, restarted), restarted)
    assert node.hosted().topic_id == after_id
    assert node.hosted().log.log_end_offset == 0


def test_a_topic_is_found_by_its_id_as_by_its_name(node: DataNode, tmp_path: Path) -> None:
    first_id = node.create_topic(partition_count=2)
    assert node.partitions.find_by_id(first_id.bytes, 1) is node.hosted("a", 1)
    node.reassign("a", 2)
    assert node.partitions.find_by_id(first_id.bytes, 0) is None
    assert node.partitions.find_by_id(first_id.bytes, 1) is node.hosted("a", 1)
    node.delete_topic("a")
    second_id = node.create_topic()
    assert node.partitions.find_by_id(first_id.bytes, 1) is None
    assert node.partitions.find_by_id(second_id.bytes, 0) is node.hosted()
    node.reassign("a", 2)
    assert node.partitions.find_by_id(second_id.bytes, 0) is None
    third_id = node.create_topic("b")
    node.fail_directory()
    assert node.partitions.find_by_id(third_id.bytes, 0) is None


def test_first_delta_brings_every_partition(node: DataNode) -> None:
    node.create_topic(partition_count=2)
    node.produce()
    again = node.restarted({("a", 0): 1})
    again.publish(MetadataDelta.between(EMPTY_IMAGE, node.image), node.image)
    partition = again.get_online("a", 0)
    assert (partition.state.leader_epoch, partition.state.high_watermark) == (0, 1)
    assert again.topic_name(partition.topic_id) == "a"


@pytest.mark.parametrize(("checkpointed", "clipped"), [(0, 1), (2, 2), (9, 3)])
def test_checkpointed_high_watermark_is_clipped_to_the_log(node: DataNode, checkpointed: int, clipped: int) -> None:
    node.create_topic(replicas=(1, 2))
    for _ in range(3):
        node.produce(acks=1)
    node.hosted().log.increment_log_start_offset(1)
    node.elect("a", leader=2)
    again = node.restarted({("a", 0): checkpointed})
    again.publish(MetadataDelta.between(EMPTY_IMAGE, node.image), node.image)
    assert again.get_online("a", 0).state.high_watermark == clipped
    assert again.high_watermarks() == {("a", 0): clipped}


def test_failed_directory_takes_its_partitions_offline_for_good(node: DataNode, tmp_path: Path) -> None:
    node.create_topic()
    node.partitions.on_directory_failure(str(tmp_path / "other"))
    assert node.hosted().error is ErrorCode.NONE
    node.fail_directory()
    assert error_of(node, "a") is ErrorCode.KAFKA_STORAGE_ERROR
    node.elect("a", leader=1)
    assert error_of(node, "a") is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(
    "failure",
    [OSError(28, "No space left on device"), KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID), CorruptData("no log")],
)
def test_log_that_cannot_be_opened_makes_its_partition_offline(
    node: DataNode, failure: OSError | KafkaError | CorruptData
) -> None:
    node.logs.failure = failure
    node.create_topic()
    assert error_of(node, "a") is ErrorCode.KAFKA_STORAGE_ERROR
    node.delete_topic("a")
    assert error_of(node, "a") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_damaged_log_makes_its_partition_offline(node: DataNode) -> None:
    node.create_topic()
    node.hosted().log.damage = Damage(offset=0, reason="torn below the recovery point")
    again = node.restarted({})
    again.publish(MetadataDelta.between(EMPTY_IMAGE, node.image), node.image)
    assert again.find("a", 0) is None
    assert again.absence("a", 0) is ErrorCode.KAFKA_STORAGE_ERROR


def test_only_partitions_that_appear_while_the_node_runs_are_new(node: DataNode) -> None:
    node.create_topic()
    node.elect("a", leader=1)
    again = node.restarted({})
    again.publish(MetadataDelta.between(EMPTY_IMAGE, node.image), node.image)
    assert node.logs.asked == [("a", 0, DIRECTORY_UNASSIGNED, True), ("a", 0, DIRECTORY_UNASSIGNED, False)]


def test_changed_config_reaches_the_log(node: DataNode) -> None:
    node.create_topic()
    node.configure("a", max_message_bytes=99)
    assert node.hosted().log.config.max_message_bytes == 99


def test_hint_names_the_leader_as_the_listener_reaches_it_kip_951(node: DataNode) -> None:
    node.create_topic(leader=2, replicas=(2,))
    hint = node.partitions.leader_hint("a", 0, "PLAINTEXT")
    assert hint.leader == (2, 0)
    assert hint.endpoint is not None
    assert hint.endpoint.port == 9002
    assert node.partitions.leader_hint("a", 0, "SSL").endpoint is None
    assert node.partitions.leader_hint("none", 0, "PLAINTEXT").leader == (-1, -1)


def settle(node: DataNode) -> None:
    node.loop.run_until_complete(node.partitions.settled())


def led_count(node: DataNode) -> int:
    return sum(partition.state.is_leader for partition in node.partitions.hosted)


def test_many_partitions_are_made_in_turns_of_the_loop(node: DataNode) -> None:
    node.create_topic(partition_count=3 * CHANGES_PER_TURN)
    assert led_count(node) == CHANGES_PER_TURN
    assert error_of(node, "a", 3 * CHANGES_PER_TURN - 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "clients try again"
    settle(node)
    assert led_count(node) == 3 * CHANGES_PER_TURN


def test_changes_that_come_while_others_are_carried_out_come_after_them(node: DataNode, tmp_path: Path) -> None:
    node.create_topic(partition_count=2 * CHANGES_PER_TURN)
    node.elect("a", 2, index=2 * CHANGES_PER_TURN - 1)
    node.delete_topic("a")
    newer = node.create_topic()
    settle(node)
    assert [(partition.topic_id, partition.index) for partition in node.partitions.hosted] == [(newer, 0)]
    assert [folder.name for folder in tmp_path.iterdir()] == ["a-0"]


def test_change_that_cannot_be_carried_out_stops_the_node(node: DataNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic(partition_count=2 * CHANGES_PER_TURN)
    monkeypatch.setattr(node.partitions, "_assign", None)
    settle(node)
    assert len(node.failures) == 1


@pytest.mark.parametrize("has_id", [False, True])
def test_records_of_a_topic_made_again_never_go_to_the_one_before(node: DataNode, has_id: bool) -> None:
    node.create_topic(partition_count=20)
    settle(node)
    old = node.hosted("a", 19)
    node.delete_topic("a")
    topic_id = node.create_topic(partition_count=20)
    assert old.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = node.produce(topic=topic_id if has_id else "a", index=19)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert old.log.log_end_offset == 0
    settle(node)
    assert node.hosted("a", 19).topic_id == topic_id
    assert node.produce(topic=topic_id if has_id else "a", index=19).error_code == ErrorCode.NONE


def test_topic_that_is_deleted_before_its_turn_has_come_is_never_served(node: DataNode) -> None:
    node.create_topic("other", partition_count=20)
    node.create_topic("a")
    node.delete_topic("a")
    topic_id = node.create_topic("a")
    node.loop.run_until_complete(
        loop_until(lambda: node.partitions.find("a", 0) is not None, "the turn of the topic", interval_s=0)
    )
    assert node.hosted().topic_id == topic_id
    settle(node)
    assert node.hosted().topic_id == topic_id


def test_log_that_cannot_be_opened_is_repaired_when_it_is_outside_isr_and_elr(node: DataNode) -> None:
    node.logs.failure = CorruptData("not a log")
    node.create_topic(leader=2, replicas=(2, 1))
    assert node.logs.repairs == []
    node.publish_isr("a", 2)
    assert node.logs.repairs == [("a", 0, None)]
    assert error_of(node, "a") is ErrorCode.KAFKA_STORAGE_ERROR
    node.logs.failure = None
    node.partitions.retry_offline_partitions()
    assert node.replication.followed == {node.hosted(): 2}
