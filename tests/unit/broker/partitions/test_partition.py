"""Rules of one replica's leadership and high watermark."""

import pytest

from penstock.broker.partitions.partition import (
    NO_EPOCH,
    NO_LEADER,
    AdvanceHighWatermark,
    Effect,
    Partition,
    ReleaseWaiting,
    StartEpoch,
)
from penstock.protocol.errors import ErrorCode


def lead(
    partition: Partition, *, leader_epoch: int = 3, partition_epoch: int = 5, log_end_offset: int = 10
) -> tuple[Effect, ...]:
    return partition.become_leader(
        leader_id=1, leader_epoch=leader_epoch, partition_epoch=partition_epoch, log_end_offset=log_end_offset
    )


def test_new_leader_notes_its_epoch_before_anything_else() -> None:
    partition = Partition(high_watermark=7)
    partition.on_log_end(10)
    assert lead(partition) == (StartEpoch(leader_epoch=3, start_offset=10), AdvanceHighWatermark(to=10))
    assert (partition.is_leader, partition.leader_epoch, partition.partition_epoch) == (True, 3, 5)
    assert partition.leader_epoch_start_offset == 10


def test_same_registration_again_changes_nothing() -> None:
    partition = Partition(high_watermark=10)
    lead(partition)
    assert lead(partition) == ()


def test_stale_registration_is_ignored() -> None:
    partition = Partition(high_watermark=10)
    lead(partition)
    assert lead(partition, leader_epoch=2, partition_epoch=4) == ()
    assert partition.resign(leader_id=2, leader_epoch=2, partition_epoch=4) == ()
    assert (partition.is_leader, partition.leader_epoch) == (True, 3)


def test_partition_epoch_alone_keeps_the_leadership() -> None:
    partition = Partition(high_watermark=10)
    lead(partition)
    assert lead(partition, partition_epoch=6) == ()
    assert (partition.leader_epoch, partition.partition_epoch) == (3, 6)


def test_new_epoch_of_the_same_leader_releases_what_waits() -> None:
    partition = Partition(high_watermark=10)
    lead(partition)
    partition.on_log_end(12)
    assert lead(partition, leader_epoch=4, partition_epoch=6, log_end_offset=12) == (
        ReleaseWaiting(),
        StartEpoch(leader_epoch=4, start_offset=12),
    )


def test_new_epoch_of_the_same_leader_does_not_count_what_is_not_synced_yet() -> None:
    partition = Partition(high_watermark=10)
    lead(partition)
    lead(partition, leader_epoch=4, partition_epoch=6, log_end_offset=12)
    assert (partition.high_watermark, partition.is_latest_offset_known) == (10, False)
    partition.on_log_end(12)
    assert (partition.high_watermark, partition.is_latest_offset_known) == (12, True)


def test_resigning_releases_what_waits_once() -> None:
    partition = Partition(high_watermark=0)
    lead(partition)
    assert partition.resign(leader_id=NO_LEADER, leader_epoch=4, partition_epoch=6) == (ReleaseWaiting(),)
    assert partition.resign(leader_id=2, leader_epoch=5, partition_epoch=7) == ()
    assert (partition.is_leader, partition.leader_id) == (False, 2)


def test_high_watermark_follows_the_leaders_log_end() -> None:
    partition = Partition(high_watermark=0)
    lead(partition, log_end_offset=0)
    assert partition.on_log_end(4)
    assert not partition.on_log_end(4)
    assert partition.high_watermark == 4


def test_late_reports_never_move_the_high_watermark_back() -> None:
    partition = Partition(high_watermark=0)
    lead(partition, log_end_offset=0)
    partition.on_log_end(9)
    assert not partition.on_log_end(5)
    assert (partition.high_watermark, partition.log_end_offset) == (9, 9)


def test_a_replica_that_does_not_lead_keeps_its_high_watermark() -> None:
    partition = Partition(high_watermark=3)
    assert not partition.on_log_end(8)
    assert (partition.high_watermark, partition.log_end_offset) == (3, 8)


@pytest.mark.parametrize(
    ("believed", "expected"),
    [
        (NO_EPOCH, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epoch_of_the_client_is_compared_kip_320(believed: int, expected: ErrorCode) -> None:
    partition = Partition(high_watermark=0)
    lead(partition)
    assert partition.compare_epoch(believed) is expected
    assert partition.check_leader(believed) is expected


def test_epoch_is_compared_before_leadership() -> None:
    partition = Partition(high_watermark=0)
    partition.resign(leader_id=2, leader_epoch=3, partition_epoch=0)
    assert partition.check_leader(2) is ErrorCode.FENCED_LEADER_EPOCH
    assert partition.check_leader(3) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.check_leader(NO_EPOCH) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_latest_offset_is_known_once_the_high_watermark_reached_the_epoch_kip_207() -> None:
    partition = Partition(high_watermark=4)
    partition.on_log_end(10)
    lead(partition, log_end_offset=10)
    assert partition.is_latest_offset_known
    partition.leader_epoch_start_offset = 11
    assert not partition.is_latest_offset_known
