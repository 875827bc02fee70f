"""The rules of replication that are easily missed, one after the other.

Rules 8, 10 and 12 are of logs and whole nodes (`test_rules_of_logs.py`). The controller's part of 2, 3, 4 and 6 is in
`tests/unit/quorum/decisions/test_rules_of_replication.py`, what requests do for 7 and 11 in `test_follower_fetch.py`.

A leader is replica 1 of brokers 1, 2 and 3 unless a test says otherwise.
"""

import pytest
from replica import LAG_MS_MAX, Replica, proposal_in, proposed
from typed_ids import node_ids

from penstock.broker.replicas.rules.effects import AdvanceHighWatermark, ProposeIsr, StartEpoch
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import NO_BROKER_EPOCH, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from penstock.quorum.metadata.image import PartitionRegistration
from penstock.quorum.metadata.records import DIRECTORY_LOST


def leader(**options: int) -> Replica:
    """Leads all three since just now."""
    replica = Replica(**options)  # type: ignore[arg-type]
    replica.register()
    return replica


# Rule 1: high watermark = least log end over the maximal ISR and caught-up eligible replicas; none of it moves while
# the committed ISR is below min(min.insync.replicas, replication factor).


def test_rule_1_high_watermark_is_the_least_log_end_of_the_isr() -> None:
    replica = leader()
    replica.append(5)
    assert replica.high_watermark == 0
    replica.fetch(2, 4)
    assert replica.high_watermark == 0
    assert AdvanceHighWatermark(to=3) in replica.fetch(3, 3)
    assert replica.fetch(3, 5) == (AdvanceHighWatermark(to=4),)


def test_rule_1_a_pending_shrink_still_counts() -> None:
    replica = leader()
    replica.append(5)
    replica.fetch(2, 5)
    replica.wait(LAG_MS_MAX + 1)
    replica.fetch(2, 5)
    assert replica.high_watermark == 0
    replica.register(isr=(1, 2))
    assert replica.high_watermark == 5


def test_rule_1_who_is_to_join_counts_before_it_is_committed() -> None:
    replica = leader()
    replica.register(isr=(1, 2))
    replica.append(5)
    replica.fetch(2, 5)
    assert replica.high_watermark == 5
    assert proposed(replica.fetch(3, 5)) == (1, 2, 3)
    replica.append(1)
    replica.fetch(2, 6)
    replica.now_ms += LAG_MS_MAX + 1
    assert replica.partition.on_time(replica.now_ms) == ()
    assert replica.high_watermark == 5
    assert replica.fetch(3, 6) == (AdvanceHighWatermark(to=6),)


def test_rule_1_a_caught_up_replica_counts_though_it_is_not_in_sync_yet() -> None:
    replica = leader()
    replica.register(isr=(1, 2))
    replica.append(5)
    replica.fetch(3, 4)
    replica.append(1)
    replica.fetch(3, 5)
    # It has had, a moment ago, all that there was then.
    replica.fetch(2, 6)
    assert replica.high_watermark == 5
    # It does not come back: the others go on without it.
    effects = replica.wait(LAG_MS_MAX + 1)
    assert AdvanceHighWatermark(to=6) not in effects
    assert proposal_in(effects) is None


def test_rule_1_another_process_of_a_caught_up_replica_counts_for_what_it_has_itself() -> None:
    """On emptied disks it has nothing: it would hold up the high watermark for a whole lag window."""
    replica = leader()
    replica.append(5)
    for follower in (2, 3):
        replica.fetch(follower, 5)
    replica.register(isr=(1, 2))
    replica.change_broker(3, epoch=23)
    replica.fetch(3, 0, epoch=23)
    replica.append(1)
    assert replica.fetch(2, 6) == (AdvanceHighWatermark(to=6),)


def test_rule_1_a_fenced_replica_holds_up_no_commit() -> None:
    replica = leader()
    replica.register(isr=(1, 2))
    replica.append(5)
    replica.change_broker(3, is_fenced=True)
    replica.fetch(3, 5)
    replica.append(1)
    replica.fetch(2, 6)
    assert replica.high_watermark == 6


def test_rule_1_an_eligible_leader_counts_as_long_as_the_metadata_name_it() -> None:
    replica = leader(min_insync_replicas=2)
    replica.register(isr=(1, 2))
    replica.append(5)
    replica.fetch(2, 5)
    assert replica.high_watermark == 5
    replica.register(isr=(1,), elr=(2,))
    replica.append(3)
    replica.partition.set_min_insync_replicas(1, replica.now_ms)
    replica.wait(LAG_MS_MAX + 1)
    assert replica.high_watermark == 5
    assert replica.register(elr=()) == (AdvanceHighWatermark(to=8),)


def test_rule_1_no_move_below_min_insync_replicas() -> None:
    replica = leader(min_insync_replicas=2)
    replica.register(isr=(1,))
    replica.append(5)
    assert (replica.high_watermark, replica.partition.is_under_min_isr) == (0, True)
    replica.register(isr=(1, 2))
    assert AdvanceHighWatermark(to=5) in replica.fetch(2, 5)


def test_rule_1_a_proposal_to_join_does_not_count_for_min_insync_replicas() -> None:
    replica = leader(min_insync_replicas=2)
    replica.register(isr=(1,))
    replica.append(5)
    assert proposed(replica.fetch(2, 5)) == (1, 2)
    assert (replica.high_watermark, replica.partition.is_under_min_isr) == (0, True)


def test_rule_1_min_insync_replicas_above_the_replication_factor_asks_for_all() -> None:
    replica = leader(min_insync_replicas=9)
    assert not replica.partition.is_under_min_isr
    replica.register(isr=(1, 2))
    assert replica.partition.is_under_min_isr


# Rule 2: one AlterPartition in flight, retried for ever; an unknown answer keeps the pending state until a higher
# partition epoch is replayed.


def lagging() -> tuple[Replica, ProposeIsr]:
    """A leader that proposes the ISR (1, 2)."""
    replica = leader()
    replica.append(5)
    replica.wait(LAG_MS_MAX // 2)
    replica.fetch(2, 5)
    effects = replica.wait(LAG_MS_MAX // 2 + 1)
    assert proposed(effects) == (1, 2)
    (effect,) = effects
    assert isinstance(effect, ProposeIsr)
    return replica, effect


def test_rule_2_one_proposal_at_a_time() -> None:
    replica, _ = lagging()
    assert replica.wait(LAG_MS_MAX * 9) == ()
    assert proposed(replica.fetch(3, 5)) is None


@pytest.mark.parametrize("error", [None, ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_rule_2_what_was_not_answered_is_asked_again(error: ErrorCode | None) -> None:
    replica, effect = lagging()
    for _ in range(3):
        assert replica.partition.on_isr_refused(effect.proposal, error) is effect.proposal
    assert replica.partition.pending_isr is effect.proposal


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_rule_2_an_answer_that_leaves_the_outcome_open_keeps_it_pending(error: ErrorCode) -> None:
    replica, effect = lagging()
    assert replica.partition.on_isr_refused(effect.proposal, error) is None
    pending = [replica.partition.pending_isr]
    assert replica.partition.maximal_isr == {1, 2, 3}
    replica.register(isr=(1, 2))
    assert [*pending, replica.partition.pending_isr] == [effect.proposal, None]
    assert replica.partition.maximal_isr == {1, 2}


def test_rule_2_success_waits_for_the_metadata() -> None:
    replica, effect = lagging()
    replica.partition.on_isr_changed(effect.proposal, PartitionEpoch(effect.proposal.partition_epoch + 1))
    assert replica.partition.maximal_isr == {1, 2, 3}
    assert replica.high_watermark == 0
    assert replica.register(isr=(1, 2)) == (AdvanceHighWatermark(to=5),)


def test_rule_2_success_without_a_change_ends_it() -> None:
    replica, effect = lagging()
    replica.partition.on_isr_changed(effect.proposal, effect.proposal.partition_epoch)
    assert replica.partition.pending_isr is None


def test_rule_2_metadata_of_the_same_partition_epoch_end_nothing() -> None:
    replica, effect = lagging()
    replica.register(partition_epoch=replica.registration.partition_epoch, isr=(1,))
    assert replica.partition.pending_isr is effect.proposal
    assert replica.partition.maximal_isr == {1, 2, 3}


def test_rule_2_an_answer_to_an_earlier_proposal_says_nothing_of_the_present_one() -> None:
    replica, effect = lagging()
    replica.register(isr=(1, 2))
    again = proposal_in(replica.fetch(3, 5))
    assert again is not None
    assert replica.partition.on_isr_refused(effect.proposal, ErrorCode.INELIGIBLE_REPLICA) is None
    replica.partition.on_isr_changed(effect.proposal, effect.proposal.partition_epoch)
    assert replica.partition.pending_isr is again


def test_rule_2_another_leadership_forgets_it() -> None:
    replica, effect = lagging()
    replica.register(leader=2)
    assert replica.partition.on_isr_refused(effect.proposal, None) is None


# Rule 3: joining the ISR needs log end ≥ high watermark and ≥ the leader epoch's start, not fenced, not shutting down,
# fetch broker epoch = registered epoch; refusal is INELIGIBLE_REPLICA.


def with_one_out() -> Replica:
    """3 is not in sync; the epoch started at 5, committed is 7."""
    replica = Replica(high_watermark=3, end=5)
    replica.register(isr=(1, 2))
    replica.append(2)
    replica.fetch(2, 7)
    assert replica.high_watermark == 7
    return replica


def test_rule_3_joining_needs_all_that_is_committed() -> None:
    replica = with_one_out()
    assert proposed(replica.fetch(3, 6)) is None
    assert proposed(replica.fetch(3, 7)) == (1, 2, 3)


def test_rule_3_joining_needs_the_start_of_the_epoch() -> None:
    replica = Replica(high_watermark=3, end=5)
    replica.register(isr=(1, 2))
    # Offset 3 and 4 may have been committed by the leader before.
    assert proposed(replica.fetch(3, 4)) is None
    assert proposed(replica.fetch(3, 5)) == (1, 2, 3)


@pytest.mark.parametrize("state", [{"is_fenced": True}, {"in_controlled_shutdown": True}, {"epoch": 14}])
def test_rule_3_joining_needs_a_live_process_that_stays(state: dict[str, int | bool]) -> None:
    replica = with_one_out()
    replica.change_broker(3, **state)
    assert proposed(replica.fetch(3, 7)) is None


def test_rule_3_who_is_lost_joins_when_it_has_told_where_it_is() -> None:
    replica = leader()
    here = replica.registration.directories
    replica.register(isr=(1, 2), directories=(*here[:2], DIRECTORY_LOST))
    replica.append(5)
    assert proposed(replica.fetch(3, 5)) is None
    replica.append(1)
    replica.fetch(2, 6)
    assert replica.high_watermark == 6, "it holds up nothing"
    replica.register(directories=here)
    assert proposed(replica.fetch(3, 6)) == (1, 2, 3)


def test_rule_3_the_proposal_carries_the_broker_epochs_that_were_heard() -> None:
    replica = leader()
    replica.register(isr=(1, 2))
    proposal = proposal_in(replica.fetch(3, 0))
    assert proposal is not None
    assert proposal.members == ((1, NO_BROKER_EPOCH), (2, NO_BROKER_EPOCH), (3, 13))
    assert (proposal.leader_epoch, proposal.partition_epoch) == (0, 1)


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_rule_3_a_refused_replica_counts_until_no_copy_of_its_proposal_can_be_taken(error: ErrorCode) -> None:
    replica = with_one_out()
    refused = proposal_in(replica.fetch(3, 7))
    assert refused is not None
    instead = replica.partition.on_isr_refused(refused, error)
    assert instead is not None
    assert [member for member, _ in instead.members] == [1, 2]
    # An earlier copy of the request may still come to the controller.
    assert replica.partition.maximal_isr == {1, 2, 3}
    # The same is asked until it is answered.
    assert replica.partition.on_isr_refused(instead, None) is instead
    replica.partition.on_isr_changed(instead, PartitionEpoch(instead.partition_epoch + 1))
    assert replica.partition.maximal_isr == {1, 2, 3}
    replica.register(isr=(1, 2))
    assert replica.partition.maximal_isr == {1, 2}
    assert proposed(replica.fetch(3, 7)) == (1, 2, 3)


# Rule 4: the leader epoch rises on every leader change, not on ISR changes; the partition epoch on every change.


def test_rule_4_an_isr_change_keeps_what_is_known_of_the_followers() -> None:
    replica = leader()
    replica.append(5)
    replica.fetch(2, 5)
    replica.fetch(3, 3)
    assert replica.register(isr=(1, 2)) == ()
    replica.now_ms += LAG_MS_MAX + 1
    assert replica.partition.on_time(replica.now_ms) == (AdvanceHighWatermark(to=5),)


def test_rule_4_the_same_leader_in_a_new_epoch_starts_anew() -> None:
    replica = leader()
    replica.append(5)
    replica.fetch(2, 5)
    assert StartEpoch(leader_epoch=LeaderEpoch(1), start_offset=5) in replica.register(leader=1)
    replica.fetch(3, 5)
    assert replica.high_watermark == 0
    replica.fetch(2, 5)
    assert replica.high_watermark == 5


# Rule 5: a new leader writes its epoch start before its first append, forgets followers' positions, gives them a full
# lag window, and does not know the latest offset until its high watermark reaches its epoch start (KIP-207).


def test_rule_5_a_new_leader_forgets_what_it_knew_of_followers() -> None:
    replica = leader()
    replica.append(5)
    replica.fetch(2, 5)
    replica.fetch(3, 5)
    replica.register(leader=2)
    effects = replica.register(leader=1)
    assert StartEpoch(leader_epoch=LeaderEpoch(2), start_offset=5) in effects
    replica.append(1)
    assert replica.high_watermark == 5
    replica.fetch(2, 6)
    assert replica.high_watermark == 5


def test_rule_5_members_have_a_full_lag_window_to_be_heard() -> None:
    replica = Replica(end=5)
    replica.now_ms += 10 * LAG_MS_MAX
    replica.register()
    assert proposed(replica.wait(LAG_MS_MAX)) is None
    assert proposed(replica.wait(1)) == (1,)


def test_rule_5_the_latest_offset_is_unknown_until_the_epoch_start_is_committed() -> None:
    replica = Replica(high_watermark=2, end=5)
    replica.register()
    assert not replica.partition.is_latest_offset_known
    replica.fetch(2, 5)
    replica.fetch(3, 4)
    assert (replica.high_watermark, replica.partition.is_latest_offset_known) == (4, False)
    replica.fetch(3, 5)
    assert replica.partition.is_latest_offset_known


# Rule 6: changing min.insync.replicas looks again at what waits.


def test_rule_6_fewer_needed_replicas_release_what_waited() -> None:
    replica = leader(min_insync_replicas=3)
    replica.register(isr=(1, 2))
    replica.append(5)
    replica.fetch(2, 5)
    assert replica.high_watermark == 0
    assert replica.partition.set_min_insync_replicas(2, replica.now_ms) == (AdvanceHighWatermark(to=5),)


# Rule 7: the log start offset travels in fetches; the low watermark is the least over live replicas.


def test_rule_7_deleted_is_what_all_live_replicas_have_deleted() -> None:
    replica = leader()
    replica.append(9)
    assert replica.partition.low_watermark(5) == -1
    replica.fetch(2, 9, start=5)
    replica.fetch(3, 9, start=4)
    assert replica.partition.low_watermark(5) == 4
    replica.change_broker(3, is_fenced=True)
    assert replica.partition.low_watermark(5) == 5


# Rule 9: a follower bounds consumers by its own high watermark, and never moves it back.


def test_rule_9_a_followers_high_watermark_is_within_its_log() -> None:
    replica = Replica()
    replica.register(leader=2)
    replica.append(3)
    assert replica.partition.on_leader_offsets(9, 0)
    assert replica.high_watermark == 3
    assert not replica.partition.on_leader_offsets(2, 0)
    replica.append(4)
    assert replica.partition.on_leader_offsets(6, 0)
    assert replica.high_watermark == 6


def test_rule_9_a_cut_below_the_high_watermark_takes_it_along() -> None:
    replica = Replica(high_watermark=7, end=9)
    replica.register(leader=2)
    replica.partition.on_truncated(log_start_offset=0, log_end_offset=8)
    assert (replica.high_watermark, replica.partition.log_end_offset) == (7, 8)
    replica.partition.on_truncated(log_start_offset=0, log_end_offset=4)
    assert replica.high_watermark == 4
    replica.partition.on_truncated(log_start_offset=20, log_end_offset=20)
    assert replica.high_watermark == 20


def test_rule_9_what_the_leader_has_committed_counts_as_soon_as_the_log_does() -> None:
    """With `flush.messages` that is later than the leader says it, and it does not say it again."""
    replica = Replica(end=3)
    replica.register(leader=2)
    assert replica.partition.on_leader_offsets(5, 0)
    assert replica.high_watermark == 3
    assert replica.append(4)
    assert replica.high_watermark == 5


@pytest.mark.parametrize("is_cut", [True, False])
def test_rule_9_what_another_leader_said_is_of_another_log(is_cut: bool) -> None:
    replica = Replica(end=3)
    replica.register(leader=2)
    replica.partition.on_leader_offsets(5, 0)
    if is_cut:
        replica.partition.on_truncated(log_start_offset=0, log_end_offset=3)
    else:
        replica.register(leader=3)
    assert not replica.append(4)
    assert (replica.high_watermark, replica.partition.deleted_end_offset) == (3, -1)


# Rule 11: what is not synced does not count where it has to be.


def test_rule_11_the_leaders_own_log_counts_when_it_is_synced() -> None:
    replica = leader()
    replica.end = 5
    replica.fetch(2, 5)
    replica.fetch(3, 5)
    assert replica.high_watermark == 0
    assert replica.partition.on_log_end(4, replica.now_ms)
    assert replica.high_watermark == 4


# In-sync members.


def test_member_that_keeps_up_with_a_busy_leader_stays() -> None:
    replica = leader()
    for _ in range(30):
        # Each fetch has what was there at the fetch before, and never all.
        end = replica.end
        replica.append(7)
        replica.fetch(2, end)
        replica.fetch(3, end)
        assert proposed(replica.wait(LAG_MS_MAX // 2)) is None


def test_quiet_partition_keeps_members_that_have_all_of_it() -> None:
    replica = leader()
    replica.append(5)
    replica.fetch(2, 5)
    replica.fetch(3, 5)
    assert replica.wait(100 * LAG_MS_MAX) == ()


def test_removed_replica_does_not_count_any_more() -> None:
    replica = leader()
    replica.append(5)
    replica.fetch(2, 5)
    directories = replica.registration.directories[:2]
    registration = PartitionRegistration(
        replicas=node_ids(1, 2),
        directories=directories,
        isr=node_ids(1, 2),
        leader=NodeId(1),
        leader_epoch=LeaderEpoch(1),
        partition_epoch=PartitionEpoch(3),
    )
    replica.partition.register(registration, log_end_offset=5, now_ms=replica.now_ms)
    replica.fetch(2, 5)
    assert replica.high_watermark == 5
    assert (
        replica.partition.check_follower(NodeId(3), LeaderEpoch(1), BrokerEpoch(13)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    )
