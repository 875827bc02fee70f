"""Each known bug of the metadata quorum is caught by the unit test that is about it."""

import pytest
from directed_tests import failures_with

from penstock.chaos.mutants.quorum_mutants import MUTANTS, mutant_named

DIRECTED = {
    "truncate-always": "raft/test_core.py::test_a_delayed_heartbeat_takes_nothing_that_is_not_committed_yet",
    "send-before-sync": "raft/test_core.py::test_only_a_leader_s_entries_leave_before_its_disk_has_them",
    "vote-not-on-disk": "raft/test_core.py::test_a_vote_is_on_the_disk_before_it_is_sent_and_survives_a_restart",
    "local-reads": "raft/test_core.py::test_a_barrier_needs_answers_sent_after_it_began",
    "duplicate-votes": "raft/test_core.py::test_a_voter_has_one_vote",
    "older-term-acknowledges": "raft/test_core.py::test_an_acknowledgement_counts_in_its_own_term_only",
    "snapshot-without-log-match": "raft/test_core.py::test_a_snapshot_message_commits_nothing",
    "new-disk-votes": "raft/test_eligibility.py::test_an_empty_disk_that_hears_of_data_waits",
    "decides-too-early": "controller/test_controller_leadership.py::"
    "test_a_leader_answers_nothing_before_an_entry_of_its_epoch",
    "follower-answers-before-sync": "raft/test_core.py::test_only_a_leader_s_entries_leave_before_its_disk_has_them",
    "leader-counts-before-sync": "raft/test_consensus_port.py::test_a_start_hears_everything_again_in_a_new_epoch",
    "snapshot-without-its-epoch": "voter/test_voter_disk.py::"
    "test_an_installed_snapshot_of_another_history_voids_the_tail",
    "barrier-without-an-own-entry": "raft/test_core.py::"
    "test_a_new_leader_begins_no_barrier_before_an_entry_of_its_own_term_is_committed",
    "votes-of-earlier-terms-count": "raft/test_core.py::test_a_vote_counts_in_its_own_term_only",
    "votes-for-shorter-logs": "raft/test_core.py::test_no_voter_votes_for_a_log_that_ends_before_its_own",
    "acknowledged-with-the-snapshot": "raft/test_core.py::"
    "test_what_follows_an_installed_snapshot_is_not_acknowledged_with_it",
    "new-disk-counts": "raft/test_eligibility.py::test_a_new_disk_under_an_old_id_waits_until_it_has_caught_up",
}


def test_every_mutant_has_its_test() -> None:
    assert sorted(DIRECTED) == sorted(mutant.name for mutant in MUTANTS)


@pytest.mark.parametrize("name", DIRECTED)
def test_the_test_that_is_about_a_bug_catches_it(name: str) -> None:
    assert failures_with(mutant_named(name).applied(), f"quorum/{DIRECTED[name]}")
