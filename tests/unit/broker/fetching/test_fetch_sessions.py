"""Fetch sessions, KIP-227: what is cached, left out, refused and evicted."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.fetching.rules.fetch_session import FetchablePartition, FollowerId, PartitionKey, partition_key
from penstock.broker.fetching.rules.fetch_sessions import (
    FINAL_EPOCH,
    MAX_EPOCH,
    MIN_EVICTION_MS,
    FetchContext,
    FetchSessions,
)
from penstock.protocol.errors import ErrorCode
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId


@dataclass
class Answer:
    high_watermark: int = 5
    log_start_offset: int = 0
    error_code: int = 0
    preferred_read_replica: int = -1
    diverging_epoch: object | None = None
    slices: tuple[object, ...] = ()


def ids() -> Iterator[int]:
    yield from range(100, 1_000_000)


def sessions(max_slots: int = 2) -> FetchSessions:
    return FetchSessions(max_slots, ids().__next__)


def partition(topic: str = "a", index: int = 0, offset: int = 0) -> FetchablePartition:
    return FetchablePartition(topic, None, index, offset, 1024, LeaderEpoch(-1), LeaderEpoch(-1))


def begin(
    cache: FetchSessions,
    *partitions: FetchablePartition,
    session_id: int = 0,
    epoch: int = 0,
    forgotten: tuple[PartitionKey, ...] = (),
    version: int = 11,
    now_ms: int = 0,
    follower: FollowerId | None = None,
) -> FetchContext:
    return cache.begin(
        version=version,
        session_id=session_id,
        session_epoch=epoch,
        partitions=partitions,
        forgotten=forgotten,
        follower=follower,
        now_ms=now_ms,
    )


def finish(cache: FetchSessions, context: FetchContext, *answers: Answer, now_ms: int = 0) -> tuple[int, list[Answer]]:
    session_id, told = cache.finish(context, list(zip(context.partitions, answers, strict=True)), now_ms)
    return session_id, [answer for _, answer in told]


def open_session(
    cache: FetchSessions, *partitions: FetchablePartition, now_ms: int = 0, follower: FollowerId | None = None
) -> int:
    context = begin(cache, *partitions, now_ms=now_ms, follower=follower)
    return finish(cache, context, *[Answer() for _ in context.partitions], now_ms=now_ms)[0]


def keys(context: FetchContext) -> list[PartitionKey]:
    return [partition.key for partition in context.partitions]


def test_full_fetch_opens_a_session_and_answers_every_partition() -> None:
    cache = sessions()
    context = begin(cache, partition(index=0), partition(index=1))
    assert finish(cache, context, Answer(), Answer()) == (100, [Answer(), Answer()])


def test_final_epoch_opens_no_session() -> None:
    cache = sessions()
    context = begin(cache, partition(), epoch=FINAL_EPOCH)
    assert finish(cache, context, Answer()) == (0, [Answer()])
    assert cache.statistics().session_count == 0


@pytest.mark.parametrize("epoch", [0, FINAL_EPOCH])
def test_full_fetch_closes_the_session_it_names(epoch: int) -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    begin(cache, partition(), session_id=session_id, epoch=epoch)
    assert begin(cache, session_id=session_id, epoch=1).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_partition_named_twice_counts_once_as_named_last() -> None:
    context = begin(sessions(), partition(offset=1), partition(index=1), partition(offset=7))
    assert keys(context) == [("a", 0), ("a", 1)]
    assert context.partitions[0].fetch_offset == 7


def test_a_session_may_start_empty() -> None:
    cache = sessions()
    session_id = open_session(cache)
    assert keys(begin(cache, partition(), session_id=session_id, epoch=1)) == [("a", 0)]


def test_incremental_fetch_reads_what_the_session_knows() -> None:
    cache = sessions()
    session_id = open_session(cache, partition(index=0), partition(index=1))
    assert keys(begin(cache, session_id=session_id, epoch=1)) == [("a", 0), ("a", 1)]


def test_incremental_fetch_adds_moves_and_forgets() -> None:
    cache = sessions()
    session_id = open_session(cache, partition(index=0), partition(index=1))
    context = begin(
        cache,
        partition(index=1, offset=9),
        partition("b"),
        session_id=session_id,
        epoch=1,
        forgotten=(("a", 0), ("never", 3)),
    )
    assert keys(context) == [("a", 1), ("b", 0)]
    assert context.partitions[0].fetch_offset == 9


def test_unchanged_partitions_are_left_out() -> None:
    cache = sessions()
    session_id = open_session(cache, partition(index=0), partition(index=1))
    context = begin(cache, session_id=session_id, epoch=1)
    assert finish(cache, context, Answer(), Answer(high_watermark=6)) == (session_id, [Answer(high_watermark=6)])
    context = begin(cache, session_id=session_id, epoch=2)
    assert finish(cache, context, Answer(), Answer(high_watermark=6)) == (session_id, [])


@pytest.mark.parametrize(
    "answer",
    [
        Answer(slices=(object(),)),
        Answer(high_watermark=6),
        Answer(log_start_offset=1),
        Answer(preferred_read_replica=2),
        Answer(diverging_epoch=object()),
        Answer(error_code=1),
    ],
)
def test_changed_partitions_are_answered(answer: Answer) -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    context = begin(cache, session_id=session_id, epoch=1)
    assert finish(cache, context, answer)[1] == [answer]


def test_partition_is_answered_again_after_its_error_is_gone() -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    finish(cache, begin(cache, session_id=session_id, epoch=1), Answer(error_code=6, high_watermark=-1))
    context = begin(cache, session_id=session_id, epoch=2)
    assert finish(cache, context, Answer())[1] == [Answer()]


@pytest.mark.parametrize("follower", [None, FollowerId(NodeId(2), BrokerEpoch(7))])
def test_partition_that_gave_records_is_read_last_next_time(follower: FollowerId | None) -> None:
    cache = sessions()
    session_id = open_session(cache, partition(index=0), partition(index=1), follower=follower)
    context = begin(cache, session_id=session_id, epoch=1, follower=follower)
    finish(cache, context, Answer(slices=(object(),)), Answer())
    # It goes on behind what it was given.
    moved = partition(index=0, offset=9)
    assert keys(begin(cache, moved, session_id=session_id, epoch=2, follower=follower)) == [("a", 1), ("a", 0)]


def test_forgetting_everything_closes_the_session() -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    context = begin(cache, session_id=session_id, epoch=1, forgotten=(("a", 0),))
    assert context.error_code is ErrorCode.NONE
    assert finish(cache, context) == (0, [])
    assert begin(cache, session_id=session_id, epoch=2).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_unknown_session_is_refused() -> None:
    assert begin(sessions(), session_id=7, epoch=1).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 9, -2])
def test_wrong_epoch_is_refused_and_changes_nothing(epoch: int) -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    refused = begin(cache, partition("b"), session_id=session_id, epoch=epoch)
    assert refused.error_code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert keys(begin(cache, session_id=session_id, epoch=1)) == [("a", 0)]


def test_epoch_wraps_to_one() -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    session = begin(cache, session_id=session_id, epoch=1).session
    assert session is not None
    session.epoch = MAX_EPOCH
    begin(cache, session_id=session_id, epoch=MAX_EPOCH)
    assert begin(cache, session_id=session_id, epoch=1).error_code is ErrorCode.NONE


def test_names_and_ids_do_not_mix_in_a_session_kip_516() -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    refused = begin(cache, session_id=session_id, epoch=1, version=13)
    assert refused.error_code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert begin(cache, session_id=session_id, epoch=1).error_code is ErrorCode.NONE


def test_partitions_are_known_by_topic_id_from_version_13_on() -> None:
    cache = sessions()
    topic_id = UUID(int=77)
    context = begin(
        cache, FetchablePartition(None, TopicId(topic_id), 0, 0, 1, LeaderEpoch(-1), LeaderEpoch(-1)), version=13
    )
    session_id, _ = finish(cache, context, Answer())
    forgotten = (partition_key(None, TopicId(UUID(int=77)), 0),)
    context = begin(cache, session_id=session_id, epoch=1, version=13, forgotten=forgotten)
    assert context.partitions == ()


def test_next_request_ends_the_parked_one_before_it_changes_the_session() -> None:
    cache = sessions()
    session_id = open_session(cache, partition())
    session = begin(cache, session_id=session_id, epoch=1).session
    assert session is not None
    seen: list[list[PartitionKey]] = []

    class Parked:
        def on_ready(self, partition: FetchablePartition) -> None:
            raise AssertionError(f"a consumer's session does not watch {partition.key}")

        def interrupt(self) -> None:
            seen.append(list(known))

    known = session.partitions
    session.parked = Parked()
    begin(cache, partition("b"), session_id=session_id, epoch=2)
    assert seen == [[("a", 0)]]


def test_full_cache_gives_no_session_while_all_are_young() -> None:
    cache = sessions(max_slots=1)
    open_session(cache, partition())
    assert open_session(cache, partition("b", 0), partition("b", 1), now_ms=MIN_EVICTION_MS) == 0


def test_stale_session_gives_way_to_any_other() -> None:
    cache = sessions(max_slots=1)
    stale = open_session(cache, partition("a", 0), partition("a", 1))
    assert open_session(cache, partition("b"), now_ms=MIN_EVICTION_MS + 1) != 0
    assert begin(cache, session_id=stale, epoch=1).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.statistics().eviction_count == 1


def test_larger_session_evicts_a_smaller_one_that_is_old_enough() -> None:
    cache = sessions(max_slots=1)
    small = open_session(cache, partition())
    begin(cache, session_id=small, epoch=1, now_ms=MIN_EVICTION_MS)
    assert open_session(cache, partition("b"), now_ms=MIN_EVICTION_MS + 1) == 0
    assert open_session(cache, partition("b"), partition("c"), now_ms=MIN_EVICTION_MS + 1) != 0


def test_followers_session_evicts_a_young_consumers_and_never_the_other_way() -> None:
    cache = sessions(max_slots=1)
    open_session(cache, partition("a", 0), partition("a", 1))
    follower = open_session(cache, partition("b"), follower=FollowerId(NodeId(2), BrokerEpoch(7)))
    assert follower != 0
    begin(cache, session_id=follower, epoch=1, now_ms=MIN_EVICTION_MS, follower=FollowerId(NodeId(2), BrokerEpoch(7)))
    assert open_session(cache, partition("c", 0), partition("c", 1), now_ms=MIN_EVICTION_MS + 1) == 0


def test_a_session_whose_answer_was_lost_ends_with_the_next_one_of_the_follower() -> None:
    """Else each lost connection would leave one behind that no consumer's may evict."""
    cache = sessions(max_slots=3)
    open_session(cache, partition(), follower=FollowerId(NodeId(2), BrokerEpoch(7)))
    other = open_session(cache, partition(), follower=FollowerId(NodeId(3), BrokerEpoch(7)))
    open_session(cache, partition(), follower=FollowerId(NodeId(2), BrokerEpoch(6)))
    current = open_session(cache, partition(), follower=FollowerId(NodeId(2), BrokerEpoch(7)))
    assert cache.statistics().session_count == 2
    for session_id, follower in (
        (other, FollowerId(NodeId(3), BrokerEpoch(7))),
        (current, FollowerId(NodeId(2), BrokerEpoch(7))),
    ):
        assert begin(cache, session_id=session_id, epoch=1, follower=follower).error_code is ErrorCode.NONE


def test_no_slots_mean_no_sessions() -> None:
    assert open_session(sessions(max_slots=0), partition()) == 0


def test_statistics_count_sessions_and_partitions() -> None:
    cache = sessions()
    open_session(cache, partition(index=0), partition(index=1))
    open_session(cache, partition())
    statistics = cache.statistics()
    assert (statistics.session_count, statistics.partition_count, statistics.eviction_count) == (2, 3, 0)


STEP = st.one_of(
    st.tuples(st.just("advance"), st.integers(0, 3)),
    st.tuples(st.just("fail"), st.integers(0, 3)),
    st.tuples(st.just("heal"), st.integers(0, 3)),
    st.tuples(st.just("add"), st.integers(0, 3)),
    st.tuples(st.just("forget"), st.integers(0, 3)),
    st.tuples(st.just("fetch"), st.integers(0, 0)),
)


@given(st.lists(STEP, max_size=40))
def test_what_a_client_puts_together_from_increments_is_what_a_full_fetch_would_say(
    steps: list[tuple[str, int]],
) -> None:
    cache = sessions()
    truth = [Answer(high_watermark=0) for _ in range(4)]
    session_id = open_session(cache, partition("anchor"))
    wanted: set[int] = set()
    seen: dict[int, tuple[int, int]] = {}
    added: set[int] = set()
    forgotten: set[int] = set()
    epoch = 1
    for step, index in [*steps, ("fetch", 0)]:
        if step == "advance":
            truth[index] = Answer(high_watermark=truth[index].high_watermark + 1, error_code=truth[index].error_code)
        elif step in ("fail", "heal"):
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if step == "fail" else 0
            truth[index] = Answer(high_watermark=truth[index].high_watermark, error_code=code)
        elif step == "add" and index not in wanted:
            wanted.add(index)
            (forgotten if index in forgotten else added).symmetric_difference_update({index})
        elif step == "forget" and index in wanted:
            wanted.discard(index)
            (added if index in added else forgotten).symmetric_difference_update({index})
        elif step == "fetch":
            context = begin(
                cache,
                *(partition("a", one) for one in sorted(added)),
                session_id=session_id,
                epoch=epoch,
                forgotten=tuple(("a", one) for one in forgotten),
            )
            epoch += 1
            for one in forgotten:
                seen.pop(one, None)
            added, forgotten = set(), set()
            answers = [
                (asked, Answer() if asked.topic == "anchor" else truth[asked.index]) for asked in context.partitions
            ]
            for told, answer in cache.finish(context, answers, 0)[1]:
                if told.topic == "a":
                    seen[told.index] = (answer.error_code, answer.high_watermark)
            assert seen == {one: (truth[one].error_code, truth[one].high_watermark) for one in wanted}
