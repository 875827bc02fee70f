"""Which copy is read, which is to be deleted, and what the order of events decides (KIP-405)."""

from __future__ import annotations

from uuid import UUID

from penstock.broker.tiers.rules.remote_segment import RemoteSegment, SegmentState, SegmentUpdate, TierPartition
from penstock.broker.tiers.rules.remote_segments import RemoteSegments
from penstock.broker.tiers.rules.tier_plan import Retention, expire, known_log_start, recovered_epochs, tiered_end
from penstock.protocol.ids import LeaderEpoch, NodeId, TopicId
from penstock.storage.log.leader_epochs import LeaderEpochs

PARTITION = TierPartition("t", TopicId(UUID(int=9)), 0)
STARTED, FINISHED, DELETING, DELETED = SegmentState
NOW_MS = 1_000_000


def segment(number: int, start: int, end: int, *epochs: tuple[int, int], timestamp_ms: int = NOW_MS) -> RemoteSegment:
    """Records [start, end]; of epoch 0 unless it says (epoch, first offset)."""
    return RemoteSegment(
        partition=PARTITION,
        id=UUID(int=number),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=timestamp_ms,
        broker_id=NodeId(1),
        event_ms=0,
        size_bytes=100,
        leader_epochs=tuple((LeaderEpoch(epoch), first) for epoch, first in epochs or ((0, start),)),
        state=STARTED,
        has_aborted_transactions=False,
    )


def update(number: int, state: SegmentState) -> SegmentUpdate:
    return SegmentUpdate(partition=PARTITION, id=UUID(int=number), broker_id=NodeId(1), event_ms=0, state=state)


def copied(*some: RemoteSegment) -> RemoteSegments:
    segments = RemoteSegments()
    for one in some:
        assert segments.apply(one)
        assert segments.apply(update(one.id.int, FINISHED))
    return segments


def found(segments: RemoteSegments, offset: int, epoch: int = 0) -> int | None:
    one = segments.find(LeaderEpoch(epoch), offset)
    return None if one is None else one.id.int


def end(segments: RemoteSegments, *epochs: tuple[int, int], start: int = 0, log_end: int = 1_000) -> int:
    return tiered_end(segments, LeaderEpochs(epochs or ((0, 0),)), start, log_end)


def test_a_copy_is_read_between_its_end_and_its_deletion() -> None:
    segments = RemoteSegments()
    assert segments.apply(segment(1, 0, 9))
    assert found(segments, 5) is None
    segments.apply(update(1, FINISHED))
    assert found(segments, 5) == 1
    assert found(segments, 10) is None
    segments.apply(update(1, DELETING))
    assert found(segments, 5) is None
    assert len(segments) == 1
    segments.apply(update(1, DELETED))
    assert len(segments) == 0


def test_an_old_leaders_end_of_a_copy_that_is_being_deleted_is_dropped() -> None:
    segments = RemoteSegments()
    segments.apply(segment(1, 0, 9))
    segments.apply(update(1, DELETING))
    assert not segments.apply(update(1, FINISHED))
    assert found(segments, 5) is None


def test_updates_of_unknown_segments_are_dropped() -> None:
    segments = RemoteSegments()
    for state in (FINISHED, DELETING, DELETED):
        assert not segments.apply(update(1, state))


def test_events_that_come_again_change_nothing() -> None:
    segments = copied(segment(1, 0, 9))
    assert segments.apply(update(1, FINISHED))
    assert found(segments, 5) == 1
    assert len(segments.of_epoch(LeaderEpoch(0))) == 1


def test_a_record_is_read_from_the_copy_of_its_epoch() -> None:
    segments = copied(segment(1, 0, 99, (0, 0), (2, 60)), segment(2, 50, 80, (1, 50)))
    assert [found(segments, 70, epoch) for epoch in (0, 1, 2)] == [None, 2, 1]


def test_a_copy_that_a_larger_one_covers_is_superseded() -> None:
    small, large = segment(1, 0, 90), segment(2, 0, 200)
    segments = copied(small, large)
    assert found(segments, 50) == 2
    assert [segments.is_superseded(one) for one in segments] == [True, False]


def test_a_smaller_copy_that_comes_later_hides_nothing() -> None:
    segments = copied(segment(1, 0, 200), segment(2, 50, 100))
    assert [found(segments, offset) for offset in (60, 150)] == [1, 1]
    assert [segments.is_superseded(one) for one in segments] == [False, True]


def test_copies_that_overlap_are_both_read() -> None:
    segments = copied(segment(1, 0, 100), segment(2, 50, 200))
    assert [found(segments, offset) for offset in (10, 60, 150)] == [1, 2, 2]
    assert not any(segments.is_superseded(one) for one in segments)


def test_the_tier_has_a_log_up_to_the_first_gap() -> None:
    assert end(copied(segment(1, 0, 9), segment(2, 10, 19), segment(3, 30, 39))) == 20
    assert end(copied(segment(3, 30, 39))) == 0


def test_records_of_another_lineage_are_not_this_logs() -> None:
    """An unclean election: what the old leader copied behind offset 5 was never in this log."""
    assert end(copied(segment(1, 0, 9)), (0, 0), (1, 5)) == 5


def test_a_copy_of_several_epochs_is_one_run_to_its_end() -> None:
    assert end(copied(segment(1, 0, 99, (0, 0), (3, 40))), (0, 0), (3, 40)) == 100


def test_an_unfinished_copy_is_deleted_only_once_its_records_are_up_there() -> None:
    """Whether its end is still on its way no one can tell: were it deleted before, a replica that took that end for
    granted could have dropped its segment."""
    segments = RemoteSegments()
    segments.apply(segment(1, 0, 9))
    epochs = LeaderEpochs(((0, 0),))

    def deletable() -> list[int]:
        plan = expire(
            segments,
            epochs,
            Retention(-1, -1),
            log_start_offset=0,
            tiered_end_offset=10,
            untiered_bytes=0,
            now_ms=NOW_MS,
        )
        return [one.id.int for one in plan.segments]

    assert deletable() == []
    segments.apply(segment(2, 0, 9))
    segments.apply(update(2, FINISHED))
    assert deletable() == [1]


def expiry(
    segments: RemoteSegments, retention: Retention, *, untiered: int = 0, start: int = 0
) -> tuple[int, list[int]]:
    plan = expire(
        segments,
        LeaderEpochs(((0, 0),)),
        retention,
        log_start_offset=start,
        tiered_end_offset=30,
        untiered_bytes=untiered,
        now_ms=NOW_MS,
    )
    return plan.log_start_offset, [one.id.int for one in plan.segments]


def test_retention_by_time_moves_the_log_start_and_then_deletes() -> None:
    segments = copied(
        segment(1, 0, 9, timestamp_ms=NOW_MS - 500),
        segment(2, 10, 19, timestamp_ms=NOW_MS - 50),
        segment(3, 20, 29, timestamp_ms=NOW_MS - 500),
    )
    assert expiry(segments, Retention(100, -1)) == (10, [1])
    assert expiry(segments, Retention(-1, -1)) == (0, [])


def test_retention_by_size_counts_what_only_the_disk_has() -> None:
    segments = copied(segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 29))
    assert expiry(segments, Retention(-1, 300)) == (0, [])
    assert expiry(segments, Retention(-1, 300), untiered=99) == (0, [])
    assert expiry(segments, Retention(-1, 300), untiered=100) == (10, [1])
    assert expiry(segments, Retention(-1, 0)) == (30, [1, 2, 3])


def test_what_lies_below_the_log_start_is_deleted() -> None:
    segments = copied(segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 29))
    assert expiry(segments, Retention(-1, -1), start=15) == (15, [1])


def test_a_deletion_that_did_not_end_goes_on() -> None:
    segments = copied(segment(1, 0, 9))
    segments.apply(update(1, DELETING))
    assert expiry(segments, Retention(-1, -1)) == (0, [1])


def test_a_lost_log_start_is_that_of_the_first_copy_of_any_lineage() -> None:
    segments = copied(segment(1, 40, 49, (7, 40)), segment(2, 50, 59))
    assert known_log_start(segments, 0, 80) == 40
    assert known_log_start(segments, 45, 80) == 45
    assert known_log_start(RemoteSegments(), 0, 80) == 80


def test_a_lost_log_start_is_not_before_the_epochs_of_the_first_copy() -> None:
    """Its first records were deleted when it was made, and their epoch forgotten: no reader would find them."""
    segments = copied(segment(1, 40, 49, (7, 43)))
    assert known_log_start(segments, 0, 80) == 43


def test_lost_epochs_are_those_of_the_copies_that_led_to_the_first_one_known() -> None:
    segments = copied(
        segment(1, 0, 9),
        segment(2, 10, 29, (0, 10), (2, 20)),
        # Of another lineage, which the leader of epoch 2 cut off.
        segment(3, 20, 39, (1, 20)),
        segment(4, 30, 49, (2, 30), (5, 45)),
        # Later than what is known.
        segment(5, 50, 59, (7, 50)),
    )
    found = recovered_epochs(segments, 4, LeaderEpoch(5), 48)
    epochs = LeaderEpochs(((5, 48),))
    epochs.replace_below(48, found)
    assert epochs.entries == ((0, 4), (2, 20), (5, 45))


def test_epochs_below_the_log_start_are_not_wanted_back() -> None:
    segments = copied(segment(1, 0, 9), segment(2, 10, 29, (2, 10)))
    assert recovered_epochs(segments, 15, LeaderEpoch(3), 30) == ((2, 15),)
