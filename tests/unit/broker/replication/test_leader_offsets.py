"""What a follower makes of its leader's answers on leader epochs."""

from __future__ import annotations

import pytest

from penstock.broker.replication.leader_offsets import epoch_starts
from penstock.protocol.ids import LeaderEpoch


@pytest.mark.parametrize(
    ("ends", "start", "end", "expected"),
    [
        ([(0, 100), (1, 300), (2, 500)], 0, 250, [(0, 0), (1, 100)]),
        ([(0, 100), (1, 300), (2, 500)], 0, 300, [(0, 0), (1, 100)]),
        ([(4, 500)], 120, 200, [(4, 120)]),
        ([(3, 120), (4, 500)], 120, 200, [(4, 120)]),
        # An epoch without a record.
        ([(3, 150), (4, 150), (5, 500)], 120, 200, [(3, 120), (5, 150)]),
        ([], 0, 0, []),
    ],
)
def test_an_epoch_starts_where_the_one_before_ends(
    ends: list[tuple[int, int]], start: int, end: int, expected: list[tuple[int, int]]
) -> None:
    found = epoch_starts([(LeaderEpoch(epoch), epoch_end) for epoch, epoch_end in ends], start, end)
    assert list(found) == expected
