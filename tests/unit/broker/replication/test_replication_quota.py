"""How much replication may move in a second (KIP-73)."""

import pytest

from penstock.broker.replication.rules.replication_quota import UNLIMITED, ReplicationQuota
from penstock.protocol.ids import NodeId

WINDOWS, WINDOW_MS = 11, 1_000


def quota(byte_rate_max: int = 1_000) -> ReplicationQuota:
    made = ReplicationQuota(window_count=WINDOWS, window_ms=WINDOW_MS)
    made.limit(byte_rate_max)
    return made


def test_what_was_moved_slower_than_the_rate_is_not_held_up() -> None:
    slow = quota()
    for second in range(60):
        assert not slow.is_exceeded(1_000 * second)
        slow.record(1_000, 1_000 * second)


def test_one_answer_may_exceed_it_and_the_time_that_this_takes_is_waited_for() -> None:
    used = quota()
    used.record(5_000, 100)
    assert used.is_exceeded(100)
    assert used.allowed_ms(100) == 5_100
    assert not used.is_exceeded(5_100)


def test_within_one_window_as_much_as_the_rate_is_free() -> None:
    used = quota()
    used.record(600, 0)
    used.record(400, 500)
    assert not used.is_exceeded(500)
    used.record(1, 500)
    assert used.is_exceeded(500)
    assert not used.is_exceeded(1_001)


def test_the_rate_holds_over_a_long_time_whatever_the_pieces() -> None:
    used = quota()
    now_ms = moved = 0
    while now_ms < 120_000:
        now_ms = used.allowed_ms(now_ms)
        used.record(3_000, now_ms)
        moved += 3_000
    assert moved == pytest.approx(120 * 1_000, rel=0.15)


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    """So a rate that is smaller than the smallest piece lets one through each time the windows are over."""
    used = quota(byte_rate_max=0)
    assert not used.is_exceeded(0)
    used.record(1_000_000, 0)
    assert used.allowed_ms(5) == WINDOWS * WINDOW_MS
    assert not used.is_exceeded(WINDOWS * WINDOW_MS)


def test_a_changed_rate_holds_at_once_for_what_was_moved_before() -> None:
    used = quota(byte_rate_max=100)
    used.record(5_000, 0)
    assert used.is_exceeded(4_999)
    used.limit(1_000)
    assert used.allowed_ms(0) == 5_000
    used.limit(UNLIMITED)
    assert not used.is_exceeded(0)


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [("*", {0, 1, 2}), ("0:1,1:2, 2:1 ".strip(), {0, 2}), ("0:2", set()), ("", set())],
)
def test_throttled_are_the_replicas_of_this_broker_that_the_topic_names(replicas: str, throttled: set[int]) -> None:
    used = quota()
    used.throttle("t", "*", NodeId(1))
    used.throttle("t", replicas, NodeId(1))
    assert {partition for partition in range(3) if used.is_throttled("t", partition)} == throttled
    assert not used.is_throttled("other", 0)
    assert used.is_set is bool(throttled)


def test_without_a_rate_no_fetch_has_to_wait() -> None:
    used = quota(byte_rate_max=UNLIMITED)
    used.throttle("t", "*", NodeId(1))
    assert not used.is_set
