"""Each bug of one line (`chaos/mutants/line_mutants.py`) is caught by the unit test that is about it."""

import pytest
from directed_tests import failures_with

from penstock.chaos.mutants.known_bugs import applied
from penstock.chaos.mutants.line_mutants import BUGS

CAUGHT_BY = {
    "shrink-counts-when-proposed": "broker/replicas/test_rules_of_replication.py::"
    "test_rule_1_a_pending_shrink_still_counts",
    "own-epoch-ignored": "broker/replication/test_fetch_plan.py::"
    "test_epoch_that_the_follower_has_not_takes_another_round_kip_279",
    "oldest-transaction-ignored": "storage/log/test_producer_state.py::"
    "test_last_stable_offset_waits_for_the_marker_to_be_below_the_high_watermark",
    "producers-not-reloaded": "storage/log/test_log_cutting.py::test_truncation_cuts_epochs_and_producers",
    "epochs-not-cut": "storage/log/test_log_cutting.py::test_truncation_cuts_epochs_and_producers",
    "markers-before-the-decision": "broker/transactions/test_transaction_shard.py::"
    "test_nothing_follows_before_what_it_rests_on_is_committed",
    "old-generation-commits": "broker/groups/test_group_offsets.py::"
    "test_only_members_of_the_generation_commit_for_a_group_that_has_members",
    "active-before-replay": "quorum/controller/test_replay.py::"
    "test_a_leader_decides_nothing_before_it_took_in_a_large_snapshot",
    "snapshot-forgets-transactions": "storage/log/test_producer_snapshots.py::"
    "test_latest_intact_snapshot_in_range_is_loaded_and_others_removed",
    "transaction-index-not-cut": "storage/log/test_restarted_producers.py::"
    "test_a_cut_that_takes_the_marker_away_opens_its_transaction_again_after_a_restart",
    "gap-between-segments": "storage/log/test_power_loss.py::test_log_has_no_gap_where_an_older_segment_lost_its_end",
    "elr-does-not-count": "broker/replicas/test_rules_of_replication.py::"
    "test_rule_1_an_eligible_leader_counts_as_long_as_the_metadata_name_it",
    "unclean-stop-taken-for-clean": "quorum/decisions/test_brokers.py::"
    "test_a_single_replica_survives_a_kill_and_leads_with_a_higher_epoch",
    "unsynced-follower-counts": "broker/replication/test_replica_fetcher.py::"
    "test_what_is_not_synced_does_not_count_for_the_leader",
    "verification-survives-the-marker": "storage/log/test_producer_state.py::"
    "test_end_of_a_transaction_drops_the_verification_of_the_next_batch",
    "one-batch-remembered": "storage/log/test_producer_state.py::test_last_five_batches_are_known_as_duplicates",
    "marker-taken-for-written": "broker/coordinators/test_marker_sender.py::"
    "test_what_a_broker_does_not_write_is_asked_again_of_the_leader",
    "deleted-before-it-is-tiered": "broker/tiers/test_tiered_node.py::"
    "test_an_outage_of_the_tier_keeps_everything_on_the_disk",
    "unstable-is-copied": "broker/tiers/test_tiered_node.py::"
    "test_aborted_transactions_are_told_with_records_from_the_tier",
    "pending-offset-wins": "broker/groups/test_group_offsets.py::"
    "test_an_offset_of_a_transaction_that_is_older_or_aborted_does_not_count",
    "older-member-epoch-commits": "broker/groups/consumer/test_consumer_offsets.py::"
    "test_an_older_epoch_is_good_for_what_the_member_has_had_since_then",
    "join-behind-the-epoch-start": "broker/replicas/test_rules_of_replication.py::"
    "test_rule_3_joining_needs_the_start_of_the_epoch",
    "refused-not-remembered": "broker/apis/test_produce.py::"
    "test_batch_behind_one_that_was_refused_in_passing_is_refused_so_too",
    "deleted-producers-unknown": "broker/test_replication_of_nodes.py::"
    "test_a_follower_that_begins_at_the_leaders_log_start_recognises_retries_of_what_is_deleted",
    "gap-in-a-compacted-topic": "storage/log/test_recovery.py::"
    "test_batches_lost_at_the_end_of_an_unsynced_segment_end_the_log_there",
}


def test_every_mutant_has_its_test() -> None:
    assert sorted(CAUGHT_BY) == sorted(BUGS)


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_the_test_that_is_about_a_bug_catches_it(name: str) -> None:
    assert failures_with(applied(name), CAUGHT_BY[name])
