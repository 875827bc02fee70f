"""What a follower asks a leader for, and what it need not say again (KIP-227)."""

from collections.abc import Callable

from penstock.broker.replication.rules.divergence import truncation_offset
from penstock.broker.replication.rules.fetch_plan import DELAY_MS_MIN, FetchPlan, FollowedKey, PlannedFetch
from penstock.protocol.ids import LeaderEpoch
from penstock.protocol.replica_fetch import FollowedPartition

A, B, C = ((bytes(16), index) for index in range(3))
DELAY_MS_MAX = 1_000


class Followed:
    """Partitions and where their logs end."""

    def __init__(self, *keys: FollowedKey) -> None:
        self.ends: dict[FollowedKey, int] = dict.fromkeys((A, B, C), 0)
        self.log_start_offset = 0
        self.leader_epoch = LeaderEpoch(1)
        self.plan = FetchPlan(self.position_of, delay_ms_max=DELAY_MS_MAX)
        self.now_ms = 0
        self.number = 0
        for key in keys:
            self.plan.add(key)

    def position_of(self, key: FollowedKey) -> FollowedPartition:
        return FollowedPartition(self.leader_epoch, self.ends[key], LeaderEpoch(1), self.log_start_offset)

    def ask(self) -> PlannedFetch:
        planned = self.plan.next_fetch(self.now_ms)
        assert planned is not None
        self.number = planned.number
        return planned

    def fetch(self, session_id: int = 8) -> PlannedFetch:
        """One exchange that goes well."""
        planned = self.ask()
        self.plan.on_answer(session_id)
        return planned

    def expects(self, key: FollowedKey) -> bool:
        """Of the answer to the last request."""
        return self.plan.expects(key, self.number)

    def take_in(self, key: FollowedKey, count: int = 1) -> None:
        assert self.expects(key)
        self.ends[key] += count
        self.plan.on_progress(key)


def named(planned: PlannedFetch) -> list[tuple[FollowedKey, int]]:
    return [((topic_id, index), position.fetch_offset) for topic_id, index, position in planned.partitions]


def test_first_fetch_names_everything_and_wants_a_session() -> None:
    followed = Followed(A, B)
    planned = followed.ask()
    assert (planned.session_id, planned.session_epoch, named(planned)) == (0, 0, [(A, 0), (B, 0)])


def test_next_fetch_names_what_has_moved() -> None:
    followed = Followed(A, B)
    followed.fetch()
    followed.take_in(B, 3)
    planned = followed.fetch()
    assert (planned.session_id, planned.session_epoch, named(planned)) == (8, 1, [(B, 3)])
    planned = followed.fetch()
    assert (planned.session_epoch, named(planned), planned.forgotten) == (2, [], [])


def test_leader_without_room_for_a_session_is_told_everything_each_time() -> None:
    followed = Followed(A)
    waits = [not followed.plan.begins_session]
    followed.fetch(session_id=0)
    assert followed.ask().session_epoch == 0
    # It waits for something to tell: else it would ask again and again.
    assert [*waits, not followed.plan.begins_session] == [False, True]


def test_session_that_is_lost_begins_anew_and_closes_the_old_one() -> None:
    followed = Followed(A, B)
    followed.fetch()
    followed.ask()
    followed.plan.end_session()
    planned = followed.ask()
    assert (planned.session_id, planned.session_epoch, len(planned.partitions)) == (8, 0, 2)


def test_partition_that_is_followed_no_more_is_forgotten_once() -> None:
    followed = Followed(A, B)
    followed.fetch()
    followed.plan.remove(A)
    assert followed.fetch().forgotten == [A]
    assert followed.fetch().forgotten == []


def test_nothing_to_follow_asks_for_nothing() -> None:
    followed = Followed(A)
    followed.fetch()
    followed.plan.remove(A)
    assert followed.plan.next_fetch(0) is None
    followed.plan.add(B)
    planned = followed.fetch()
    assert (named(planned), planned.forgotten) == ([(B, 0)], [A])


def test_partition_that_failed_rests_and_comes_back() -> None:
    followed = Followed(A, B)
    followed.fetch()
    followed.plan.delay(A, followed.now_ms)
    assert followed.fetch().forgotten == [A]
    assert followed.plan.next_due_ms == DELAY_MS_MIN
    followed.now_ms += DELAY_MS_MIN
    assert named(followed.fetch()) == [(A, 0)]


def test_what_the_leader_was_not_asked_for_is_no_news_when_it_is_left_out() -> None:
    """A request that says nothing would end the wait of the one under way."""
    followed = Followed(A)
    followed.fetch()
    leave_out: tuple[Callable[[FollowedKey], None], ...] = (
        lambda key: followed.plan.delay(key, followed.now_ms),
        lambda key: followed.plan.pause(key, 1_000),
        followed.plan.remove,
    )
    for leave in leave_out:
        followed.plan.add(B)
        assert followed.plan.has_news
        leave(B)
        assert not followed.plan.has_news
    followed.plan.remove(A)
    assert followed.plan.has_news


def test_delays_grow_with_each_failure_in_a_row_up_to_a_limit() -> None:
    followed = Followed(A)
    delays = []
    for _ in range(8):
        followed.ask()
        followed.plan.delay(A, followed.now_ms)
        due_ms = followed.plan.next_due_ms
        assert due_ms is not None
        delays.append(due_ms - followed.now_ms)
        followed.now_ms = due_ms
    assert delays == [20, 40, 80, 160, 320, 640, 1_000, 1_000]
    followed.fetch()
    followed.take_in(A)
    followed.plan.delay(A, followed.now_ms)
    assert followed.plan.next_due_ms == followed.now_ms + DELAY_MS_MIN


def test_answer_to_another_position_is_not_expected() -> None:
    followed = Followed(A)
    followed.fetch()
    followed.ends[A] = 5
    assert not followed.expects(A)
    followed.plan.remove(A)
    assert not followed.expects(A)


def test_answer_of_an_earlier_leader_epoch_is_not_expected() -> None:
    followed = Followed(A)
    followed.fetch()
    followed.leader_epoch = LeaderEpoch(2)
    assert not followed.expects(A)
    followed.plan.on_moved(A)
    ((*_, position),) = followed.fetch().partitions
    assert position.leader_epoch == 2
    assert followed.expects(A)


def test_position_that_moved_by_itself_is_told_with_the_next_request() -> None:
    followed = Followed(A)
    followed.fetch()
    followed.ends[A] = 5
    followed.plan.on_moved(A)
    assert named(followed.fetch()) == [(A, 5)]
    assert followed.expects(A)


def test_retention_here_changes_nothing_of_the_answer_and_is_told_behind_it() -> None:
    followed = Followed(A)
    followed.fetch()
    followed.take_in(A, 3)
    followed.fetch()
    followed.log_start_offset = 2
    followed.take_in(A, 0)
    ((*_, position),) = followed.fetch().partitions
    assert position.log_start_offset == 2


def test_new_leader_epoch_is_asked_at_once_behind_the_poll_under_way() -> None:
    followed = Followed(A)
    followed.fetch()
    followed.ask()
    news = [followed.plan.has_news]
    followed.plan.add(B)
    assert [*news, followed.plan.has_news] == [False, True]
    assert (followed.ask().session_epoch, followed.plan.needs_session) == (2, False)


def test_answer_to_the_poll_does_not_count_for_what_was_told_behind_it() -> None:
    followed = Followed(A)
    followed.fetch()
    poll = followed.ask()
    followed.plan.add(B)
    behind = followed.ask()
    # The poll brings something, so the answer to the second, made before the leader hears of that, brings it again.
    followed.plan.on_answer(8)
    assert followed.plan.expects(A, poll.number)
    followed.ends[A] = 1
    followed.plan.on_progress(A)
    third = followed.ask()
    assert (named(behind), named(third)) == ([(B, 0)], [(A, 1)])
    assert not followed.plan.expects(A, behind.number)
    assert followed.plan.expects(B, behind.number)
    followed.plan.on_moved(A)
    assert not followed.plan.has_news
    assert followed.plan.expects(A, third.number)


def test_logs_part_at_the_end_of_the_last_epoch_that_both_have() -> None:
    assert truncation_offset((LeaderEpoch(3), 12), (LeaderEpoch(3), 15), 20) == 12
    assert truncation_offset((LeaderEpoch(3), 12), (LeaderEpoch(3), 10), 20) == 10
    assert truncation_offset((LeaderEpoch(3), 25), (LeaderEpoch(3), 30), 20) == 20


def test_epoch_that_the_follower_has_not_takes_another_round_kip_279() -> None:
    assert truncation_offset((LeaderEpoch(3), 12), (LeaderEpoch(2), 9), 20) == 9


def test_leader_alone_says_where_when_the_follower_knows_no_such_epoch() -> None:
    assert truncation_offset((LeaderEpoch(1), 4), None, 20) == 4


def test_what_is_paused_is_left_out_until_its_time_has_come_and_loses_nothing_by_it() -> None:
    followed = Followed(A, B)
    followed.fetch()
    assert followed.plan.is_in_session(B)
    followed.plan.pause(B, 700)
    planned = followed.fetch()
    assert (named(planned), planned.forgotten, followed.plan.next_due_ms) == ([], [B], 700)
    assert not followed.plan.is_in_session(B)
    assert not followed.expects(B)
    followed.now_ms = 700
    assert named(followed.fetch()) == [(B, 0)]
    # It has not failed: the first real failure is the first.
    followed.plan.delay(B, followed.now_ms)
    assert followed.plan.next_due_ms == 700 + DELAY_MS_MIN
