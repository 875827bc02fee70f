"""Which replicas go where when brokers join and leave."""

from collections import Counter

import pytest

from penstock.client.membership import Assignment
from penstock.local.errors import ClusterError
from penstock.local.resizing import moved_off, moved_over

THREE: Assignment = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2), 3: (1, 2, 3), 4: (2, 3, 1), 5: (3, 1, 2)}


def test_every_third_partition_goes_over_and_is_led_by_newcomers_in_turn() -> None:
    assert moved_over(THREE, (4, 5)) == {0: (4, 5, 3), 3: (5, 4, 3)}


def test_what_leaves_is_replaced_evenly_and_what_has_nothing_there_stays() -> None:
    grown = {**THREE, **moved_over(THREE, (4, 5))}
    moves = moved_off(grown, {4, 5}, {1, 2, 3})
    assert moves.keys() == {0, 3}
    shrunk = {**grown, **moves}
    assert all(set(replicas) == {1, 2, 3} for replicas in shrunk.values())
    assert set(Counter(replica for replicas in shrunk.values() for replica in replicas).values()) == {6}


def test_brokers_that_are_needed_cannot_leave() -> None:
    with pytest.raises(ClusterError, match="only 2 brokers stay"):
        moved_off(THREE, {3}, {1, 2})
