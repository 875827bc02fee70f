"""Each bug that was reported (`chaos/mutants/reported_mutants.py`) is caught by the unit test that is about it."""

import pytest
from directed_tests import failures_with

from penstock.chaos.mutants.forms import UNIT_TESTS
from penstock.chaos.mutants.known_bugs import applied
from penstock.chaos.mutants.reported_mutants import BUGS

CAUGHT_BY = {
    "any-live-replica-is-elected": "quorum/decisions/test_heartbeats.py::"
    "test_unclean_election_only_where_it_is_allowed",
    "readable-before-committed": "broker/apis/test_fetch.py::test_consumers_read_up_to_the_high_watermark",
    "partitions-added-in-memory": "broker/test_moving_transactions.py::"
    "test_a_transaction_is_whole_wherever_its_coordinator_went",
    "retry-answered-with-offset-0": "broker/apis/test_produce.py::"
    "test_duplicate_is_answered_with_the_first_offset_kip_98",
    "failed-load-is-final": "broker/coordinators/test_coordinator_context.py::"
    "test_a_read_that_fails_is_tried_again_and_loading_begins_anew",
    "fetch-begins-behind-the-batch": "broker/apis/test_fetch.py::test_fetch_inside_a_batch_returns_the_whole_batch",
}
"""Those that have directed runs; the others are in `forms.UNIT_TESTS`."""


def test_every_mutant_has_its_test() -> None:
    assert sorted(CAUGHT_BY) == sorted(BUGS.keys() - UNIT_TESTS.keys())


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_the_test_that_is_about_a_bug_catches_it(name: str) -> None:
    assert failures_with(applied(name), CAUGHT_BY[name])
