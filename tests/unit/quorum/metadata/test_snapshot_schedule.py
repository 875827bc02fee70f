"""When a snapshot of the metadata is due."""

import pytest

from penstock.quorum.metadata.snapshot_schedule import SnapshotSchedule


@pytest.mark.parametrize(
    ("new_bytes", "has_new", "now_ms", "is_due"),
    [
        (99, True, 1_999, False),
        (100, True, 1_000, True),
        (0, True, 2_000, True),
        (100, False, 9_000, False),
    ],
)
def test_bytes_or_time_make_one_due_when_something_is_new(
    new_bytes: int, has_new: bool, now_ms: int, is_due: bool
) -> None:
    schedule = SnapshotSchedule(max_bytes=100, interval_ms=1_000, now_ms=1_000)
    assert schedule.is_due(new_bytes=new_bytes, has_new=has_new, now_ms=now_ms) is is_due


def test_the_time_counts_from_the_last_one() -> None:
    schedule = SnapshotSchedule(max_bytes=100, interval_ms=1_000, now_ms=0)
    schedule.on_snapshot(700)
    assert schedule.next_check_ms() == 1_700
    assert not schedule.is_due(new_bytes=1, has_new=True, now_ms=1_699)
    assert schedule.is_due(new_bytes=1, has_new=True, now_ms=1_700)


def test_an_interval_of_zero_is_none() -> None:
    schedule = SnapshotSchedule(max_bytes=100, interval_ms=0, now_ms=0)
    assert schedule.next_check_ms() is None
    assert not schedule.is_due(new_bytes=99, has_new=True, now_ms=10**12)
