"""Rules of one replica's leadership: what the metadata make of it, and what requests are told."""

import pytest
from replica import Replica

from penstock.broker.replicas.rules.effects import (
    AdvanceHighWatermark,
    Follow,
    ReleaseWaiting,
    StartEpoch,
    StopFollowing,
)
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NO_LEADER_EPOCH, BrokerEpoch, LeaderEpoch, NodeId
from penstock.quorum.metadata.records import NO_LEADER


def alone(*, high_watermark: int = 0, end: int = 0) -> Replica:
    return Replica(replicas=(1,), high_watermark=high_watermark, end=end)


def test_new_leader_notes_its_epoch_before_anything_else() -> None:
    replica = alone(high_watermark=7, end=10)
    assert replica.register() == (StartEpoch(leader_epoch=LeaderEpoch(0), start_offset=10), AdvanceHighWatermark(to=10))
    partition = replica.partition
    assert (partition.is_leader, partition.leader_epoch, partition.partition_epoch) == (True, 0, 0)


def test_same_registration_again_changes_nothing() -> None:
    replica = alone()
    replica.register()
    assert replica.register(partition_epoch=0) == ()


def test_stale_registration_is_ignored() -> None:
    replica = alone()
    replica.register(leader_epoch=3, partition_epoch=5)
    assert replica.register(leader_epoch=2, partition_epoch=4) == ()
    assert replica.register(leader=2, leader_epoch=2, partition_epoch=4) == ()
    assert (replica.partition.is_leader, replica.partition.leader_epoch) == (True, 3)


def test_partition_epoch_alone_keeps_the_leadership() -> None:
    replica = alone()
    replica.register()
    assert replica.register() == ()
    assert (replica.partition.leader_epoch, replica.partition.partition_epoch) == (0, 1)


def test_new_epoch_of_the_same_leader_releases_what_waits() -> None:
    replica = alone()
    replica.register()
    replica.append(2)
    assert replica.register(leader=1) == (ReleaseWaiting(), StartEpoch(leader_epoch=LeaderEpoch(1), start_offset=2))


def test_new_epoch_of_the_same_leader_does_not_count_what_is_not_synced_yet() -> None:
    replica = alone()
    replica.register()
    replica.end = 12
    replica.register(leader=1)
    assert (replica.high_watermark, replica.partition.is_latest_offset_known) == (0, False)
    replica.partition.on_log_end(12)
    assert (replica.high_watermark, replica.partition.is_latest_offset_known) == (12, True)


def test_replica_follows_the_leader_of_each_epoch() -> None:
    replica = Replica()
    assert replica.register(leader=2) == (Follow(leader_id=NodeId(2), leader_epoch=LeaderEpoch(0)),)
    assert replica.register(isr=(2, 3)) == ()
    assert replica.register(leader=2) == (ReleaseWaiting(), Follow(leader_id=NodeId(2), leader_epoch=LeaderEpoch(1)))
    assert replica.register(leader=3) == (ReleaseWaiting(), Follow(leader_id=NodeId(3), leader_epoch=LeaderEpoch(2)))
    assert replica.register(leader=NO_LEADER) == (ReleaseWaiting(), StopFollowing())
    assert replica.register(leader=1) == (ReleaseWaiting(), StartEpoch(leader_epoch=LeaderEpoch(4), start_offset=0))


def test_follower_stops_to_fetch_before_it_leads() -> None:
    replica = Replica(end=4)
    replica.register(leader=2)
    effects = replica.register(leader=1, isr=(1,))
    assert effects == (
        ReleaseWaiting(),
        StopFollowing(),
        StartEpoch(leader_epoch=LeaderEpoch(1), start_offset=4),
        AdvanceHighWatermark(to=4),
    )


def test_leader_that_is_replaced_leads_no_more() -> None:
    replica = alone()
    replica.register()
    assert replica.register(leader=NO_LEADER) == (ReleaseWaiting(),)
    assert (replica.partition.is_leader, replica.partition.leader_id) == (False, NO_LEADER)


def test_high_watermark_of_a_leader_alone_follows_its_log_end() -> None:
    replica = alone()
    replica.register()
    assert replica.append(4)
    assert not replica.append(0)
    assert replica.high_watermark == 4


def test_late_reports_never_move_the_high_watermark_back() -> None:
    replica = alone()
    replica.register()
    replica.append(9)
    assert not replica.partition.on_log_end(5)
    assert (replica.high_watermark, replica.partition.log_end_offset) == (9, 9)


def test_a_replica_that_does_not_lead_keeps_its_high_watermark() -> None:
    replica = Replica(high_watermark=3)
    assert not replica.append(8)
    assert (replica.high_watermark, replica.partition.log_end_offset) == (3, 8)


@pytest.mark.parametrize(
    ("believed", "expected"),
    [
        (NO_LEADER_EPOCH, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epoch_of_the_client_is_compared_kip_320(believed: int, expected: ErrorCode) -> None:
    replica = alone()
    replica.register(leader_epoch=3)
    assert replica.partition.compare_epoch(LeaderEpoch(believed)) is expected
    assert replica.partition.check_leader(LeaderEpoch(believed)) is expected


def test_epoch_is_compared_before_leadership() -> None:
    replica = Replica()
    replica.register(leader=2, leader_epoch=3)
    assert replica.partition.check_leader(LeaderEpoch(2)) is ErrorCode.FENCED_LEADER_EPOCH
    assert replica.partition.check_leader(LeaderEpoch(3)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica.partition.check_leader(NO_LEADER_EPOCH) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("replica_id", "leader_epoch", "broker_epoch", "expected"),
    [
        (2, 3, 12, ErrorCode.NONE),
        (2, 2, 12, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 4, 12, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (9, 3, 12, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (9, NO_LEADER_EPOCH, 12, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, 3, 11, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_follower_is_known_by_its_epochs(
    replica_id: int, leader_epoch: int, broker_epoch: int, expected: ErrorCode
) -> None:
    replica = Replica()
    replica.register(leader_epoch=3)
    assert (
        replica.partition.check_follower(NodeId(replica_id), LeaderEpoch(leader_epoch), BrokerEpoch(broker_epoch))
        is expected
    )
