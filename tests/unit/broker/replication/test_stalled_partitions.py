"""Partitions that cannot be replicated: what is said at once, and what only when it lasts."""

from penstock.broker.replication.rules.stalled_partitions import LASTING_MS, REPEAT_MS, StalledPartitions

UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


def test_what_passes_by_itself_is_no_news() -> None:
    held_up = StalledPartitions()
    assert not any(held_up.note((b"t", index), f"t-{index}", UNKNOWN, 0) for index in range(100))
    assert held_up.summary(LASTING_MS - 1) is None


def test_what_does_not_pass_is_news_once() -> None:
    held_up = StalledPartitions()
    assert held_up.note((b"t", 0), "t-0", "its CRC is wrong", 0)
    assert not held_up.note((b"t", 0), "t-0", "its CRC is wrong", 1000)
    assert held_up.note((b"t", 0), "t-0", "another one", 2000)


def test_what_lasts_is_one_line_for_all_now_and_then() -> None:
    held_up = StalledPartitions()
    for index in range(3):
        held_up.note((b"t", index), f"t-{index}", UNKNOWN, index)
    held_up.note((b"t", 3), "t-3", "NOT_LEADER_OR_FOLLOWER", 1000)
    held_up.forget((b"t", 2))
    assert held_up.summary(LASTING_MS + 1000) == (
        f"partitions=3 longest_ms=6000 longest=t-0 reasons={UNKNOWN} 2, NOT_LEADER_OR_FOLLOWER 1"
    )
    assert held_up.summary(LASTING_MS + 2000) is None
    assert held_up.summary(LASTING_MS + 1000 + REPEAT_MS) is not None


def test_what_goes_on_is_forgotten() -> None:
    held_up = StalledPartitions()
    held_up.note((b"t", 0), "t-0", UNKNOWN, 0)
    held_up.forget((b"t", 0))
    assert held_up.summary(10 * LASTING_MS) is None
